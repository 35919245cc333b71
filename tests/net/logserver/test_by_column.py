"""Column by column, the same batches come out as record by record, whatever stands in the records."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tests.net.logserver.test_narrow import TYPED, Sight, clean, records, some_of
from tests.net.logserver.writing import record
from tieline.compiling import is_compiled
from tieline.conf.schema import Attribute, Event, Settings
from tieline.log.columns import LOG
from tieline.log.record import Record
from tieline.net.logserver import by_column
from tieline.net.logserver.batches import Found
from tieline.net.logserver.by_column import ByColumn
from tieline.net.logserver.by_row import ByRow
from tieline.net.logserver.columns import schema_of
from tieline.net.logserver.fast import Fast
from tieline.net.logserver.loops import maps
from tieline.net.logserver.loops import records as records_loops
from tieline.net.logserver.question import OffsetSpan, Question
from tieline.net.logserver.selection import Selection
from tieline.net.store.declarations import Declaration
from tieline.net.store.declared_types import DeclaredTypes, declared_in
from tieline.net.store.reading import Group
from tieline.net.store.schema import Damaged

#: The same topics, and what they say is something else.
OTHERWISE = Settings(event={"other": Event(topic="#", attributes=(Attribute("v", "integer"), Attribute("w")))})


class Other(Exception):
    """The loops left it to the other way."""


def refuse(_groups: Any, _span: OffsetSpan) -> Found:
    raise Other


def groups_of(parts: list[list[Any]], first: int = 0) -> list[Group]:
    found = []
    for part in parts:
        found.append(Group(first, len(part), 0.0, msgspec.msgpack.encode(part)))
        first += len(part)
    return found


def fields(each: Record) -> list[Any]:
    return list(msgspec.structs.astuple(each))[:-1]


def both(
    groups: list[Group], span: OffsetSpan, names: tuple[str, ...] | None = None, hidden: str | None = None,
    topics: tuple[str, ...] = (), otherwise: Any = refuse, types: DeclaredTypes | None = None,
) -> tuple[Found, Found]:  # fmt: skip
    schema = schema_of("log", names)
    selection, sight = Selection(Question(topics=topics), TYPED, types), Sight(hidden)
    by_row = ByRow.of_messages(schema, selection, sight)
    return ByColumn(schema, selection, sight, otherwise)(groups, span), by_row(groups, span)


def check(fast: Found, slow: Found) -> None:
    fast.batch.validate(full=True)
    assert fast.batch.schema == slow.batch.schema
    assert fast.batch.to_pylist() == slow.batch.to_pylist()
    assert fast.withheld == slow.withheld


long = st.integers(0, 70_000).map(lambda size: "x" * size)
numbers = st.sampled_from([0, 1, 127, 128, 255, 256, 65_535, 65_536, 2**31 - 1])
unusual = st.builds(
    record,
    received=st.integers(0, 2**63 - 1),
    epoch=numbers | st.integers(-(2**63), 2**63 - 1),
    packet_id=numbers,
    level=st.integers(-128, 127),
    publisher=clean | long,
    topic=clean.filter(bool) | long.filter(bool),
    payload=st.binary(max_size=300) | st.just(bytes(70_000)),
    properties=st.sampled_from([b"\x01\x01", b"\x26\x00\x01\xc3\xa9", b"\x26\x00\x00\x00\x00", b"\x26\x00", b"\x99"]),
    attributes=st.dictionaries(clean, numbers | st.floats(allow_nan=False) | clean | st.booleans(), max_size=20),
)


@examples(150)
@given(
    st.lists(st.lists(records | unusual, min_size=1, max_size=6), min_size=1, max_size=4),
    some_of(LOG),
    st.sampled_from([None, "a/b", "x"]),
    st.sampled_from([(), ("a/+",), ("x/#", "a/b")]),
    st.lists(st.tuples(st.integers(95, 110), st.sampled_from([TYPED, OTHERWISE, Settings()])), max_size=3),
    st.data(),
)
def test_the_outcome_is_that_of_the_other_way(
    parts: list[list[Record]],
    names: tuple[str, ...],
    hidden: str | None,
    topics: tuple[str, ...],
    declared: list[tuple[int, Settings]],
    data: st.DataObject,
) -> None:
    encoded = [[fields(each) for each in part] for part in parts]
    total = sum(map(len, parts))
    first = data.draw(st.integers(0, len(parts[0]) - 1))
    last = data.draw(st.integers(total - len(parts[-1]) + 1, total))
    span = OffsetSpan(100 + min(first, last), 100 + last)
    types = DeclaredTypes(sorted(Declaration(at, declared_in(each)) for at, each in dict(declared).items()))
    check(*both(groups_of(encoded, 100), span, names, hidden, topics, types=types))


def test_only_what_a_record_does_not_carry_is_read_from_its_message() -> None:
    some = [
        record(0, topic="a/b", payload=b'{"v": 1}'),
        record(1, topic="a/b", payload=b'{"v": 1}'),
        record(2, topic="a/b", payload=b'{"v": 1}', attributes={"v": 2}),
        record(3, topic="a/b", payload=b"nonsense"),
        record(4, topic="untyped", payload=b'{"v": 1}'),
        record(5, topic="a/b", payload=b'{"w": 1}', properties=b"\x26\x00\x01v\x00\x013"),
    ]
    types = DeclaredTypes([Declaration(1, declared_in(TYPED))])
    fast, slow = both(groups_of([[fields(each) for each in some]]), OffsetSpan(0, 6), ("attributes",), types=types)
    check(fast, slow)
    said = [None if row is None else [(k, v["number"]) for k, v in row] for row in fast.batch["attributes"].to_pylist()]
    assert said == [None, [("v", 1.0)], [("v", 2.0)], [], None, [("v", 3.0)]]


def test_messages_are_read_only_for_their_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(*_args: object) -> None:
        raise AssertionError("nobody has asked what the message says")

    monkeypatch.setattr(DeclaredTypes, "read", looked)
    monkeypatch.setattr(DeclaredTypes, "complete", looked)
    types = DeclaredTypes([Declaration(0, declared_in(TYPED))])
    names = tuple(name for name in LOG.names if name != "attributes")
    check(*both(groups_of([[fields(record(0, topic="a/b"))]]), OffsetSpan(0, 1), names, types=types))


@pytest.mark.parametrize("names", [None, ("offset",), ("topic",), ("attributes",)])
def test_fields_of_later_versions_are_skipped_and_missing_attributes_are_none(names: tuple[str, ...] | None) -> None:
    later = [*fields(record(1, attributes={"v": 1})), 7, {"later": [1.5, "x", None, b"y"]}, "z" * 300]
    earlier = fields(record(2))[:-1]
    check(*both(groups_of([[later, earlier, later], [earlier]]), OffsetSpan(0, 4), names))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("received", "late"), ("received", 2**63), ("received", None), ("dup", 1), ("qos", 1.5), ("topic", b"a/b"),
        ("payload", "text"), ("packet_id", 2**31), ("level", 128), ("attributes", {"v": None}),
        ("attributes", {"v": [1]}), ("attributes", [1]), ("attributes", {1: 2}),
    ],
)  # fmt: skip
def test_what_a_broker_does_not_write_goes_the_other_way(field: str, value: object) -> None:
    array = fields(record(1))
    array[Record.__struct_fields__.index(field)] = value
    with pytest.raises(Other):
        both(groups_of([[fields(record(0))], [array]]), OffsetSpan(0, 2))


def test_a_text_that_is_none_goes_the_other_way() -> None:
    group = groups_of([[fields(record(1, topic="abc"))]])[0]
    assert group.blob.count(b"abc") == 1
    with pytest.raises(Other):
        both([group._replace(blob=group.blob.replace(b"abc", b"\xff\xfe\xfd"))], OffsetSpan(0, 1), ("topic",))


def test_more_bytes_than_places_can_name_go_the_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    group = groups_of([[fields(record(1))]])[0]
    both([group], OffsetSpan(0, 1))
    monkeypatch.setattr(by_column, "_MOST_BYTES", len(group.blob) - 1)
    with pytest.raises(Other):
        both([group], OffsetSpan(0, 1))


@pytest.mark.skipif(not is_compiled(), reason="nothing is compiled")
def test_what_was_made_ready_serves_every_question() -> None:
    """Otherwise a reader would wait for the compiler."""
    ready = Fast()
    ready.prepare()
    assert ready.is_ready
    loops = [records_loops.walk, records_loops.numbers, records_loops.stretches, records_loops.gather, maps.count_pairs,
             maps.pairs, maps.count_users, maps.users]  # fmt: skip
    before = [list(each.signatures) for each in loops]  # type: ignore[attr-defined]  # the compiler's own
    groups = groups_of([[fields(record(n, topic="a/b", attributes={"v": 1})) for n in range(3)], [fields(record(3))]])
    for names in (None, ("offset",), ("received", "topic"), ("dup", "event", "properties"), ("attributes",)):
        for topics in ((), ("a/b",)):
            for hidden in (None, "a/b"):
                check(*both(groups, OffsetSpan(1, 4), names, hidden, topics))
    assert [list(each.signatures) for each in loops] == before  # type: ignore[attr-defined]


@examples(300)
@given(st.lists(records, min_size=1, max_size=3), st.data())
def test_bytes_that_were_changed_are_read_as_the_other_way_reads_them_or_not_at_all(
    some: list[Record], data: st.DataObject
) -> None:
    blob = bytearray(msgspec.msgpack.encode([fields(each) for each in some]))
    for _ in range(data.draw(st.integers(0, 3))):
        blob[data.draw(st.integers(0, len(blob) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(blob)) | st.just(len(blob)))
    group = Group(0, len(some), 0.0, bytes(blob[:cut]))
    try:
        fast, slow = both([group], OffsetSpan(0, len(some)))
    except (Other, Damaged, pa.ArrowInvalid, OverflowError):
        return
    check(fast, slow)
