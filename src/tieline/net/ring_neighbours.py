"""The brokers of a ring as one broker meets them: dialled when the ring has something for them, where it says they are.

A broker of a ring is greeted as one of a group is, with the same key and certificates, but under another name of the
cluster: neither takes the other for one of its own.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from errno import ECONNREFUSED, ENOENT
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Final

import msgspec

from tieline.conf.overlay import Peer
from tieline.net.dialler import Dialler
from tieline.net.peers import Peers
from tieline.overlay.links.greeting import Self
from tieline.overlay.may import May
from tieline.overlay.ring.messages import Peer as RingPeer
from tieline.overlay.ring.settings import RingSettings
from tieline.overlay.ring_member.links import RingLinks
from tieline.overlay.ring_member.member import RingMember

if TYPE_CHECKING:
    from tieline.conf.overlay import Ring
    from tieline.conf.schema import Listener, Settings
    from tieline.conf.urls import ListenerUrl
    from tieline.core.broker import Broker
    from tieline.core.timers import Action
    from tieline.net.loop import Loop
    from tieline.net.peer_settings import Secrets

#: Behind the name of a cluster, where brokers of a ring greet each other.
_OF_RING: Final = "/ring"
#: What an attempt ends with where nobody listens.
_NOBODY: Final = tuple(map(os.strerror, (ECONNREFUSED, ENOENT)))
#: By a period, the other times of a ring; those of the default period are in :mod:`tieline.overlay.ring.settings`.
_MARGIN, _AGAIN, _SHRINK, _GROWTH = 2.25, 2.0, 2.5, 2.5
#: A subscription waits no shorter than this for all echoes.
_LEAST_GROWTH_S: Final = 5.0


def ring_settings(ring: Ring) -> RingSettings:
    """How a broker behaves on the ring, by what is configured of it."""
    period = ring.stabilise_s
    return RingSettings(
        stabilise_s=period,
        margin_s=_MARGIN * period,
        again_s=_AGAIN * period,
        shrink_s=_SHRINK * period,
        growth_s=max(_LEAST_GROWTH_S, _GROWTH * period),
        owed_bytes=ring.owed_bytes,
    )


class RingSide:
    """What sockets need of a broker on a ring."""

    def __init__(self, member: RingMember) -> None:
        self.member = member
        self.name = member.name

    @property
    def node(self) -> RingLinks:
        return self.member.links

    @property
    def plans(self) -> RingSide:
        """No plan says what a link is given."""
        return self

    def pace(self, peer: str) -> float | None:
        """Nothing is said of any link."""
        return None

    def receive(self, handle: int, data: bytes, now: float) -> bool:
        """Bytes have come; True if some wait for :meth:`go_on`."""
        return self.member.receive(handle, data, now)

    def go_on(self, handle: int, now: float) -> bool:
        """Look at more of what has come; whether something still waits."""
        return self.member.go_on(handle, now)

    def limit(self, rights: Mapping[str, May]) -> None:
        """All brokers of a ring have all rights; the settings refuse others."""
        assert not rights

    def use(
        self, strategy: str, now: float, *, covering: str = "optimal", publishes: Iterable[str] | None = None
    ) -> None:
        """How messages get around a ring does not change while it runs, and nobody is told what is published."""

    def lost(self, name: str, why: str, text: str) -> None:
        """The ring is told when something cannot be handed over."""


class _Attempt(Dialler):
    """One attempt to reach an address."""

    def __init__(self, peers: Peers[RingSide], url: str, ended: Callable[[_Attempt, str, float], None]) -> None:
        super().__init__(peers, Peer(url=url))
        self._ended = ended
        #: Whether a broker was there.
        self.has_succeeded = False

    def failed(self, why: str, now: float) -> None:
        """There is no connection, or no longer: that was it, unless the name leads somewhere else as well."""
        self.is_tried = True
        if self._places and not self.has_succeeded:
            self._connect(now)
            return
        self.stop()
        self._ended(self, why, now)

    def succeeded(self, peer: str) -> None:
        """A broker is there."""
        super().succeeded(peer)
        self.has_succeeded = True


class RingNeighbours:
    """Sockets to other brokers of a ring."""

    def __init__(
        self,
        core: Broker,
        loop: Loop,
        settings: Settings,
        notes: Sequence[tuple[bytes, bytes]],
        deliver: Callable[[Action], None],
    ) -> None:
        """``notes`` are what the predecessor has left in the store."""
        overlay = settings.overlay
        self.member = RingMember(
            core,
            # a life is larger than those before it, also where nothing is kept
            life=int(time() * 100),
            incarnation=secrets.randbits(63),
            dispatch=overlay.ring.dispatch,
            settings=ring_settings(overlay.ring),
            notes=notes,
            entries=_entries(settings),
        )
        self._address = overlay.ring.address
        self._loop = loop
        self.inside = Peers(
            RingSide(self.member),
            settings=_undialled(settings),
            core=core,
            loop=loop,
            deliver=deliver,
            identify=_on_ring,
        )
        #: Addresses that are dialled without knowing who is there.
        self._doors: set[str] = set()
        #: What is being dialled, or was and is connected; a reload lets go of none of it.
        self._attempts: set[_Attempt] = set()
        loop.on_flush = self.flush

    def of(self, listener: Listener) -> Peers[RingSide]:
        """Who is told of those that connect to an address."""
        return self.inside

    @property
    def up(self) -> list[str]:
        """The brokers that are connected, by name."""
        return sorted(self.inside.up)

    @property
    def is_settled(self) -> bool:
        """Whether the ring is found."""
        return self.member.is_joined

    def begin_all(self, listening: Sequence[ListenerUrl]) -> None:
        """Look for the ring; others reach this broker where it listens."""
        own = next(url for url in listening if url.is_peer)
        self.member.begin(self._address or str(own), monotonic())

    def flush(self, now: float) -> None:
        """A turn is over: what it caused for other brokers leaves, and those that are missing are dialled."""
        member = self.member
        member.end_turn(now)
        if not self.inside.is_stopped:
            for peer in member.links.take_wanted():
                self._dial(peer.link, partial(self._ended, peer), now)
            doors, member.doors = member.doors, []
            for door in doors:
                if door not in self._doors:
                    self._doors.add(door)
                    self._dial(door, self._door_ended, now)
        self.inside.write_all(now)

    def _dial(self, url: str, ended: Callable[[_Attempt, str, float], None], now: float) -> None:
        attempt = _Attempt(self.inside, url, ended)
        self._attempts.add(attempt)
        attempt.dial(now)

    def _ended(self, peer: RingPeer, attempt: _Attempt, why: str, now: float) -> None:
        self._attempts.discard(attempt)
        links = self.member.links
        if attempt.has_succeeded:
            links.dialled(peer)
        else:
            links.unreachable(peer, now, is_certain=why.endswith(_NOBODY))

    def _door_ended(self, attempt: _Attempt, why: str, now: float) -> None:
        self._attempts.discard(attempt)
        self._doors.discard(attempt.conf.url or "")

    def renew(self, settings: Settings, known: Secrets, now: float) -> None:
        """Act by other settings."""
        self.member.entries = _entries(settings)
        self.inside.renew(_undialled(settings), known, now)

    def stop(self, now: float) -> None:
        """Take leave of the ring, and close everything; what was gathered leaves first."""
        self.inside.is_stopped = True
        self.member.leave(now)
        self.flush(now)
        self.inside.stop_dialling()
        for attempt in self._attempts:
            attempt.stop()
        self.inside.close_all(now)
        self._loop.on_flush = None


def _entries(settings: Settings) -> tuple[str, ...]:
    return tuple([peer.url for peer in settings.peer if peer.url is not None])


def _undialled(settings: Settings) -> Settings:
    """The settings with peers of which nobody is dialled for ever: the ring says who is, and when."""
    named = tuple([msgspec.structs.replace(peer, url=None) for peer in settings.peer if peer.name is not None])
    return msgspec.structs.replace(settings, peer=named)


def _on_ring(name: str, settings: Settings, known: Secrets) -> Self:
    """What a broker says of itself to those of its ring."""
    return Self(name, settings.overlay.cluster + _OF_RING, known.keys, known.own_keys)
