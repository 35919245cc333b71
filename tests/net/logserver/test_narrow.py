"""Who asks for few columns gets the same values as who asks for all: what is not decoded changes nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tests.net.logserver.writing import Writer, record
from tieline.conf.schema import Attribute, Event, Settings
from tieline.log.columns import EVENTS, LOG
from tieline.log.record import Occurrence, Record, record_up_to
from tieline.net.logserver import answer, question
from tieline.net.logserver import batches as bounds
from tieline.net.logserver.answer import Answer
from tieline.net.logserver.question import Question
from tieline.net.store.reading import Group
from tieline.wire.properties import Properties, encode_properties

#: One topic has an event type, so the others have none.
TYPED = Settings(name="edge", event={"reading": Event(topic="a/+", attributes=(Attribute(name="v"),))})


@pytest.fixture(autouse=True, params=[False, True], ids=["by row", "by column"])
def both_ways(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything here holds for compiled loops too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(Answer.__init__.__kwdefaults__, "is_fast", request.param)  # type: ignore[arg-type]  # it has some
        yield


class Sight:
    """Sees everything, or all but one topic."""

    def __init__(self, hidden: str | None) -> None:
        self.is_open = hidden is None
        self._hidden = hidden

    def record(self, topic: str) -> bool:
        return topic != self._hidden

    def occurrence(self, occurrence: Occurrence) -> bool:
        return occurrence.topic != self._hidden


def batches(data: Path, hidden: str | None = None, **asked: Any) -> tuple[list[pa.RecordBatch], Any]:
    """The batches of an answer, and what its end says."""
    reading = Answer(data, Question(**asked), TYPED, Sight(hidden))
    try:
        stream = pa.ipc.open_stream(b"".join(reading.open()))
    finally:
        reading.close()
    found = list(stream.iter_batches_with_custom_metadata())
    return [batch for batch, _said in found], msgspec.json.decode(found[-1][1][answer.KEY])


def table(data: Path, hidden: str | None = None, **asked: Any) -> tuple[pa.Table, Any]:
    """The rows of an answer as one table, and what its end says."""
    found, ended = batches(data, hidden, **asked)
    whole = pa.Table.from_batches(found).combine_chunks()
    whole.validate(full=True)
    return whole, ended


clean = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)
blocks = st.lists(st.tuples(clean, clean), max_size=3).map(
    lambda pairs: encode_properties(Properties(user_property=pairs))[1:] if pairs else b""
)
values = st.floats(allow_nan=False) | st.integers(-(2**40), 2**40) | st.booleans() | clean
numbers = st.integers(0, 9)
records = st.builds(
    record,
    number=numbers,
    topic=st.sampled_from(["a/b", "a/c", "x/y", "x"]),
    payload=st.binary(max_size=9) | numbers.map(lambda number: b'{"v": %d}' % number),
    dup=st.booleans(),
    retain=st.booleans(),
    qos=st.integers(0, 2),
    properties=blocks,
    attributes=st.none() | st.dictionaries(clean, values, max_size=3),
)
occurrences = st.builds(
    Occurrence,
    time=st.integers(0, 2**60),
    kind=st.sampled_from(["connect", "drop"]),
    client=clean,
    topic=st.sampled_from(["", "a/b", "x"]),
    detail=st.dictionaries(clean, values, max_size=2),
)


def some_of(schema: pa.Schema) -> st.SearchStrategy[tuple[str, ...]]:
    """Columns in any order."""
    return st.lists(st.sampled_from(schema.names), min_size=1, unique=True).map(tuple)


asked_for = st.fixed_dictionaries(
    {},
    optional={
        "topics": st.sampled_from([("a/+",), ("x/#",), ("a/b", "x")]),
        "where": st.sampled_from(["v >= 5", "v < 3"]).map(question.where),
        "hidden": st.sampled_from(["a/b", "x"]),
    },
)


@examples(60)
@given(st.lists(st.lists(records, min_size=1, max_size=5), max_size=4), some_of(LOG), asked_for)
def test_some_columns_of_the_log_are_those_of_all(
    tmp_path_factory: pytest.TempPathFactory, groups: list[list[Record]], names: tuple[str, ...], asked: dict[str, Any]
) -> None:
    writer = Writer(tmp_path_factory.mktemp("data"))
    for number, group in enumerate(groups):
        writer.declare(TYPED if number % 2 else Settings())
        writer.append(group)
    whole, ended = table(writer.data, **asked)
    narrow, ended_too = table(writer.data, columns=names, **asked)
    writer.close()
    assert narrow.to_pylist() == whole.select(names).to_pylist()
    assert narrow.schema.equals(whole.select(names).schema)
    assert ended_too == ended
    if not asked:
        assert whole["offset"].to_pylist() == list(range(sum(map(len, groups))))


@pytest.mark.parametrize(
    ("asked", "offsets", "withheld"),
    [
        ({}, [0, 1, 2, 3], 0),
        ({"hidden": "x"}, [0, 1, 3], 1),
        ({"topics": ("a/+",)}, [0, 1, 3], 0),
        ({"where": question.where("v >= 5")}, [1, 2, 3], 0),
        ({"where": question.where("v >= 5"), "topics": ("a/+",), "hidden": "a/b"}, [3], 2),
    ],
)
def test_what_decides_on_rows_need_not_be_asked_for(
    writer: Writer, asked: dict[str, Any], offsets: list[int], withheld: int
) -> None:
    told = [("a/b", 1, None), ("a/b", 7, None), ("x", 1, {"v": 9}), ("a/c", 8, None)]
    writer.append([record(topic=topic, payload=b'{"v": %d}' % v, attributes=kept) for topic, v, kept in told])
    found, ended = table(writer.data, columns=("offset",), **asked)
    assert found["offset"].to_pylist() == offsets
    assert ended["withheld"] == withheld


@examples(20)
@given(st.lists(occurrences, min_size=1, max_size=8), some_of(EVENTS), st.sampled_from([None, "a/b"]))
def test_some_columns_of_events_are_those_of_all(
    tmp_path_factory: pytest.TempPathFactory, group: list[Occurrence], names: tuple[str, ...], hidden: str | None
) -> None:
    writer = Writer(tmp_path_factory.mktemp("data"))
    writer.append(group, stream="events")
    whole, ended = table(writer.data, hidden, stream="events")
    narrow, ended_too = table(writer.data, hidden, stream="events", columns=names)
    writer.close()
    assert narrow.to_pylist() == whole.select(names).to_pylist()
    assert ended_too == ended


@pytest.mark.parametrize("last", [name for name in Record.__struct_fields__ if name != "offset"])
def test_a_short_record_ends_with_what_is_wanted(last: str) -> None:
    whole = record(3, properties=b"\x26\x00\x01a\x00\x01b", attributes={"v": 1.5})
    array = msgspec.msgpack.encode(list(msgspec.structs.astuple(whole))[:-1])
    kind = record_up_to({"received", last})
    short = msgspec.msgpack.decode(array, type=kind)
    held = [name for name in kind.__struct_fields__ if name != "offset"]
    assert held[-1] == last
    assert [getattr(short, name) for name in held] == [getattr(whole, name) for name in held]


def test_fields_of_later_versions_are_skipped() -> None:
    array = msgspec.msgpack.encode([*list(msgspec.structs.astuple(record(3)))[:-1], 7, {"later": [1, "x"]}])
    assert msgspec.msgpack.decode(array, type=record_up_to({"topic"})).topic == record(3).topic  # type: ignore[attr-defined]


@pytest.mark.parametrize(("column", "least"), [("payload", 10), ("digest", 1), ("attributes", 1), ("offset", 1)])
def test_batches_are_bounded_by_what_is_in_them(
    writer: Writer, monkeypatch: pytest.MonkeyPatch, column: str, least: int
) -> None:
    monkeypatch.setattr(bounds, "MOST_BYTES", 10_000)
    writer.append([record(number, payload=bytes(3_000)) for number in range(40)])
    found, ended = batches(writer.data, columns=(column,))
    assert ended["rows"] == 40 == sum(map(len, found))
    # one more, the empty one at the end
    assert len(found) == least + 1


def test_a_long_message_among_short_ones_ends_its_batch(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_BYTES", 5_000)
    sizes = [10, 10, 6_000, 10, 10, 10]
    writer.append([record(number, payload=bytes(size)) for number, size in enumerate(sizes)])
    found, _ended = batches(writer.data, columns=("offset", "payload"))
    assert [batch.column("offset").to_pylist() for batch in found] == [[0, 1, 2], [3, 4, 5], []]


@examples(40)
@given(st.lists(st.integers(0, 900), min_size=1, max_size=60), st.integers(100, 5_000))
def test_batches_are_cut_where_they_are_full_and_not_before(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], most: int
) -> None:
    writer = Writer(tmp_path_factory.mktemp("data"))
    writer.append([record(number, payload=bytes(size)) for number, size in enumerate(sizes)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "MOST_BYTES", most)
        found, _ended = batches(writer.data, columns=("offset", "payload"))
    writer.close()
    # an offset, the payload, and where it ends
    weights = [[8 + len(each) + 4 for each in batch.column("payload").to_pylist()] for batch in found[:-1]]
    assert [each - 12 for part in weights for each in part] == sizes
    assert all(sum(part[:-1]) <= most for part in weights)
    assert all(sum(part) >= most for part in weights[:-1])


@examples(60)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 40)), min_size=1, max_size=20))
def test_what_is_held_for_a_batch_is_bounded_whatever_is_asked_for(groups: list[tuple[int, int]]) -> None:
    """Who asks for digests alone makes the server hold payloads too: bytes of the store count, not those of columns."""
    stored = [Group(0, rows, 0.0, bytes(size)) for rows, size in groups]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "MOST_ROWS", 10)
        patch.setattr(bounds, "MOST_BYTES", 60)
        collected = list(bounds._collected(stored))
    assert [group for part in collected for group in part] == stored
    for part in collected:
        # all but the last, which nobody can know before it is read
        assert sum(group.records for group in part[:-1]) <= 10
        assert sum(len(group.blob) for group in part[:-1]) <= 60
