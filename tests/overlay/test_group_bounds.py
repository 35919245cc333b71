"""Very many groups, of a client or of another broker, are bounded, counted and said."""

from __future__ import annotations

from collections.abc import Callable

from tests.kits.world import Client, World
from tieline.core.account import Drop
from tieline.core.message import Message, Origin
from tieline.core.receiver import Share
from tieline.overlay.frames.fields import put, put_bytes
from tieline.overlay.frames.frame import lane_of
from tieline.overlay.frames.naming import MOST_GROUPS, MOST_MESSAGES, Address, put_addresses
from tieline.overlay.frames.parcel import Writing
from tieline.overlay.interests.entries import Entry, Form, Said, Terms
from tieline.overlay.joined import Joined
from tieline.overlay.receivers.shared_groups import MOST, MOST_OF_SESSION, OwnGroups
from tieline.overlay.retained.retained_item import RetainedItem
from tieline.wire.packets import Publish
from tieline.wire.reason import Reason


class Scene:
    """A broker that is joined with one that is far."""

    def __init__(self) -> None:
        self.world = World()
        self.joined = Joined(self.world.broker, life=1, incarnation=11)
        self.far = self.joined.node.number_of("far")
        assert self.joined.node.carrier.heard(self.far, 22, 1)
        self._version = 0

    def wants(self, added: dict[Entry, Terms], removed: frozenset[Entry] = frozenset()) -> None:
        """The far broker says what it wants beside what it wanted."""
        self._version += 1
        base = self._version - 1
        self.joined.node.interests.learn(Said(self.far, Form.DELTA, self._version, base, added, removed))
        self.joined.end_turn(self.world.now)

    def arrives(self, parcel: bytes) -> None:
        """The far broker has accepted something."""
        self.joined._deliver(self.far, lane_of(1, True, 0), [parcel])
        self.world.settle()

    def drops(self, why: Drop) -> int:
        return self.world.broker.account.drops[why]


def _parcel(messages: int = 1, topic: bytes = b"x") -> bytes:
    return put(0, 1) + put_bytes(b"p") + (put(1, 1) + put_bytes(topic) + put_bytes(b"1")) * messages


def _groups(count: int) -> tuple[Share, ...]:
    return tuple(Share(f"g{number}", "x") for number in range(count))


def test_a_session_is_a_member_of_so_many_groups_and_is_told_so() -> None:
    scene = Scene()
    client = scene.world.client("many")
    filters = [f"$share/g{number}/x" for number in range(MOST_OF_SESSION + 2)]
    reasons = client.subscribe(*filters, qos=1).reasons
    assert reasons == (1,) * MOST_OF_SESSION + (Reason.QUOTA_EXCEEDED,) * 2
    # what it has may be replaced, other filters are none of that, and others have groups of their own
    assert client.subscribe(filters[0], "y", qos=1).reasons == (1, 1)
    assert scene.world.client("other").subscribe(filters[-1]).reasons == (0,)
    client.unsubscribe(filters[0])
    assert client.subscribe(filters[-1]).reasons == (0,)
    assert scene.world.broker.account.refusals["quota_exceeded"] == 2


def test_a_broker_alone_has_no_such_bound() -> None:
    client = World().client("many")
    reasons = client.subscribe(*(f"$share/g{number}/x" for number in range(MOST_OF_SESSION + 2))).reasons
    assert set(reasons) == {0}


def test_a_broker_says_no_more_groups_than_others_look_at() -> None:
    groups = OwnGroups()
    for number in range(MOST):
        groups.note(Entry("x", f"g{number}"), is_new=True)
    assert groups.refusal(Entry("x", "g0"), 0) is None
    assert groups.refusal(Entry("x", "another"), 0) is not None
    groups.note(Entry("x", "g0"), is_new=False)
    assert groups.refusal(Entry("x", "another"), 0) is None


def test_of_another_broker_so_many_groups_are_looked_at() -> None:
    scene = Scene()
    entries = {Entry("x", f"g{number}"): Terms(2, 1) for number in range(MOST + 100)}
    scene.wants(entries)
    route = scene.world.broker.routes.of(b"x")
    assert len(route.groups) == MOST
    assert route.heat == 0
    assert scene.joined.node.counts.groups_refused == 100
    scene.wants({}, frozenset(entries))
    assert not scene.world.broker.routes.of(b"x").groups
    scene.wants({Entry("x", "late"): Terms(2, 1)})
    assert len(scene.world.broker.routes.of(b"x").groups) == 1


def test_a_message_for_very_many_groups_of_a_broker_leaves_in_parcels_of_bounded_size() -> None:
    scene = Scene()
    scene.wants({Entry("x", f"g{number}"): Terms(2, 1) for number in range(2 * MOST_GROUPS + 1)})
    publisher = scene.world.client("p")
    assert publisher.publish("x", b"1", qos=1) is Reason.SUCCESS
    scene.joined.end_turn(scene.world.now)
    owed = [each for stream in scene.joined.node.carrier.sender.outgoing.values() for each in stream.owing.unsettled]
    assert len(owed) == 3


