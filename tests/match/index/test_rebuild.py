"""A rebuild beside an index in use: nothing that happens meanwhile is lost, whenever it happens."""

from __future__ import annotations

import sys
from random import Random
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.check_index import Oracle, agree, boxes, check_index, rows
from tests.kits.examples import examples
from tieline.match.box import Box, everything
from tieline.match.index import AdaptiveIndex, Boxes, Index, Rebuild, adaptive
from tieline.match.index.adaptive import SMALL_TO, Backend, Choice
from tieline.match.index.protocol import NO_BOXES


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every limit is met with few boxes."""
    monkeypatch.setattr(adaptive, "SMALL_TO", 20)
    monkeypatch.setattr(adaptive, "LARGE_FROM", 10)
    monkeypatch.setattr(adaptive, "SMALL_NEVER", 60)


def crowd(count: int, dimensions: int = 2) -> Boxes:
    random = Random(count)
    lo = [[random.random() for _ in range(dimensions)] for _ in range(count)]
    return Boxes(list(range(count)), lo, [[end + 0.3 for end in ends] for ends in lo])


def fill(index: Index, boxes: Boxes) -> None:
    for id, lo, hi in zip(*boxes, strict=True):
        index.add(id, Box(tuple(lo), tuple(hi)))


STEPS = ("add", "add", "add", "remove", "remove", "begin", "run", "run", "adopt", "adopt", "abandon")


@examples(100)
@given(
    st.data(),
    st.integers(1, 3),
    st.sampled_from(("auto", "small", "numpy")),
    st.lists(
        st.sampled_from(("add", "add", "add", "remove", "match", "begin", "run", "adopt", "abandon")), max_size=60
    ),
)
def test_anything_may_happen_between_any_steps(
    data: st.DataObject, dimensions: int, backend: Choice, steps: list[str]
) -> None:
    index, oracle = AdaptiveIndex(dimensions, backend=backend), Oracle()
    index._large = "numpy"
    jobs: list[Rebuild] = []
    box = boxes(dimensions)
    for step in steps:
        present = sorted({id for id, _ in oracle.boxes})
        if step == "add":
            for _ in range(data.draw(st.sampled_from((1, 2, 15)))):
                id, added = data.draw(st.integers(0, 20)), data.draw(box)
                index.add(id, added)
                oracle.add(id, added)
        elif step == "remove" and present:
            gone = data.draw(st.sampled_from(present))
            index.remove(gone)
            oracle.remove(gone)
        elif step == "begin":
            jobs.append(index.begin_rebuild())
            assert not index.wants_rebuild(), "one at a time"
        elif step == "run" and jobs:
            jobs[-1].run()
        elif step == "adopt" and jobs and jobs[-1].index is not None:
            job = jobs.pop()
            assert index.adopt(job) in (True, False)
            assert not index.adopt(job), "once"
        elif step == "abandon" and jobs:
            index.abandon(jobs[-1])
        agree(index, oracle, data.draw(st.lists(rows(dimensions), max_size=2)), [])


@pytest.mark.hypothesis
def test_numba_takes_over() -> None:
    pytest.importorskip("numba")

    def make(dimensions: int) -> Index:
        index = AdaptiveIndex(dimensions)
        fill(index, crowd(30, dimensions))
        assert kind(index) == "small" and index.wants_rebuild()
        job = index.begin_rebuild()
        thread = Thread(target=job.run)
        thread.start()
        index.add(30, everything(dimensions))
        index.remove(3)
        thread.join()
        assert index.adopt(job)
        assert kind(index) == "numba" and not index.wants_rebuild()
        third = crowd(30, dimensions).lo[3]
        assert 30 in index.match(third) and 3 not in index.match(third)
        for id in (*range(3), *range(4, 31)):
            index.remove(id)
        return index

    check_index(make, count=5)


def test_it_grows_and_shrinks_with_hysteresis() -> None:
    index = AdaptiveIndex(2)
    index._large = "numpy"
    fill(index, crowd(20))
    assert not index.wants_rebuild()
    index.add(20, everything(2))
    assert index.wants_rebuild()
    turn(index)
    assert kind(index) == "numpy" and not index.wants_rebuild()
    for id in range(11):
        index.remove(id)
    assert len(index) == 10 and not index.wants_rebuild()
    index.remove(11)
    assert index.wants_rebuild()
    turn(index)
    assert kind(index) == "small" and not index.wants_rebuild()
    fill(index, crowd(11))
    assert len(index) == 20 and not index.wants_rebuild()


def kind(index: AdaptiveIndex) -> str:
    """A function, because mypy does not expect an attribute to change between two lines."""
    return index.backend


def turn(index: AdaptiveIndex) -> None:
    job = index.begin_rebuild()
    job.run()
    assert index.adopt(job)


def test_it_moves_by_itself_rather_than_crawl() -> None:
    index = AdaptiveIndex(2)
    fill(index, crowd(61))
    assert kind(index) == "numpy", "nobody came to rebuild it"
    assert len(index) == 61 and len(index.match((0.5, 0.5))) > 1


def test_a_kind_that_is_asked_for_stays() -> None:
    backends: tuple[Backend, ...] = ("small", "numpy")
    for backend in backends:
        index = AdaptiveIndex(2, backend=backend)
        assert kind(index) == backend
        fill(index, crowd(100))
        assert kind(index) == backend and not index.wants_rebuild()
        assert AdaptiveIndex.from_boxes(crowd(100), 2, backend=backend).backend == backend


def test_many_boxes_at_once() -> None:
    assert AdaptiveIndex.from_boxes(NO_BOXES, 2).backend == "small"
    assert AdaptiveIndex.from_boxes(crowd(20), 2).backend == "small"
    index = AdaptiveIndex.from_boxes(crowd(100), 2)
    assert kind(index) == ("numba" if adaptive.has_numba() else "numpy") and not index.wants_rebuild()
    oracle = Oracle()
    fill_oracle(oracle, crowd(100))
    agree(index, oracle, [(0.5, 0.5), (0.2, 0.9)], [])


def fill_oracle(oracle: Oracle, boxes: Boxes) -> None:
    for id, lo, hi in zip(*boxes, strict=True):
        oracle.add(id, Box(tuple(lo), tuple(hi)))


def test_numba_that_is_broken_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive, "has_numba", lambda: True)
    monkeypatch.setitem(sys.modules, "tieline.match.index.compiled", None)
    monkeypatch.delattr("tieline.match.index.compiled", raising=False)
    index = AdaptiveIndex(2)
    fill(index, crowd(30))
    turn(index)
    assert kind(index) == "numpy" and not index.wants_rebuild()
    assert len(index.match((0.5, 0.5))) > 0


def test_a_rebuild_that_was_overtaken_is_not_adopted() -> None:
    index = AdaptiveIndex(1)
    first = index.begin_rebuild()
    second = index.begin_rebuild()
    first.run()
    second.run()
    index.add(1, everything(1))
    assert not index.adopt(first) and index.match((0.0,)) == [1]
    assert index.adopt(second) and index.match((0.0,)) == [1]


def test_a_rebuild_has_to_run_first() -> None:
    index = AdaptiveIndex(1)
    with pytest.raises(ValueError, match="has to run"):
        index.adopt(index.begin_rebuild())


def test_what_is_noted_for_a_rebuild_is_bounded() -> None:
    index = AdaptiveIndex(1, backend="small")
    job = index.begin_rebuild()
    for _ in range(31):
        index.add(1, everything(1))
        index.remove(1)
    assert not index._changes and not index.adopt(job)
    assert len(index) == 0


def test_a_rebuild_leaves_the_index_alone() -> None:
    index = AdaptiveIndex(2, backend="numpy")
    fill(index, crowd(30))
    job = index.begin_rebuild()
    for id in range(30):
        index.remove(id)
    job.run()
    assert len(index) == 0 and index.match((0.5, 0.5)) == []
    assert job.index is not None and len(job.index) == 30, "it saw the boxes of when it began"
    index.adopt(job)
    assert len(index) == 0 and index.match((0.5, 0.5)) == []


def test_repr() -> None:
    assert repr(AdaptiveIndex.from_boxes(crowd(3), 2)) == "<AdaptiveIndex 3 boxes, 2 dimensions, small>"


def test_a_rebuild_that_failed_is_not_begun_again_at_every_change() -> None:
    index = AdaptiveIndex(1)
    for number in range(SMALL_TO + 1):
        index.add(number, Box((0.0,), (float(number),)))
    assert index.wants_rebuild()
    index.give_up(index.begin_rebuild())
    index.add(SMALL_TO + 1, Box((0.0,), (1.0,)))
    assert not index.wants_rebuild()
    for number in range(SMALL_TO + 2, 2 * SMALL_TO + 4):
        index.add(number, Box((0.0,), (1.0,)))
    assert index.wants_rebuild(), "with twice as many it is worth another try"
