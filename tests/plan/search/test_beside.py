from __future__ import annotations

import pytest

from tieline.plan.arrays import arrays
from tieline.plan.generate.testset import mesh
from tieline.plan.loops.values import net
from tieline.plan.search.beside import Beside
from tieline.plan.search.dual import Dual
from tieline.plan.search.progress import Progress
from tieline.plan.search.search import search


def test_a_dual_beside_knows_what_one_that_takes_turns_knows() -> None:
    numbers = arrays(mesh(60, topics=20, requests=60, tightness=1.2))
    value = 1.1 * Dual(numbers, net(numbers)).insight().bound
    beside = Beside(Dual(numbers, net(numbers)), lambda: value)
    while beside.steps < 20 and not beside.is_done:
        beside.wait(0.01)
    beside.end()
    assert beside.is_done
    alone = Dual(numbers, net(numbers))
    while alone.steps < beside.steps:
        alone.step(value)
    assert beside.insight().bound == alone.insight().bound
    assert (beside.insight().prices == alone.insight().prices).all()


def test_what_goes_wrong_in_the_thread_is_raised_where_it_is_asked() -> None:
    numbers = arrays(mesh(60, topics=20, requests=60))

    def broken() -> float:
        raise ZeroDivisionError("no value")

    beside = Beside(Dual(numbers, net(numbers)), broken)
    beside.end()
    with pytest.raises(ZeroDivisionError, match="no value"):
        beside.insight()


def test_a_search_in_seconds_of_a_large_network_has_it_beside() -> None:
    numbers = arrays(mesh(150, topics=80, requests=320, tightness=2.0))
    told: list[Progress] = []
    # as many seconds as a busy machine may need; the search begins when the dual has made its first steps
    found = search(
        numbers, seconds=300.0, listener=told.append, stop=lambda: any(each.doing == "search" for each in told)
    )
    assert found.dual_steps > 5
    assert found.trees.served.all()
    assert found.prices.max() > 0
