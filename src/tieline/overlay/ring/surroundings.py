"""What the parts of one broker on the ring have in common: time, links, the table, how sums are made, and counters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from tieline.core.timers import Action, Timer
from tieline.overlay.ring.events import Spaces
from tieline.overlay.ring.merging import Merging
from tieline.overlay.ring.messages import Message, Peer
from tieline.overlay.ring.settings import RingSettings
from tieline.overlay.ring.table import Table


class Alarms(Protocol):
    """Calls back when a time has come: a clock in virtual time, or the timers of a broker."""

    def at(self, when: float, action: Action) -> Timer:
        """Call ``action(now)`` once the time has come."""
        ...

    def cancel(self, timer: Timer | None) -> None:
        """Let something not happen; what has happened, or None, is fine."""
        ...


@dataclass(slots=True)
class RingCounts:
    """What has happened at one broker; everything that is given up has its number here."""

    #: Publications that came, of these the ones that had come before, and hand-overs made again.
    visits: int = 0
    #: Hops that the publications that came had made, all together.
    hops: int = 0
    seen_before: int = 0
    rerouted: int = 0
    #: Publications with QoS 0 that were under way when a link ended, and of which nobody knows whether they came.
    uncertain: int = 0
    again: int = 0
    #: Peers that were taken for dead, and messages that are none.
    deaths: int = 0
    malformed: int = 0
    #: Subscriptions that were acknowledged although somebody's echo was missing.
    unechoed: int = 0
    #: Publications that were refused because too much is owed, and hand-overs because too many are open.
    refused: int = 0
    tasks_full: int = 0
    #: Brokers that wanted to be told what is wanted here, and were not, because too many are.
    watchers_full: int = 0
    #: Hand-overs of QoS 0 that found nobody.
    nobody: int = 0


@dataclass(slots=True)
class Surroundings:
    """Shared by the parts of one broker."""

    table: Table
    merging: Merging
    spaces: Spaces
    settings: RingSettings
    alarms: Alarms
    #: Gives a message to the link to a peer.
    send: Callable[[Peer, Message], None]
    counts: RingCounts = field(default_factory=RingCounts)
