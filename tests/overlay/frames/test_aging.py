"""Messages that expire: what they have waited, and how long they travelled, is taken off what they have left."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.overlay.test_node import Pair
from tieline.core.message import Message, Origin
from tieline.overlay.frames.aging import aged, without_expired
from tieline.overlay.frames.naming import ELSEWHERE, put_several
from tieline.overlay.frames.parcel import Run, Writing, contents, read_parcel
from tieline.overlay.interests.entries import entry_of

PUBLISHER = Origin("meter", 0, None)


def parcel_of(*messages: tuple[bytes, float | None], properties: bytes = b"") -> bytes:
    writing: Writing | None = None
    for number, (topic, left_s) in enumerate(messages):
        expires = None if left_s is None else 100.0 + left_s
        message = Message(topic, b"%d" % number, 1, False, properties, expires, PUBLISHER, 1, 100.0, 0, 1)
        writing = writing or Writing(message)
        writing.add(message, 100.0)
    assert writing is not None
    return writing.done()


def read(parcel: bytes) -> list[tuple[bytes, bytes, float | None]]:
    found = read_parcel(parcel, lambda client: PUBLISHER, 0.0)
    assert not isinstance(found, Run)
    return [(message.topic, message.payload, message.expires) for message in found]


def test_what_has_waited_has_less_left_and_what_has_expired_is_gone_and_counted() -> None:
    parcel = parcel_of((b"a", 10.0), (b"a", None), (b"b", 2.0), (b"b", 8.0))
    left, gone = without_expired(parcel, 3.0)
    assert read(left) == [(b"a", b"0", 7.0), (b"a", b"1", None), (b"b", b"3", 5.0)]
    assert gone == Counter({b"b": 1})
    assert read(aged(parcel, 3.0)) == [
        (b"a", b"0", 7.0), (b"a", b"1", None), (b"b", b"2", 0.0), (b"b", b"3", 5.0),
    ]  # fmt: skip


def test_nothing_is_left_of_a_parcel_in_which_everything_has_expired() -> None:
    parcel = parcel_of((b"a", 1.0), (b"a", 2.0))
    assert without_expired(parcel, 5.0) == (ELSEWHERE, Counter({b"a": 2}))
    several = put_several([parcel, parcel_of((b"c", 9.0))])
    left, gone = without_expired(several, 5.0)
    assert left == put_several([parcel_of((b"c", 4.0)).replace(b"0", b"0")])
    assert gone == Counter({b"a": 2})


def test_other_parcels_and_nonsense_stay_as_they_are() -> None:
    for parcel in (b"", b"\x01\x04\x01\x05meter0\x06\x00\x01ahere", b"\x00\xff\xff", b"\x03\x01", b"\x07"):
        assert aged(parcel, 5.0) == parcel
        assert without_expired(parcel, 5.0) == (parcel, Counter())
    parcel = parcel_of((b"a", 1.0))
    assert aged(parcel, 0.0) is parcel


EXPIRIES = st.none() | st.integers(0, 20).map(float)


@given(
    st.lists(st.tuples(st.sampled_from([b"a", b"b"]), EXPIRIES), min_size=1, max_size=9), st.integers(0, 25).map(float)
)
def test_what_is_left_and_what_is_gone_is_everything(messages: list[tuple[bytes, float | None]], waited: float) -> None:
    parcel = parcel_of(*messages, properties=b"\x00")
    left, gone = without_expired(parcel, waited)
    lost = sum(left_s is not None and left_s <= waited for _, left_s in messages) if waited else 0
    assert sum(gone.values()) == lost
    assert (contents(left)[1] if left != ELSEWHERE else 0) == len(messages) - lost
    if left != ELSEWHERE:
        expected = [left_s for _, left_s in messages if left_s is None or left_s > waited or not waited]
        assert [expires for _, _, expires in read(left)] == [
            None if left_s is None else left_s - waited for left_s in expected
        ]


def test_what_waited_for_a_broker_that_was_away_is_sent_with_what_it_has_left() -> None:
    pair = Pair()
    pair.connect()
    pair.run(0.1)
    pair.nodes[2].subscribe(entry_of("a/+"), 1, pair.now)
    pair.run(0.2)
    lost: list[tuple[int, bytes, int, int]] = []
    pair.nodes[1].carrier.sender.expired = lambda to, topic, count, level, now: lost.append((to, topic, count, level))
    for node in pair.nodes.values():
        node.closed(pair.handle, pair.now)
    to = pair.nodes[1].interests.wanted_by("a/b")
    for left_s in (2.0, 60.0, None):
        parcel = parcel_of((b"a/b", left_s))
        pair.nodes[1].publish((parcel,), level=1, assured=True, spread=0, destinations=to, now=pair.now, expires=True)
    pair.settle()
    pair.now += 5.0
    for timers in pair.timers.values():
        timers.fire(pair.now)
    pair.connect()
    pair.run(1.0)
    first, second, third = pair.got
    assert first == ELSEWHERE
    ((_, _, left),) = read(second)
    assert left is not None
    assert 53.0 < left <= 55.0
    assert third == parcel_of((b"a/b", None))
    assert lost == [(pair.nodes[1].number_of("b2"), b"a/b", 1, 1)]
    assert not pair.nodes[1].unfinished
    assert not pair.nodes[1].carrier.sender.outgoing[lost[0][0], 24].accepted


def test_the_time_on_the_way_is_taken_off_at_the_destination() -> None:
    pair = Pair()
    pair.connect()
    pair.run(0.1)
    pair.nodes[2].subscribe(entry_of("a/+"), 1, pair.now)
    pair.run(0.2)
    to = pair.nodes[1].interests.wanted_by("a/b")
    for assured in (True, False):
        pair.got.clear()
        parcel = parcel_of((b"a/b", 60.0))
        pair.nodes[1].publish(
            (parcel,), level=1, assured=assured, spread=0, destinations=to, now=pair.now, expires=True
        )
        pair.settle()
        pair.now += 2.5
        pair.carry(1)
        ((_, _, left),) = read(pair.got[0])
        assert left is not None
        assert 57.4 < left <= 57.5