def test_groups_that_nobody_has_are_named_and_counted_and_too_many_are_refused() -> None:
    scene = Scene()
    told = scene.joined.node.counts
    scene.arrives(put_addresses({"": Address(False, _groups(10))}, 1) + _parcel())
    assert (scene.drops(Drop.NO_MEMBER), told.bad_parcels) == (10, 0)
    scene.arrives(put_addresses({"": Address(False, _groups(MOST_GROUPS + 1))}, 1) + _parcel())
    scene.arrives(put_addresses({"": Address(False, _groups(1))}, 1) + _parcel(MOST_MESSAGES + 1))
    packet = b"\x30\x04\x00\x01x1"
    run = put(1, 4, 1) + put_bytes(b"p") + packet * (MOST_MESSAGES + 1)
    scene.arrives(put_addresses({"": Address(False, _groups(1))}, 0) + run)
    assert (scene.drops(Drop.NO_MEMBER), told.bad_parcels) == (10, 3)


def test_what_comes_for_a_group_goes_to_one_member_and_to_nobody_else() -> None:
    scene = Scene()
    members = [scene.world.client(f"m{number}") for number in range(2)]
    for member in members:
        member.subscribe("$share/g/x", qos=1)
    other, plain = scene.world.client("other"), scene.world.client("plain")
    other.subscribe("$share/h/x", qos=1)
    plain.subscribe("x", qos=1)

    def counts(*clients: Client) -> list[int]:
        return [sum(isinstance(packet, Publish) for packet in client.take()) for client in clients]

    cases: list[tuple[Callable[[], bytes], int, int, int]] = [
        (lambda: _parcel(4), 0, 0, 4),
        (lambda: put_addresses({"": Address(False, (Share("g", "x"),))}, 1) + _parcel(4), 4, 0, 0),
        (lambda: put_addresses({"": Address(True, (Share("g", "x"), Share("h", "x")))}, 1) + _parcel(4), 4, 4, 4),
    ]
    for make, group, others, plainly in cases:
        scene.arrives(make())
        *shares, at_other, at_plain = counts(*members, other, plain)
        assert (sum(shares), at_other, at_plain) == (group, others, plainly)
        assert max(shares) - min(shares) <= 0


def test_wants_that_come_to_the_same_end_one_by_one() -> None:
    """Conditions by other event types are asked where they come from, so here they are the same subscription."""
    scene = Scene()
    one, other = Entry("x", "", "v > 1", 77), Entry("x", "", "v > 2", 77)
    shared, again = Entry("x", "g", "v > 1", 77), Entry("x", "g")
    scene.wants({one: Terms(2), other: Terms(2), shared: Terms(2, 1), again: Terms(2, 3)})
    for gone in (one, shared):
        scene.wants({}, frozenset({gone}))
        route = scene.world.broker.routes.of(b"x")
        assert [grant.receiver.client_id for grant in route.grants] == ["broker far"]
        assert [len(group.whole.spanning) for group in route.groups] == [3 if gone is shared else 4]
    scene.wants({}, frozenset({other, again}))
    route = scene.world.broker.routes.of(b"x")
    assert not route.grants
    assert not route.groups


def test_what_waited_for_a_member_whose_session_ended_is_handed_to_another_broker() -> None:
    scene = Scene()
    away = scene.world.durable("away", expiry_s=5)
    scene.world.advance(10)  # other brokers may have its session, and are asked
    away.note_connack()
    away.subscribe("$share/g/x", qos=1)
    away.drop()
    publisher = scene.world.client("p")
    for _ in range(3):
        assert publisher.publish("x", b"1", qos=1) is Reason.SUCCESS
    scene.wants({Entry("x", "g"): Terms(2, 1)})
    assert _owed(scene) == 0
    scene.world.advance(6)
    scene.joined.end_turn(scene.world.now)
    assert _owed(scene) == 1, "messages of one publisher that leave together are one parcel"
    assert scene.drops(Drop.SESSION_ENDED) == 0


def _owed(scene: Scene) -> int:
    return sum(len(stream.owing.unsettled) for stream in scene.joined.node.carrier.sender.outgoing.values())


def test_a_group_gets_what_others_here_have_had_because_it_is_retained() -> None:
    scene = Scene()
    member, plain = scene.world.client("member"), scene.world.client("plain")
    member.subscribe("$share/g/x", qos=1)
    plain.subscribe("x", qos=1)
    message = Message(b"x", b"1", 0, True, origin=Origin("p"))
    growing, clock = Writing(message), 1_000
    growing.add(message, scene.world.now, clock, b"")
    told = RetainedItem(b"x", clock, "far", ("here",), message)
    convergence = scene.joined.outgoing.convergence
    assert convergence is not None
    convergence.merge(told, scene.far, scene.world.now, is_end=False)
    front = put_addresses({"": Address(True, (Share("g", "x"),))}, 0)
    scene.joined._deliver(scene.far, lane_of(1, False, 0), [front + growing.done()])
    scene.world.settle()
    copies = [sum(isinstance(packet, Publish) for packet in client.take()) for client in (member, plain)]
    assert copies == [1, 1]
