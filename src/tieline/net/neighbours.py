"""The brokers that one broker is joined with: those of its own group, and for a gateway those of other regions too."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from time import monotonic, time
from typing import TYPE_CHECKING

import msgspec

from tieline.conf.quantities import bound, seconds
from tieline.net.peers import Peers
from tieline.overlay.joined import Joined
from tieline.overlay.links.greeting import Self
from tieline.overlay.regions.gateway import Gateway
from tieline.overlay.regions.outside import Outside, part
from tieline.overlay.ring.settings import NOTE as OF_RING

if TYPE_CHECKING:
    from tieline.conf.schema import Listener, Settings
    from tieline.conf.urls import ListenerUrl
    from tieline.core.broker import Broker
    from tieline.core.timers import Action
    from tieline.net.loop import Loop
    from tieline.net.peer_settings import Secrets


class Neighbours:
    """Sockets to other brokers, on one side or on both, and what lies behind them."""

    def __init__(
        self,
        settings: Settings,
        core: Broker,
        loop: Loop,
        deliver: Callable[[Action], None],
        notes: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """``notes`` are what the predecessor has left in the store."""
        overlay = settings.overlay
        ours, others = part([note for note in notes if note[0][:1] != OF_RING])
        # a life is larger than those before it, also where nothing is kept
        life = int(time() * 100)
        inside = Joined(
            core,
            life=life,
            incarnation=secrets.randbits(64),
            strategy=overlay.strategy,
            notes=others,
            clock_s=time() - monotonic(),
            wall=lambda now: time() - monotonic() + now,
            tombstones=(seconds(overlay.tombstones), bound(overlay.tombstone_bytes)),
        )
        #: Those of the same group, which is its region where this is a gateway.
        self.inside = Peers(inside, settings=_side(settings, is_outside=False), core=core, loop=loop, deliver=deliver)
        #: Gateways of other regions, and both sides together; None where this is no gateway.
        self.outside: Peers[Outside] | None = None
        self.gateway: Gateway | None = None
        self._loop = loop
        if overlay.region is not None:
            outside = Outside(
                core,
                overlay.region,
                life=life,
                incarnation=secrets.randbits(64),
                strategy=overlay.strategy,
                notes=ours,
            )
            self.gateway = Gateway(core, inside, outside, monotonic())
            outer = _side(settings, is_outside=True)
            self.outside = Peers(
                outside, settings=outer, core=core, loop=loop, deliver=deliver, identify=_among_gateways
            )
        loop.on_flush = self.flush

    def of(self, listener: Listener) -> Peers[Joined] | Peers[Outside]:
        """Who is told of those that connect to an address."""
        return self.outside if listener.gateway and self.outside is not None else self.inside

    @property
    def sides(self) -> list[Peers[Joined] | Peers[Outside]]:
        """Both sides, or the only one."""
        return [self.inside] if self.outside is None else [self.inside, self.outside]

    @property
    def up(self) -> list[str]:
        """The brokers that are connected, by name."""
        return sorted(name for side in self.sides for name in side.up)

    @property
    def is_settled(self) -> bool:
        """Whether something has come of the first attempt at each address."""
        return all(side.is_settled for side in self.sides)

    def begin_all(self, listening: Sequence[ListenerUrl]) -> None:
        """Dial all peers of both sides, without waiting for any; where it listens itself is no news to anybody."""
        for side in self.sides:
            side.begin_all()

    def flush(self, now: float) -> None:
        """A turn is over: what it caused for other brokers leaves."""
        if self.gateway is None:
            self.inside.joined.end_turn(now)
        else:
            self.gateway.end_turn(now)
        for side in self.sides:
            side.write_all(now)

    def renew(self, settings: Settings, known: Secrets, now: float) -> None:
        """Act by other settings."""
        self.inside.renew(_side(settings, is_outside=False), known, now)
        if self.outside is not None:
            self.outside.renew(_side(settings, is_outside=True), known, now)

    def stop(self, now: float) -> None:
        """Close everything; what was gathered leaves first."""
        for side in self.sides:
            side.stop_dialling()
        self.flush(now)
        for side in self.sides:
            side.close_all(now)
        self._loop.on_flush = None


def _side(settings: Settings, *, is_outside: bool) -> Settings:
    """The settings with the peers of one side."""
    return msgspec.structs.replace(settings, peer=tuple([peer for peer in settings.peer if peer.gateway == is_outside]))


def _among_gateways(name: str, settings: Settings, known: Secrets) -> Self:
    """What a gateway says of itself to those of other regions: brokers of a region are of another cluster."""
    return Self(name, f"{settings.overlay.cluster}/regions", known.keys, known.own_keys)
