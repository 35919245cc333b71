"""Answers hold exactly the range that was asked for, say so, and say when they do not."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tests.net.logserver.conftest import Told, told
from tests.net.logserver.writing import Writer, fill, record
from tieline.conf.schema import Settings
from tieline.log.record import Occurrence
from tieline.net.logserver import batches, question
from tieline.net.logserver.answer import Answer, Interrupted
from tieline.net.logserver.question import Beyond, Question, Unanswerable
from tieline.net.store.reading import Gap
from tieline.net.store.schema import Damaged, Unusable, path_of


@pytest.fixture(autouse=True, params=[False, True], ids=["by row", "by column"])
def both_ways(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything here holds for compiled loops too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(Answer.__init__.__kwdefaults__, "is_fast", request.param)  # type: ignore[arg-type]  # it has some
        yield


class Everything:
    is_open = True

    def record(self, topic: str) -> bool:
        raise AssertionError("nobody need be asked")

    def occurrence(self, occurrence: Occurrence) -> bool:
        raise AssertionError("nobody need be asked")


class Only:
    """Sees the topics below one."""

    is_open = False

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def record(self, topic: str) -> bool:
        return topic.startswith(self.prefix)

    def occurrence(self, occurrence: Occurrence) -> bool:
        return occurrence.topic.startswith(self.prefix)


def ask(data: Path, sight: Any = None, **asked: Any) -> Told:
    most = asked.pop("most", 10**9)
    reading = Answer(data, Question(**asked), Settings(name="edge"), sight or Everything(), most=most)
    try:
        return told(b"".join(reading.open()))
    finally:
        reading.close()


def test_a_range_is_whole_and_says_so(writer: Writer) -> None:
    fill(writer, 95)
    found = ask(writer.data, first=13, last=71)
    assert found.offsets == list(range(13, 71))
    assert [row["payload"] for row in found.rows] == [record(number).payload for number in range(13, 71)]
    assert found.asked == {
        "version": 1, "broker": "edge", "stream": "log", "from": 13, "to": 71, "topics": [], "where": None,
    }  # fmt: skip
    assert found.ended == {"from": 13, "to": 71, "rows": 58, "withheld": 0}


@examples(20)
@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=12),
    st.lists(st.integers(0, 80), max_size=6),
    st.integers(1, 9),
    st.integers(1, 300),
)
def test_disjoint_ranges_make_up_the_whole(
    tmp_path_factory: pytest.TempPathFactory, groups: list[int], cuts: list[int], rows: int, size: int
) -> None:
    writer = Writer(tmp_path_factory.mktemp("data"))
    for count in groups:
        writer.append([record(payload=b"x" * size) for _ in range(count)])
    total = sum(groups)
    places = sorted({0, total, *(cut for cut in cuts if cut < total)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "MOST_ROWS", rows)
        patch.setattr(batches, "MOST_BYTES", 500)
        parts = [ask(writer.data, first=a, last=b) for a, b in pairwise(places)]
    writer.close()
    assert [offset for part in parts for offset in part.offsets] == list(range(total))
    assert sum(part.ended["rows"] for part in parts) == total


def test_without_an_end_the_range_goes_to_the_end(writer: Writer) -> None:
    fill(writer, 30)
    assert ask(writer.data, first=25).offsets == [25, 26, 27, 28, 29]
    assert ask(writer.data, first=30).rows == []
    assert ask(writer.data, first=7, last=7).ended == {"from": 7, "to": 7, "rows": 0, "withheld": 0}


def test_rows_that_were_not_asked_for_are_missing_and_the_range_is_whole(writer: Writer) -> None:
    fill(writer, 100)
    found = ask(writer.data, topics=("grid/3/pcc",), where=question.where("number >= 50"), columns=("offset",))
    assert found.offsets == [number for number in range(50, 100) if number % 7 == 3]
    assert found.ended == {"from": 0, "to": 100, "rows": 7, "withheld": 0}
    assert found.asked["topics"] == ["grid/3/pcc"] and found.asked["where"] == "number >= 50"


def test_a_reader_behind_retention_is_told_what_is_missing(writer: Writer) -> None:
    fill(writer, 100)
    writer.forget(30)
    with pytest.raises(Gap) as gap:
        ask(writer.data, first=12, last=50)
    assert (gap.value.first, gap.value.last) == (12, 30)
    writer.forget(100)
    with pytest.raises(Gap) as gap:
        ask(writer.data, first=12)
    assert (gap.value.first, gap.value.last) == (12, 100)
    assert ask(writer.data, first=100).rows == []


def test_a_range_beyond_the_end_is_told_where_the_end_is(writer: Writer) -> None:
    fill(writer, 10)
    for first, last in ((11, None), (0, 11), (20, 30)):
        with pytest.raises(Beyond) as beyond:
            ask(writer.data, first=first, last=last)
        assert beyond.value.latest == 10


def test_ranges_that_cannot_be_meant(writer: Writer) -> None:
    fill(writer, 10)
    with pytest.raises(Unanswerable, match="before"):
        ask(writer.data, first=5, last=4)
    with pytest.raises(Unanswerable, match="one request may span 3"):
        ask(writer.data, first=5, last=9, most=3)


def test_a_directory_without_a_log(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="does not exist"):
        ask(tmp_path)


def test_retention_that_overtakes_a_reader_breaks_its_answer_off(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "MOST_ROWS", 10)
    fill(writer, 100)
    reading = Answer(writer.data, Question(), Settings(), Everything())
    pieces = reading.open()
    got = next(pieces) + next(pieces)
    writer.forget(60)
    with pytest.raises(Interrupted, match="20 to 59"):
        while True:
            got += next(pieces)
    reading.close()
    found = told(got)
    assert found.offsets == list(range(20))
    assert found.ended["error"] == "gap"
    assert (found.ended["from"], found.ended["to"], found.ended["missing"]) == (20, 60, 40)


@pytest.mark.parametrize("blob", [None, b"", b"\xc1", b"\x90"])
def test_a_damaged_group_is_named_and_nothing_behind_it_is_sent(writer: Writer, blob: bytes | None) -> None:
    fill(writer, 30)
    writer.damage(10, blob=blob)
    reading = Answer(writer.data, Question(first=5), Settings(), Everything())
    got = b""
    with pytest.raises(Interrupted, match="offset 10"):
        for piece in reading.open():
            got += piece
    reading.close()
    found = told(got)
    assert found.offsets == [] and found.ended["error"] == "damaged"
    assert ask(writer.data, first=20).offsets == list(range(20, 30))


def test_a_file_that_sqlite_cannot_read_is_a_sentence(writer: Writer) -> None:
    writer.append([record(number, payload=bytes(5_000)) for number in range(100)])
    writer.close()
    path = path_of(writer.data)
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises((Damaged, Interrupted, Unusable)):
        ask(writer.data)


def test_what_may_not_be_seen_is_withheld_and_counted(writer: Writer) -> None:
    fill(writer, 70)
    found = ask(writer.data, Only("grid/3/"))
    assert found.offsets == list(range(3, 70, 7))
    assert found.ended == {"from": 0, "to": 70, "rows": 10, "withheld": 60}


@pytest.mark.parametrize(
    "asked", [{"topics": ("grid/5/#",)}, {"where": question.where("number = 5")}, {"topics": ("nothing",)}]
)
def test_the_count_of_what_is_withheld_does_not_answer_questions_about_it(
    writer: Writer, asked: dict[str, Any]
) -> None:
    fill(writer, 70)
    assert ask(writer.data, Only("grid/3/"), **asked).ended["withheld"] == 60


def test_events_are_a_stream_of_their_own(writer: Writer) -> None:
    writer.append([Occurrence(1, "connect", "a"), Occurrence(2, "drop", "a", "x/y", {"count": 3})], stream="events")
    found = ask(writer.data, stream="events")
    assert [(row["offset"], row["kind"], row["detail"]) for row in found.rows] == [
        (0, "connect", "{}"),
        (1, "drop", '{"count":3}'),
    ]
    assert found.asked["stream"] == "events"
    assert ask(writer.data, Only("x/"), stream="events").ended == {"from": 0, "to": 2, "rows": 1, "withheld": 1}


def test_a_reader_hears_something_while_nothing_is_found(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MOST_ROWS", 10)
    monkeypatch.setattr(batches, "MOST_SEEN", 50)
    fill(writer, 500)
    reading = Answer(writer.data, Question(topics=("nothing",)), Settings(), Everything())
    assert len(list(reading.open())) == 11
    reading.close()


def test_memory_does_not_grow_with_the_range(writer: Writer) -> None:
    for first in range(0, 30_000, 500):
        writer.append([record(number, payload=b"x" * 1_000) for number in range(first, first + 500)])

    def peak(last: int) -> int:
        reading = Answer(writer.data, Question(last=last), Settings(), Everything())
        tracemalloc.start()
        size = arrow = 0
        for piece in reading.open():
            size += len(piece)
            arrow = max(arrow, pa.total_allocated_bytes())
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        reading.close()
        assert size > 1_000 * last
        return most + arrow

    small, large = peak(10_000), peak(30_000)
    assert large < 1.3 * small + 1_000_000
    assert large < 40_000_000
