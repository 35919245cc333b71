"""What is retained, as bytes and back; and bytes that are nothing of the kind."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.conf.schema import Settings
from tieline.core.allowance import Allowances
from tieline.core.holdings import Holdings
from tieline.core.message import Message, Origin
from tieline.overlay.frames.fields import BadFrame, Reader, put
from tieline.overlay.retained.retained_item import (
    MOST_MARKS,
    MOST_TOPICS,
    ItemsWriter,
    RetainedItem,
    read_items,
    read_marks,
    read_versions,
)
from tieline.sched.queue import Pool

NOW = 1_000.0
NAMES = st.sampled_from(["a", "b", "site-7"])
USERS = Holdings(Allowances(Settings()), Pool(1 << 30))


def origin_of(broker: str, client: str, user: str | None) -> Origin:
    return Origin(client, 0, USERS.owner(user), broker)


@st.composite
def items(draw: st.DrawFn) -> RetainedItem:
    topic, clock, broker = draw(st.binary(min_size=1, max_size=8)), draw(st.integers(1, 1 << 61)), draw(NAMES)
    live, qos = tuple(draw(st.lists(NAMES, unique=True, max_size=3))), draw(st.integers(0, 2))
    if draw(st.booleans()):
        return RetainedItem(topic, clock, broker, live, None, qos, draw(st.integers(0, 90_000)), draw(st.booleans()))
    message = Message(
        topic,
        draw(st.binary(min_size=1, max_size=9)),
        qos,
        retain=True,
        properties=draw(st.binary(max_size=4)),
        expires=draw(st.none() | st.integers(0, 50).map(lambda left: NOW + left)),
        origin=origin_of(broker, draw(st.text(max_size=4)), draw(st.none() | st.text(min_size=1, max_size=4))),
        level=draw(st.integers(0, 3)),
        at=NOW - draw(st.integers(0, 50)),
        taxon=draw(st.integers(0, 3)),
    )
    return RetainedItem(topic, clock, broker, live, message, qos)


def plain(item: RetainedItem) -> object:
    message = item.message
    if message is None:
        return item
    owner = message.origin.owner
    who = message.origin.client, None if owner is None else owner.user
    what = message.payload, message.qos, message.properties, message.expires, message.level, message.taxon, message.at
    return item._replace(message=None), who, what, message.retain


@given(st.lists(items(), max_size=5))
def test_what_is_written_is_read(told: list[RetainedItem]) -> None:
    writer = ItemsWriter()
    for item in told:
        writer.add(item, NOW)
    assert writer.count == len(told)
    assert [plain(item) for item in read_items(Reader(writer.done()), origin_of, NOW)] == [plain(item) for item in told]


@given(st.lists(st.tuples(st.binary(max_size=5), st.integers(1, 1 << 61), NAMES), max_size=5))
def test_versions_and_marks_are_read_as_they_were_written(told: list[tuple[bytes, int, str]]) -> None:
    versions, marks = ItemsWriter(), ItemsWriter()
    for number, (topic, clock, name) in enumerate(told):
        versions.add_version(topic, clock, name)
        marks.add_mark(number, clock, name)
    assert read_versions(Reader(versions.done())) == told
    assert read_marks(Reader(marks.done())) == {number: each[1:] for number, each in enumerate(told)}


@given(st.binary(max_size=60))
def test_bytes_of_any_kind_are_read_or_refused(data: bytes) -> None:
    for read in (lambda reader: list(read_items(reader, origin_of, NOW)), read_versions, read_marks):
        with suppress(BadFrame):
            read(Reader(data))


@pytest.mark.parametrize(
    "body",
    [
        put(1, 1) + b"a" + put(128, 1) + b"t",  # unknown flags
        put(1, 1) + b"a" + put(4, 1) + b"t" + put(0, 0, 0),  # a clock of zero
        put(1, 1) + b"a" + put(4, 1) + b"t" + put(5, 1, 0),  # a broker that is not named
        put(1, 0) + put(4, 1) + b"t" + put(5, 0, 0),  # a broker without a name
        put(1, 1) + b"a" + put(0, 1) + b"t" + put(5, 0, 5, 0, 0, 0),  # a message without a payload
    ],
)
def test_what_no_broker_would_say_is_refused(body: bytes) -> None:
    with pytest.raises(BadFrame):
        list(read_items(Reader(body), origin_of, NOW))


def test_what_is_looked_at_in_one_go_is_short() -> None:
    writer = ItemsWriter()
    for number in range(MOST_TOPICS + 1):
        writer.add_version(b"%d" % number, 1, "a")
    with pytest.raises(BadFrame, match="at once"):
        read_versions(Reader(writer.done()))
    marks = ItemsWriter()
    for number in range(MOST_MARKS + 1):
        marks.add_mark(number, 1, "a")
    with pytest.raises(BadFrame, match="at once"):
        read_marks(Reader(marks.done()))
    items_ = ItemsWriter()
    for number in range(MOST_TOPICS + 1):
        items_.add(RetainedItem(b"%d" % number, 1, "a", (), None), NOW)
    with pytest.raises(BadFrame, match="at once"):
        list(read_items(Reader(items_.done()), origin_of, NOW))
    with pytest.raises(BadFrame, match="300 brokers"):
        read_versions(Reader(put(300) + b"\1a" * 300))
