"""Two or three nodes joined by hand: greetings, custody across a reconnection, refusals, voids and grants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tieline.core.account import Drop
from tieline.core.timers import Timers
from tieline.overlay.carrier.durable import Ends, Taken
from tieline.overlay.frames.fields import put
from tieline.overlay.frames.frame import Data, Kind, Notice, Topic, frame, lane_of, numbered, place, tag_of
from tieline.overlay.frames.hello import Hello
from tieline.overlay.frames.inbox import Inbox
from tieline.overlay.interests.entries import Form, Said, entry_of, read_said
from tieline.overlay.links.links import LEGAL, PHASES, Phase
from tieline.overlay.links.patience import Patience
from tieline.overlay.membership import LinkState
from tieline.overlay.node import Node


def _hello(name: str = "b2", **changes: Any) -> bytes:  # Any: the fields of a HELLO differ
    """What broker b2 says first to broker b1, which means both by the same numbers."""
    hello = Hello("b2", 22, 1, 7, 1 << 24, {1: "b1", 2: "b2", 3: "b3", 4: "b4"}, {})
    return hello._replace(name=name, **changes).bytes


def _node(timers: Timers | None = None) -> Node:
    return Node("b1", Ends(), _take, Timers() if timers is None else timers, incarnation=11)


def _take(origin: int, lane: int, payloads: Sequence[bytes]) -> int:
    return len(payloads)


class Pair:
    """Nodes 1 and 2, whose bytes are carried when the test says so, and whose stores commit at once."""

    def __init__(self, patience: Patience | None = None) -> None:
        self.now = 100.0
        self.got: list[bytes] = []
        self.room = 1_000_000
        self.timers = {number: Timers() for number in (1, 2)}
        self.nodes = {
            number: Node(f"b{number}", Ends(), self._deliver, timers, incarnation=number, patience=patience)
            for number, timers in self.timers.items()
        }
        self.handle = 0

    def _deliver(self, origin: int, lane: int, payloads: Sequence[bytes]) -> int:
        self.got += payloads[: self.room]
        return min(self.room, len(payloads))

    def connect(self) -> None:
        self.handle += 1
        for node in self.nodes.values():
            node.opened(self.handle, self.now)

    def settle(self) -> None:
        for node in self.nodes.values():
            while (sealed := node.seal()) is not None:
                node.committed(sealed[0], self.now)

    def carry(self, *senders: int) -> None:
        self.settle()
        for number in senders or (1, 2):
            data = self.nodes[number].fill(self.handle, 1 << 20, self.now)
            self.nodes[3 - number].receive(self.handle, data, self.now)
        self.settle()

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += 0.01
            for timers in self.timers.values():
                timers.fire(self.now)
            self.carry()

    def publish(self, *payloads: bytes, assured: bool = True) -> bool:
        to = self.nodes[1].interests.wanted_by("a/b")
        return self.nodes[1].publish(payloads, level=1, assured=assured, spread=0, destinations=to, now=self.now)


def _joined(patience: Patience | None = None) -> Pair:
    pair = Pair(patience)
    pair.connect()
    pair.run(0.1)
    number = pair.nodes[2].subscribe(entry_of("a/+"), 1, pair.now)
    assert pair.nodes[2].granted == []
    pair.run(0.2)
    assert [(granted.number, granted.echoed) for granted in pair.nodes[2].granted] == [(number, frozenset({2}))]
    return pair


def test_a_message_arrives_is_settled_and_forgotten() -> None:
    pair = _joined()
    assert pair.publish(b"one", b"two")
    pair.run(0.2)
    assert pair.got == [b"one", b"two"]
    assert [node.unfinished for node in pair.nodes.values()] == [0, 0]


def test_what_was_under_way_is_sent_again_only_if_it_had_not_arrived() -> None:
    pair = _joined()
    pair.publish(b"arrives")
    pair.settle()
    pair.carry(1)
    pair.publish(b"is lost")
    pair.settle()
    pair.nodes[1].fill(pair.handle, 1 << 20, pair.now)
    for node in pair.nodes.values():
        node.closed(pair.handle, pair.now)
    pair.connect()
    pair.run(0.5)
    assert pair.got == [b"arrives", b"is lost"]
    assert (pair.nodes[1].counts.resent_on_link, pair.nodes[2].counts.suppressed) == (1, 0)


def test_a_connection_that_only_one_end_misses_is_replaced() -> None:
    pair = _joined()
    old = pair.handle
    pair.publish(b"in flight on the old connection")
    pair.settle()
    late = pair.nodes[1].fill(old, 1 << 20, pair.now)
    pair.nodes[1].closed(old, pair.now)
    pair.connect()
    pair.run(0.2)
    pair.nodes[2].receive(old, late, pair.now)
    pair.run(0.2)
    assert pair.got == [b"in flight on the old connection"]
    assert pair.nodes[2].counts.replaced == 1
    assert old in pair.nodes[2].doomed


def test_bytes_that_are_no_frame_end_the_connection_and_nothing_else() -> None:
    greeting = _hello()
    up = greeting + frame(Kind.RESUME, put(1, 0))
    notice = b"".join(numbered(5, Notice(Topic.ECHO, 2, 1, put(1), b"\x02"), 0.0))
    stranger = b"".join(numbered(1, Notice(Topic.ECHO, 2, 1, put(1), b"\x03"), 0.0))
    cases = (
        b"\x63\x00",
        frame(Kind.DATA),
        greeting + greeting,
        up + frame(Kind.NAMES, put(1, 2, 1) + b"x"),
        up + frame(Kind.HOP_ACK, put(9)),
    )
    for case in (*cases, up + notice, up + stranger):
        node = _node()
        node.opened(7, 100.0)
        node.receive(7, case, 100.0)
        assert node.doomed == {7}, case
        assert node.counts.bad_frames + node.counts.gaps == 1, case
        assert node.fill(7, 1_000, 100.0) == b""
        node.closed(7, 100.0)
        assert not node.membership.reachable


SMALL = st.integers(0, 5)
BODIES = st.one_of(st.binary(max_size=40), st.lists(SMALL, max_size=20).map(lambda numbers: put(*numbers)))


@examples(400)
@given(st.lists(st.tuples(st.sampled_from(list(Kind)), BODIES), max_size=6), st.booleans())
def test_whatever_a_peer_sends_nothing_is_raised(frames: list[tuple[Kind, bytes]], numbers_fit: bool) -> None:
    timers = Timers()
    node = _node(timers)
    node.opened(7, 100.0)
    node.receive(7, _hello() + frame(Kind.RESUME, put(1, 0)), 100.0)
    number = 0
    for kind, body in frames:
        if kind in {Kind.DATA, Kind.VOID, Kind.NOTICE} and numbers_fit:
            number += 1
            body = put(number) + body
        node.receive(7, frame(kind, body), 100.0)
        while (sealed := node.seal()) is not None:
            node.committed(sealed[0], 100.0)
    for tenths in range(100):
        timers.fire(100.0 + tenths / 10)
        node.fill(7, 10_000, 100.0 + tenths / 10)
    node.check()


LANES = st.builds(lane_of, st.integers(0, 3), st.booleans(), SMALL)
BROKERS = st.integers(1, 4)
FRAMES = st.one_of(
    st.builds(
        Data,
        lane=LANES,
        origin=BROKERS,
        tag=st.sampled_from([tag_of(22), tag_of(1), 5]),
        destinations=st.dictionaries(
            BROKERS, st.builds(place, st.integers(0, 700), st.sampled_from([tag_of(11), 5])), max_size=3
        ),
        payloads=st.lists(st.binary(max_size=3), min_size=1, max_size=3).map(tuple),
        born=st.just(100.0),
        path=st.sampled_from([b"\x02", b"\x03\x02", b"\x01\x02"]),
    ),
    st.builds(Notice, st.sampled_from(list(Topic)), BROKERS, BROKERS, BODIES, st.just(b"\x02")),
)


@examples(400)
@given(st.lists(FRAMES, max_size=8))
def test_nor_by_frames_that_are_well_formed_and_untrue(items: list[Data | Notice]) -> None:
    timers = Timers()
    node = _node(timers)
    node.opened(7, 100.0)
    node.receive(7, _hello() + frame(Kind.RESUME, put(1, 0)), 100.0)
    node.receive(7, LinkState(2, 1, 1, 22, {1: 1, 3: 1}).bytes + LinkState(3, 1, 1, 33, {2: 1}).bytes, 100.0)
    for number, item in enumerate(items, 1):
        node.receive(7, b"".join(numbered(number, item, 100.0)), 100.0)
        while (sealed := node.seal()) is not None:
            node.committed(sealed[0], 100.0)
    for tenths in range(50):
        timers.fire(100.0 + tenths / 10)
        node.fill(7, 10_000, 100.0 + tenths / 10)
    node.check()


def test_silence_ends_a_connection_and_pings_prevent_it() -> None:
    pair = _joined(Patience(ping_s=0.2, down_s=0.7))
    pair.run(2.0)
    assert not pair.nodes[1].doomed
    while not pair.nodes[1].doomed and pair.now < 110:
        pair.now += 0.05
        pair.timers[1].fire(pair.now)
    assert pair.nodes[1].counts.silences == 1
    assert not pair.nodes[1].membership.reachable


def test_a_near_peer_is_missed_sooner_but_not_by_who_was_stopped_himself() -> None:
    pair = _joined(Patience(ping_s=1.0, down_s=4.0, near_round_trip_s=0.5))
    meter = pair.nodes[1].links[2].meter
    pair.run(3.0)
    meter.least_round_trip_s = 0.001  # bytes take no time at all between these two
    # the process was stopped for longer than a near peer may be silent: it asks before it gives up
    pair.now += 3.0
    pair.timers[1].fire(pair.now)
    assert not pair.nodes[1].doomed
    pair.run(1.0)
    meter.least_round_trip_s = 0.001
    since = pair.now
    while not pair.nodes[1].doomed and pair.now < since + 10:
        pair.now += 0.05
        pair.timers[1].fire(pair.now)
    assert pair.nodes[1].counts.silences == 1
    assert pair.now - since < 2.0


def test_a_full_link_makes_voids_of_qos_0_and_leaves_the_rest_to_the_origin() -> None:
    pair = _joined(Patience(queue_bytes=200, credit_bytes=200, least_bytes=200))
    for number in range(10):
        pair.publish(b"%d" % number + bytes(60), assured=False)
    voided = pair.nodes[1].counts.voided
    assert 0 < voided < 10
    pair.run(0.1)
    pair.publish(b"after", assured=False)
    pair.run(0.1)
    assert len(pair.got) == 11 - voided
    assert pair.got[-1] == b"after"
    assert pair.nodes[2].counts.skipped == 0
    for number in range(10):
        assert pair.publish(b"%d" % number + bytes(60))
    pair.run(6)
    assert pair.nodes[1].counts.link_full > 0
    assert [text[:1] for text in pair.got[-10:]] == [b"%d" % number for number in range(10)]


def test_a_stream_without_room_waits_and_nothing_else_does() -> None:
    pair = _joined()
    pair.room = 1
    pair.publish(b"one", b"two", b"three")
    pair.run(0.04)
    assert pair.got[:1] == [b"one"]
    pair.room = 0
    pair.run(0.3)
    got = len(pair.got)
    assert 1 <= got < 3
    for number in range(600):
        pair.publish(b"later %d" % number)
    pair.run(9)
    assert len(pair.got) == got
    assert pair.nodes[1].carrier.sender.outgoing[2, 24].is_stalled
    assert pair.nodes[1].counts.resent_by_origin == 0
    assert (pair.nodes[2].counts.stalled, pair.nodes[2].counts.beyond_window) == (1, 0)
    pair.room = 1_000_000
    pair.nodes[2].room(pair.now)
    pair.run(0.5)
    assert pair.got == [b"one", b"two", b"three", *(b"later %d" % number for number in range(600))]
    assert [node.unfinished for node in pair.nodes.values()] == [0, 0]


def test_an_end_acknowledgement_leaves_after_the_commit_of_what_was_made_of_the_messages() -> None:
    pair = _joined()
    pair.publish(b"one")
    pair.settle()
    pair.nodes[2].receive(pair.handle, pair.nodes[1].fill(pair.handle, 1 << 20, pair.now), pair.now)
    assert pair.got == [b"one"]
    sealed = pair.nodes[2].seal()
    assert sealed is not None and sealed[1] == [Taken(2, 1, 24, 1)]
    pair.now += 1
    for timers in pair.timers.values():
        timers.fire(pair.now)
    assert pair.nodes[1].unfinished and pair.nodes[2].carrier.taker.incoming[2, 24].committed == 0
    pair.nodes[2].committed(sealed[0], pair.now)
    pair.run(0.2)
    assert not pair.nodes[1].unfinished


def test_what_is_longer_than_a_frame_may_be_goes_in_pieces_and_nothing_is_longer_than_the_peer_takes() -> None:
    lost: list[tuple[Data, Drop]] = []
    patience = Patience(longest=24 << 20, dropped=lambda data, why, now: lost.append((data, why)))
    pair = _joined(patience)
    assert pair.publish(bytes(20 << 20))
    assert pair.publish(bytes(24 << 20))
    assert pair.publish(b"and a short one")
    until = pair.now + 5
    while pair.nodes[1].unfinished and pair.now < until:
        pair.run(0.05)
    assert list(map(len, pair.got)) == [20 << 20, 0, 15]
    assert pair.nodes[1].counts.too_long == 1
    assert [(data.count, why) for data, why in lost] == [(1, Drop.TOO_LARGE)]
    assert not pair.nodes[1].unfinished


def test_a_subscription_is_granted_late_and_counted_if_nobody_echoes() -> None:
    pair = Pair(Patience(down_s=60.0))
    pair.connect()
    pair.run(0.1)
    node = pair.nodes[2]
    node.subscribe(entry_of("x"), 1, pair.now)
    assert not node.granted
    for _ in range(60):
        pair.now += 0.1
        pair.timers[2].fire(pair.now)
        if node.granted:
            break
    assert node.counts.not_echoed == 1
    assert [granted.echoed for granted in node.granted] == [frozenset()]


def test_every_stage_is_in_both_tables() -> None:
    assert set(PHASES) == set(LEGAL) == set(Phase)
    # brokers on a ring have links of their own, which say nothing else than that
    assert set().union(*LEGAL.values()) == set(Kind) - {Kind.RING}


def _said(pair: Pair, node: int) -> list[Said]:
    """What a node says of interests, on its way to the other one."""
    data = pair.nodes[node].fill(pair.handle, 1 << 20, pair.now)
    return [read_said(body) for kind, body in Inbox().take(data) if kind is Kind.INTEREST]


def test_whoever_missed_a_step_asks_for_the_whole_and_gets_it() -> None:
    pair = _joined()
    pair.nodes[2].subscribe(entry_of("b"), 1, pair.now)
    pair.now += 0.03
    pair.timers[2].fire(pair.now)
    [lost] = _said(pair, 2)
    assert (lost.form, set(lost.added)) == (Form.DELTA, {entry_of("b")})
    pair.nodes[2].subscribe(entry_of("c"), 1, pair.now)
    pair.run(0.2)
    assert set(pair.nodes[1].interests.known[2].entries) == {entry_of("a/+"), entry_of("b"), entry_of("c")}
    assert pair.nodes[1].counts.interests_requested == 1
    assert [granted.echoed for granted in pair.nodes[2].granted[-2:]] == [frozenset({2})] * 2


def test_whoever_is_asked_for_an_echo_of_what_it_does_not_know_asks_for_that() -> None:
    pair = _joined()
    pair.nodes[2].subscribe(entry_of("b"), 1, pair.now)
    pair.now += 0.03
    pair.timers[2].fire(pair.now)
    assert _said(pair, 2)
    pair.run(1.5)
    assert entry_of("b") in pair.nodes[1].interests.known[2].entries
    assert (len(pair.nodes[2].granted), pair.nodes[2].counts.not_echoed) == (2, 0)


def _restart(pair: Pair, number: int, *, life: int = 0, ends: Ends | None = None) -> None:
    """Let a node begin again, as nothing but a name or with a store."""
    for node in pair.nodes.values():
        node.closed(pair.handle, pair.now)
    timers = pair.timers[number] = Timers()
    pair.got.clear()
    incarnation = 100 + pair.handle
    pair.nodes[number] = Node(f"b{number}", ends or Ends(), pair._deliver, timers, incarnation=incarnation, life=life)
    pair.connect()


def test_a_destination_that_begins_anew_gets_what_is_not_settled_and_what_follows() -> None:
    pair = _joined()
    pair.publish(b"settled")
    pair.run(0.2)
    pair.nodes[1].closed(pair.handle, pair.now)
    pair.publish(b"owed")
    _restart(pair, 2, life=50)
    pair.nodes[2].subscribe(entry_of("a/+"), 1, pair.now)
    pair.run(0.5)
    pair.publish(b"later")
    pair.run(0.2)
    assert pair.got == [b"owed", b"later"]
    assert [node.unfinished for node in pair.nodes.values()] == [0, 0]
    assert pair.nodes[1].counts.renumbered == 1


def test_an_origin_that_begins_anew_is_heard_from_its_first_message_on() -> None:
    pair = _joined()
    pair.publish(b"before")
    pair.run(0.2)
    _restart(pair, 1, life=50)
    pair.run(0.2)
    assert pair.publish(b"after")
    pair.run(0.2)
    assert pair.got == [b"after"]
    assert [node.unfinished for node in pair.nodes.values()] == [0, 0]


def test_whoever_begins_with_a_clock_that_was_set_back_goes_on_behind_its_last_life() -> None:
    pair = Pair()
    pair.connect()
    pair.run(0.1)
    _restart(pair, 2, life=1_000)
    pair.run(0.1)
    _restart(pair, 2, life=5)
    pair.nodes[2].subscribe(entry_of("a/+"), 1, pair.now)
    pair.run(0.5)
    assert (pair.nodes[2].life, pair.nodes[2].counts.outlived) == (1_001, 1)
    pair.publish(b"one", assured=False)
    pair.publish(b"two")
    pair.run(0.2)
    assert sorted(pair.got) == [b"one", b"two"]


def test_a_life_that_is_heard_of_right_behind_another_one_is_outlived_a_moment_later() -> None:
    timers = Timers()
    node = _node(timers)
    node.opened(7, 100.0)
    states = [LinkState(1, life, 0, 11, {}).bytes for life in (1_000, 5_000, 3_000)]
    node.receive(7, b"".join((_hello(), frame(Kind.RESUME, put(1, 0)), *states)), 100.0)
    assert node.life == 1_001
    timers.fire(101.1)
    assert (node.life, node.counts.outlived) == (5_001, 2)


def test_two_brokers_of_one_name_are_told_so() -> None:
    for hello, words in ((_hello(name="b1"), "both brokers are called b1"), (_hello(names={2: "b3"}), "")):
        node = _node()
        node.opened(7, 100.0)
        node.receive(7, hello, 100.0)
        if words:
            assert [text for _, _, text in node.connections.refusals] == [
                "both brokers are called b1: give one of them another name"
            ]
            assert words.encode() in node.fill(7, 1_000, 100.0)
        assert node.doomed == {7}
    node = _node()
    for handle, hello in ((7, _hello()), (8, _hello(incarnation=23, start=9))):
        node.opened(handle, 100.0)
        node.receive(handle, hello + frame(Kind.RESUME, put(1, 0)), 100.0)
    assert [(handle, is_theirs) for handle, is_theirs, _ in node.connections.refusals] == [(8, False)]
    assert "another broker is called b2" in node.connections.refusals[0][2]


def test_what_a_peer_says_when_it_refuses_us_is_heard() -> None:
    node = _node()
    node.opened(7, 100.0)
    node.receive(7, frame(Kind.REFUSED, b"no such luck"), 100.0)
    assert (node.connections.refusals, node.doomed) == ([(7, True, "no such luck")], {7})
