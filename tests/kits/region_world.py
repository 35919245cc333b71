"""Regions of whole brokers behind gateways, in virtual time: cores, stores and both nodes of each gateway as they are.

A gateway is one place with one core and one store.  Its side towards other regions is a place of its own to the cables,
which lies and stands with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

import msgspec

from tests.kits.group_world import GroupWorld, Site
from tests.kits.overlay_world import Broker, Cable, Connection
from tieline.conf.overlay import Overlay
from tieline.conf.schema import Settings
from tieline.overlay.carrier.ends import Limits
from tieline.overlay.node import Node
from tieline.overlay.regions.gateway import Gateway
from tieline.overlay.regions.outside import Outside, part

#: Numbers of the outer sides of gateways are larger by this.
OUTER: Final = 1_000


@dataclass(eq=False)
class OuterSide(Site):
    """A gateway as those of other regions see it."""

    region: str = ""

    @property
    def name(self) -> str:
        return f"b{self.number - OUTER}@{self.region}"


class RegionWorld(GroupWorld):
    """Brokers, of which some are gateways."""

    def __init__(self, random: Random, *, strategy: str = "path") -> None:
        super().__init__(random, overlay=Overlay(dead_s=30.0), strategy=strategy)
        #: By number, the region that a gateway is of.
        self.regions: dict[int, str] = {}
        self.gateways: dict[int, Gateway] = {}
        #: By number, what may be published at a broker that has declared that.
        self.published: dict[int, tuple[str, ...]] = {}
        #: Bytes that may be owed to one broker.
        self.owed_bytes = Limits().owed_bytes

    def gateway(self, number: int, region: str) -> None:
        """A gateway begins for the first time."""
        self.regions[number] = region
        self.brokers[number + OUTER] = OuterSide(number + OUTER, region=region)
        self.start(number)

    def join_outside(self, one: int, other: int, delay_s: float, rate: float) -> None:
        """A cable between gateways of two regions."""
        self.join(one + OUTER, other + OUTER, delay_s, rate)

    def settings(self, site: Site) -> Settings:
        settings = super().settings(site)
        region = self.regions.get(site.number)
        publishes = self.published.get(site.number, "anything")
        overlay = msgspec.structs.replace(settings.overlay, region=region, publishes=publishes)
        return msgspec.structs.replace(settings, overlay=overlay)

    def declare(self, number: int, filters: tuple[str, ...]) -> None:
        """From now on nothing else is published at a broker, also when it begins again."""
        self.published[number] = filters
        self.tell(f"{number} declares {filters}")
        site = self.site(number)
        if site.joined is not None:
            site.joined.use(self.strategy, self.clock.now, publishes=filters)
            self.serve(site)

    def begin(self, site: Site) -> list[tuple[bytes, bytes]]:
        return part(super().begin(site))[1]

    def began(self, site: Site) -> None:
        region = self.regions.get(site.number)
        if region is None:
            return
        assert site.world is not None
        assert site.joined is not None
        outside = Outside(
            site.world.broker,
            region,
            life=site.starts,
            incarnation=self.random.getrandbits(64),
            strategy=self.strategy,
            limits=Limits(owed_bytes=self.owed_bytes),
            notes=part(super().begin(site))[0],
        )
        self.gateways[site.number] = Gateway(site.world.broker, site.joined, outside, self.clock.now)
        self.site(site.number + OUTER).node = outside.node

    def end_turn(self, site: Site, now: float) -> None:
        gateway = self.gateways.get(site.number)
        if gateway is None:
            super().end_turn(site, now)
        else:
            gateway.end_turn(now)

    def crash(self, number: int, back_after_s: float, why: str = "") -> None:
        if number in self.regions and self.site(number).node is not None:
            outer = self.site(number + OUTER)
            outer.node = None
            for connection in list(outer.open.values()):
                self.break_off(connection, but=outer.number)
            outer.open.clear()
            outer.is_blocked.clear()
            self.gateways.pop(number, None)
        super().crash(number, back_after_s, why)

    def serve(self, broker: Broker) -> None:
        """What a shell does after each call, on both sides of a gateway."""
        site = self.site(broker.number % OUTER)
        super().serve(site)
        if site.number in self.regions:
            self._serve_outside(site)

    def _serve_outside(self, site: Site) -> None:
        outer = self.site(site.number + OUTER)
        node = outer.node
        if node is None:
            return
        for handle in sorted(node.doomed):
            node.closed(handle, self.clock.now)
            self.break_off(outer.open.pop(handle), but=outer.number)
        for handle in sorted(node.dirty - outer.is_blocked):
            self._write(outer, node, handle)

    def arrive(self, connection: Connection, end: int, data: bytes) -> None:
        if end < OUTER:
            super().arrive(connection, end, data)
            return
        outer, gateway = self.site(end), self.gateways.get(end - OUTER)
        if not connection.is_dead and gateway is not None and connection.handle in outer.open:
            gateway.outside.receive(connection.handle, data, self.clock.now)
            self.serve(outer)

    def _read_paths(self, node: Node, receiver: int, data: bytes) -> None:
        if receiver < OUTER:
            super()._read_paths(node, receiver, data)

    def cables_of(self, number: int) -> list[Cable]:
        """What a place is joined by, on either side."""
        return [cable for cable in self.cables if number in (end % OUTER for end in cable.ends)]

    def cut_off(self, number: int, for_s: float) -> None:
        """Nothing reaches a place for a while."""
        for cable in self.cables_of(number):
            self.cut(cable, for_s)

    def after(self, after_s: float, do: object, *args: object) -> None:
        """Have something done later."""
        assert callable(do)
        self.clock.after(after_s, partial(_ignoring_time, do, args))


def _ignoring_time(do: object, args: tuple[object, ...], _now: float) -> None:
    assert callable(do)
    do(*args)
