"""What passes a link is counted there, and pings say how long the way there and back takes."""

from __future__ import annotations

from tests.overlay.test_node import Pair, _hello, _joined, _node
from tieline.overlay.frames.fields import put
from tieline.overlay.frames.frame import Kind, frame
from tieline.overlay.frames.inbox import Inbox
from tieline.overlay.links.meter import Meter, Pings


def _meter(pair: Pair, number: int) -> Meter:
    (link,) = pair.nodes[number].links.values()
    return link.meter


def test_both_ends_count_the_same() -> None:
    pair = _joined()
    out, come = _meter(pair, 1).bytes_out, _meter(pair, 2).bytes_in
    pair.publish(b"one", b"two")
    pair.publish(b"three", assured=False)
    pair.run(0.5)
    one, two = _meter(pair, 1), _meter(pair, 2)
    assert one.sent == two.received == [0, 3, 0, 0]
    assert two.sent == one.received == [0, 0, 0, 0]
    assert sum(one.sent_bytes) > len(b"onetwothree")
    assert 0 < sum(two.received_bytes) <= sum(one.sent_bytes)
    # of what came before a peer had said who it is, nothing is counted
    assert two.bytes_in - come == one.bytes_out - out > sum(one.sent_bytes)


def test_a_ping_comes_back_after_the_way_there_and_back() -> None:
    pair = _joined()
    pair.run(1.5)
    one, two = pair.nodes[1], pair.nodes[2]
    at = pair.now + 1
    pair.timers[1].fire(at)
    there = one.fill(pair.handle, 1 << 20, at)
    two.receive(pair.handle, there, at + 0.03)
    one.receive(pair.handle, two.fill(pair.handle, 1 << 20, at + 0.03), at + 0.05)
    meter = _meter(pair, 1)
    assert abs(meter.round_trip_s - 0.05) < 1e-9


def test_the_mean_follows_and_the_least_stays() -> None:
    meter = Meter()
    meter.took(0.1)
    for _ in range(100):
        meter.took(0.3)
    assert meter.least_round_trip_s == 0.1
    assert 0.29 < meter.round_trip_s <= 0.3


def test_a_flood_of_pings_is_answered_once_for_each_write() -> None:
    node = _node()
    node.opened(7, 100.0)
    node.receive(7, _hello() + frame(Kind.RESUME, put(1, 0)), 100.0)
    node.fill(7, 1 << 20, 100.0)
    node.receive(7, b"".join(frame(Kind.PING, put(1, stamp)) for stamp in range(5_000)), 100.0)
    assert node.dirty == {7}
    frames = list(Inbox().take(node.fill(7, 1 << 20, 100.0)))
    assert frames == [(Kind.PING, put(2, 4_999))]


def test_a_peer_that_never_sends_pings_back_is_pinged_as_before() -> None:
    pings = Pings()
    assert pings.came(b"", 1.0) is None
    pings.ask(1.0)
    for body in (put(2, 5), put(9, 1_000_000), put(1, 3)):
        assert pings.came(body, 2.0) is None
    assert [pings.is_under_way, pings.is_owed] == [True, True]
    assert pings.came(put(2, 1_000_000), 2.0) == 1.0
    assert [pings.is_under_way, pings.is_owed] == [False, True]


def test_a_ping_that_is_none_ends_the_connection() -> None:
    node = _node()
    node.opened(7, 100.0)
    node.receive(7, _hello() + frame(Kind.RESUME, put(1, 0)) + frame(Kind.PING, b"\x01"), 100.0)
    assert node.doomed == {7} and node.connections.why(7) == "bad_frames"


def test_a_link_knows_since_when_it_is_up_or_down() -> None:
    pair = _joined()
    assert 100.0 <= _meter(pair, 1).changed_at < 100.2
    pair.run(3)
    for node in pair.nodes.values():
        node.closed(pair.handle, pair.now)
    assert _meter(pair, 1).changed_at == pair.now
