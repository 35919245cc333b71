"""A whole ring at once, as it is when everybody has joined and all is known.

To have ten thousand brokers join one after the other takes longer than everything else that is measured of them.  A
test sees to it that a ring that has grown by itself and one that was put together know the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tieline.overlay.ring.account import of_one
from tieline.overlay.ring.dispatch import DISPATCHES
from tieline.overlay.ring.events import RingSubscription, Spaces
from tieline.overlay.ring.growth import Watcher
from tieline.overlay.ring.identifiers import first_from, identifier_at, starts
from tieline.overlay.ring.merging import Digests, Merging
from tieline.overlay.ring.messages import Peer
from tieline.overlay.ring.node import RingNode, RingWorld
from tieline.overlay.ring.settings import RingSettings
from tieline.overlay.ring.table import Finger
from tieline.sim.ring.network import Network, PlacedNode


@dataclass(frozen=True, slots=True, kw_only=True)
class RingPlan:
    """What a ring is to be like."""

    #: By broker, what its clients ask for.
    subscriptions: Sequence[Sequence[RingSubscription]]
    spaces: Spaces
    dispatch: str = "arcs"
    merging: Callable[[Spaces], Merging] = Digests
    settings: RingSettings = field(default_factory=RingSettings)
    #: Whether brokers stand along the curve of what they want, of this type, and not where the hash of their name says.
    placed_by: str = ""


def make_node(plan: RingPlan, merging: Merging, peer: Peer, world: RingWorld) -> RingNode:
    """A broker of a ring like that, alone."""
    return RingNode(
        peer,
        world,
        merging=merging,
        dispatch=DISPATCHES[plan.dispatch](),
        spaces=plan.spaces,
        settings=plan.settings,
    )


def found(plan: RingPlan, network: Network, *, is_alive: bool = False) -> list[PlacedNode]:
    """All brokers of a ring, who know each other; with ``is_alive`` they look after each other from now on."""
    merging = plan.merging(plan.spaces)
    places = []
    for number, subscriptions in enumerate(plan.subscriptions):
        name = f"b{number}"
        place = network.enter(
            name, lambda peer, world: make_node(plan, merging, peer, world), _place_of(plan, name, subscriptions)
        )
        place.node.adopt(merging.of(subscriptions), subscriptions)
        places.append(place)
    join(plan, places, network.clock.now)
    if is_alive:
        for place in places:
            place.node.begin(None, network.clock.now)
    return places


def _place_of(plan: RingPlan, name: str, subscriptions: Iterable[RingSubscription]) -> int | None:
    """Where a broker stands: by the key of the middle of what it wants most of, or by its name."""
    if not plan.placed_by:
        return None
    routing = plan.spaces[plan.placed_by]
    boxes = [one.box for one in subscriptions if one.box is not None and one.type == plan.placed_by]
    if not boxes:
        return None
    largest = max(boxes, key=lambda box: sum(hi - lo for lo, hi in zip(box.lo, box.hi, strict=True)))
    middle = [(lo + hi) / 2 for lo, hi in zip(largest.lo, largest.hi, strict=True)]
    return identifier_at(routing.key(middle), routing.bits, name)


def join(plan: RingPlan, places: Sequence[PlacedNode], now: float) -> None:
    """Have brokers know each other, and what everybody in their arcs wants."""
    by_place = sorted(places, key=lambda place: place.peer.identifier)
    identifiers = [place.peer.identifier for place in by_place]
    for index, place in enumerate(by_place):
        table = place.node.table
        behind = [by_place[(index + far) % len(by_place)].peer for far in range(1, plan.settings.successors + 1)]
        table.predecessor, table.predecessor_heard = by_place[index - 1].peer, now
        for start in starts(place.peer.identifier):
            at = by_place[first_from(identifiers, start)]
            if at is not place and table.finger(at.peer.identifier) is None:
                table.add(Finger(at.peer, start, now))
        if len(by_place) > 1:
            table.know_behind(behind[0], behind[1:])
    _tell_everybody(plan, by_place, now)


def _tell_everybody(plan: RingPlan, places: Sequence[PlacedNode], now: float) -> None:
    """Sums of arcs, the shortest first: that of an arc is made of shorter ones."""
    nodes = {place.peer.identifier: place.node for place in places}
    dispatch = DISPATCHES[plan.dispatch]()
    #: By the binary digits of the way to the finger: what lies in its arc is less than half as far from the finger.
    by_length: dict[int, list[tuple[RingNode, Finger]]] = {}
    for node in nodes.values():
        for finger in node.table:
            length = node.table.way_to(finger.peer.identifier).bit_length()
            by_length.setdefault(length, []).append((node, finger))
    for length in sorted(by_length):
        for node, finger in by_length[length]:
            behind = nodes[finger.peer.identifier]
            end = dispatch.watched_end(node.table, finger)
            finger.told = behind.table.wanted_from(of_one(behind.me, behind.own), end)
            finger.until, finger.version = end, 1
            behind.growth.watchers[node.me.identifier] = Watcher(
                node.me, finger.start, end, now, finger.told, 1, finger.told
            )
