"""Whole brokers on a ring in virtual time: cores, stores and members as they are, which dial each other as they need.

A cable lies between two brokers once one of them has dialled the other; everything else is as among joined brokers
(:mod:`tests.kits.group_world`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from tests.kits.check_store import LateStore
from tests.kits.group_world import GroupWorld, Site
from tests.kits.overlay_world import Broker, Cable, Connection
from tests.kits.world import World
from tieline.conf.overlay import Overlay
from tieline.overlay.node import Node
from tieline.overlay.ring.messages import Peer
from tieline.overlay.ring.settings import RingSettings
from tieline.overlay.ring_member.member import RingMember

#: Quicker than by default, so that a history of some seconds sees many periods.
SETTINGS: Final = RingSettings(stabilise_s=0.5, margin_s=1.25, shrink_s=1.0, again_s=2.0, growth_s=8.0)
_RATE: Final = 1_000_000.0
_RESET_S: Final = 0.02


def address_of(number: int) -> str:
    """Where a broker of this number is dialled."""
    return f"peer://127.0.0.1:{7_000 + number}"


@dataclass(eq=False)
class RingSite(Site):
    """A place where a broker on the ring runs."""

    member: RingMember | None = None
    entries: tuple[str, ...] = ()
    #: It ended without a sign.
    is_silent: bool = False


class MemberWorld(GroupWorld):
    """The brokers of one ring, and everybody's clients."""

    def __init__(self, random: Random, *, dispatch: str = "arcs") -> None:
        super().__init__(random, overlay=Overlay())
        self.dispatch = dispatch
        self._between: dict[frozenset[int], Cable] = {}

    def ring_site(self, number: int) -> RingSite:
        site = self.brokers[number]
        assert isinstance(site, RingSite)
        return site

    def found(self, number: int, *via: int) -> None:
        """A broker begins for the first time, knowing the addresses of some others."""
        self.brokers[number] = RingSite(number, entries=tuple(map(address_of, via)))
        self.start(number)

    def start(self, number: int) -> None:
        site = self.ring_site(number)
        site.starts += 1
        site.late = LateStore()
        world = site.world = World(self.settings(site), store=site.late)
        world.now = self.clock.now
        state = site.model.state
        state.starts = site.starts
        member = site.member = RingMember(
            world.broker,
            life=site.starts,
            incarnation=self.random.getrandbits(48),
            dispatch=self.dispatch,
            settings=SETTINGS,
            notes=self.begin(site),
            entries=site.entries,
        )
        if site.starts > 1:
            world.broker.restore(state, world.now)
        # cables and turns need of them what they need of those of a group
        site.joined, site.node, site.timers = member, member.links, world.broker.timers  # type: ignore[assignment]
        site.is_committing, site.crashes_at, site.is_silent, site.timer = False, "", False, None
        member.begin(address_of(number), world.now)
        self.tell(f"{number} begins life {site.starts}")
        self.serve(site)

    def crash(self, number: int, back_after_s: float, why: str = "") -> None:
        site = self.ring_site(number)
        super().crash(number, back_after_s, why)
        site.member = None

    def serve(self, broker: Broker) -> None:
        super().serve(broker)
        site = self.ring_site(broker.number)
        if site.member is None:
            return
        for peer in site.member.links.take_wanted():
            self._call(site, peer.link, peer)
        doors, site.member.doors = site.member.doors, []
        for door in doors:
            self._call(site, door, None)

    def _call(self, site: RingSite, address: str, peer: Peer | None) -> None:
        """Dial an address; what comes of it is seen after a moment."""
        assert site.member is not None
        self.clock.after(self.random.uniform(0.002, 0.02), partial(self._dialled, site, site.member, address, peer))

    def _dialled(self, site: RingSite, member: RingMember, address: str, peer: Peer | None, now: float) -> None:
        number = int(address.rpartition(":")[2]) - 7_000
        other = self.brokers.get(number)
        if site.member is not member:
            return
        cable = self._cable(site.number, number)
        if not isinstance(other, RingSite) or other.node is None or cable.is_cut:
            if peer is not None:
                member.links.unreachable(peer, now, is_certain=not cable.is_cut)
        elif any(each.cable is cable for each in site.open.values()):
            # it is connected in another way, or believes so
            if peer is not None:
                member.links.unreachable(peer, now, is_certain=False)
        else:
            self._open(cable, site, other)
            if peer is not None:
                member.links.dialled(peer)
        self.serve(site)

    def _cable(self, one: int, other: int) -> Cable:
        pair = frozenset((one, other))
        if pair not in self._between:
            cable = Cable(one, other, self.random.uniform(0.002, 0.05), _RATE)
            self._between[pair] = cable
            self.cables.append(cable)
        return self._between[pair]

    def _open(self, cable: Cable, one: RingSite, other: RingSite) -> None:
        self._handles += 1
        connection = cable.connection = Connection(self, cable, self._handles)
        for here, there in ((one, other), (other, one)):
            here.open[self._handles] = connection
            assert here.member is not None
            here.member.links.opened(self._handles, self.clock.now, 1, there.name)
        self.serve(other)

    def arrive(self, connection: Connection, end: int, data: bytes) -> None:
        site = self.ring_site(end)
        if connection.is_dead or site.member is None or connection.handle not in site.open:
            return
        is_behind = site.member.receive(connection.handle, data, self.clock.now)
        if is_behind:
            self.clock.after(0.001, partial(self._go_on, site, site.member, connection.handle))
        self.serve(site)

    def _go_on(self, site: RingSite, member: RingMember, handle: int, now: float) -> None:
        """What a shell does when others have had their turn."""
        if site.member is not member:
            return
        if member.go_on(handle, now):
            self.clock.after(0.001, partial(self._go_on, site, member, handle))
        self.serve(site)

    def _read_paths(self, node: Node, receiver: int, data: bytes) -> None:
        """What brokers of a ring say has no paths."""
