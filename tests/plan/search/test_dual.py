from __future__ import annotations

import pytest

from tieline.plan.arrays import arrays
from tieline.plan.generate.testset import mesh
from tieline.plan.kernels.network import net
from tieline.plan.run import Progress, Run
from tieline.plan.search.dual import Dual, DualThread
from tieline.plan.search.neighbourhood import search


def test_a_dual_beside_knows_what_one_that_takes_turns_knows() -> None:
    numbers = arrays(mesh(60, topics=20, requests=60, tightness=1.2))
    value = 1.1 * Dual(numbers, net(numbers)).insight().bound
    thread = DualThread(Dual(numbers, net(numbers)), lambda: value)
    while thread.steps < 20 and not thread.is_done:
        thread.wait(0.01)
    thread.end()
    assert thread.is_done
    alone = Dual(numbers, net(numbers))
    while alone.steps < thread.steps:
        alone.step(value)
    assert thread.insight().bound == alone.insight().bound
    assert (thread.insight().prices == alone.insight().prices).all()


def test_what_goes_wrong_in_the_thread_is_raised_where_it_is_asked() -> None:
    numbers = arrays(mesh(60, topics=20, requests=60))

    def broken() -> float:
        raise ZeroDivisionError("no value")

    thread = DualThread(Dual(numbers, net(numbers)), broken)
    thread.end()
    with pytest.raises(ZeroDivisionError, match="no value"):
        thread.insight()


def test_a_search_in_seconds_of_a_large_network_has_it_beside() -> None:
    numbers = arrays(mesh(150, topics=80, requests=320, tightness=2.0))
    told: list[Progress] = []
    # as many seconds as a busy machine may need; the search begins when the dual has made its first steps
    found = search(
        numbers, Run(seconds=300.0, listener=told.append, stop=lambda: any(each.doing == "search" for each in told))
    )
    assert found.dual_steps > 5
    assert found.trees.served.all()
    assert found.prices.max() > 0
