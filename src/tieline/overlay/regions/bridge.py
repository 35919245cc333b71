"""What one side of a gateway wants, said on the other side; echoed there only when that side knows.

Theory of operation
-------------------
A gateway wants of each side what the other side wants: towards its region the
sum of what other regions say, and towards those the sum of what its brokers say.  A broker's subscription is
acknowledged once everybody in reach has echoed it, and a gateway echoes what it has heard only when what it then said
itself is echoed on its other side.  So the acknowledgement waits for all regions in reach, and as long as each wait is
bounded, it is bounded.  Echoes wait for other echoes in one direction alone: of a region for those of other regions,
and of these for the brokers behind them, who wait for nobody.

A gateway that has never heard of anybody says nothing before everybody in reach has said something.  Where a region
has several gateways, whoever is one has to want all that the others want.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Final

from tieline.core.timers import Timers
from tieline.overlay.grants import Grants
from tieline.overlay.interests.entries import Entries, Entry
from tieline.overlay.interests.marks import is_mark
from tieline.overlay.node import Node

#: How often it is looked whether everybody has said something, and how long at most that is waited for.
_LOOK_S: Final = 0.05
_READY_S: Final = 5.0


@dataclass(slots=True)
class _Heard:
    """What was said of one broker, and how far the other side knows."""

    entries: set[Entry] = field(default_factory=set)
    #: Changes are counted; those that the other side does not know yet.
    count: int = 0
    open: set[int] = field(default_factory=set)
    #: By version, echoes that wait: for all changes up to a number.
    echoes: dict[int, tuple[int, Callable[[float], None]]] = field(default_factory=dict)


class Bridge:
    """From one side of a gateway to the other."""

    def __init__(self, source: Node, into: Grants, timers: Timers, now: Callable[[], float]) -> None:
        self._source = source
        self._into = into
        self._timers = timers
        self._now = now
        self._heard: dict[int, _Heard] = {}
        #: What was heard before it may be said, by broker and change.
        self._withheld: list[tuple[int, int, list[tuple[Entry, bool]]]] = []
        #: Whether what is heard is said; whoever comes back with what it knew may say it.
        self.is_open = bool(source.interests.known)
        self._began_at: float | None = None
        source.announcing.holds_echo = self._holds_echo
        if not self.is_open:
            timers.soon(self._look)

    def learned(self, broker: int, added: Entries, removed: frozenset[Entry]) -> None:
        """A broker wants something else than before: members of its groups are asked for as one."""
        heard = self._heard.setdefault(broker, _Heard())
        changes: list[tuple[Entry, bool]] = []
        for entry in added:
            if entry not in heard.entries and not is_mark(entry):
                heard.entries.add(entry)
                changes.append((entry._replace(share=""), True))
        for entry in removed:
            if entry in heard.entries:
                heard.entries.remove(entry)
                changes.append((entry._replace(share=""), False))
        if not changes:
            return
        heard.count += 1
        heard.open.add(heard.count)
        if self.is_open:
            self._say(broker, heard.count, changes)
        else:
            self._withheld.append((broker, heard.count, changes))

    def _say(self, broker: int, change: int, changes: list[tuple[Entry, bool]]) -> None:
        numbers = self._into.want(changes, self._now())
        if numbers:
            self._into.when_known(numbers, partial(self._known, broker, change))
        else:
            self._known(broker, change)

    def _look(self, now: float) -> None:
        """Say what was heard once everybody in reach has said something."""
        source = self._source
        reachable = source.membership.reachable
        if reachable and self._began_at is None:
            self._began_at = now
        is_late = self._began_at is not None and now - self._began_at >= _READY_S
        if not reachable or not (is_late or reachable <= source.interests.versions.keys()):
            self._timers.at(now + _LOOK_S, self._look)
            return
        self.is_open = True
        withheld, self._withheld = self._withheld, []
        for broker, change, changes in withheld:
            self._say(broker, change, changes)

    def _known(self, broker: int, change: int) -> None:
        """The other side knows of a change: echoes that waited for it, and for none before it, leave."""
        heard = self._heard[broker]
        heard.open.discard(change)
        first = min(heard.open, default=inf)
        for version in sorted(heard.echoes):
            last, send = heard.echoes[version]
            if last < first:
                del heard.echoes[version]
                send(self._now())

    def _holds_echo(self, broker: int, version: int, send: Callable[[float], None]) -> bool:
        heard = self._heard.get(broker)
        if heard is None or not heard.open:
            return False
        heard.echoes.setdefault(version, (heard.count, send))
        return True

    @property
    def waiting(self) -> int:
        """Echoes that wait for the other side."""
        return sum(len(heard.echoes) for heard in self._heard.values())
