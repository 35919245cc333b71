"""Whoever hands arcs to this broker is told what is wanted from here; a subscription waits until all of them know.

Theory of operation
-------------------
Every broker is in exactly one arc of every other one, so what a new subscription asks for has to get into one sum of
each of them, unless it is there already.  It travels backwards on the ways on which publications would come: a broker
tells its *watchers*, those who have it as a finger, and each of them tells its own.  Each answers with an echo once all
of its own have; so the subscriber's broker hears when nobody is left who could overlook it.

What has been told and not echoed yet counts as not known, and is told once more: an echo waits only for what was told
on behalf of the same subscription.  Were it to wait for everything under way, brokers would wait for each other in a
circle.  What is told names the place that it is about, and nobody tells it to a watcher whose arc ends in front of
that; so it goes around once at most.

A watcher that dies takes its part of the echo with it.  Those who watched it may notice later than this broker, and
then enter its arc for everything until somebody else has told what it wants; so its part counts as done a while later.
What is told in that while has nobody to echo that part either, so it waits too, unless the dead one had echoed as much.

Whoever stands right before this broker has to be among the watchers, since ways to it lead through that one.  While it
is not, because it has died, cannot reach this broker, or has not found it yet, what is wanted here waits for it, too.

Shrinking takes its time, since it is harmless: all sums are counted anew, and who gets a smaller one is told the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from tieline.overlay.ring.account import NOBODY, ArcAccount
from tieline.overlay.ring.messages import ArcWanted, Echo, Member, Message, Peer
from tieline.overlay.ring.summary import NOTHING
from tieline.overlay.ring.surroundings import Surroundings

Then = Callable[[float], None]
#: Stands for the echo of whoever will stand right before this broker and watch it.
_FOUND: Final = (-1, 0)


@dataclass(eq=False, slots=True)
class Watcher:
    """A broker that has this one as a finger."""

    peer: Peer
    #: Where it looked for a finger, and where the arc ends that it would hand over.
    start: int
    end: int
    heard: float
    #: What it was told, all together, and under which version.
    told: ArcAccount = NOBODY
    version: int = 0
    #: What it has echoed of that; and by version what it has not.
    known: ArcAccount = NOBODY
    pending: dict[int, ArcAccount] = field(default_factory=dict)
    #: When it was told the whole last: what it was told before does not count any more.
    whole_version: int = 0


@dataclass(eq=False, slots=True)
class _Growth:
    """Something that waits for echoes, each a watcher's identifier and a version."""

    waits: set[tuple[int, int]]
    then: Then


class Growth:
    """Watchers, and who waits for their echoes."""

    def __init__(self, around: Surroundings, own: Callable[[], ArcAccount]) -> None:
        self._around = around
        self._own = own
        self.watchers: dict[int, Watcher] = {}
        self._growths: list[_Growth] = []
        #: Who died a while ago, by what stands for its echoes: those who watched it may not have noticed yet.
        self._mourned: dict[tuple[int, int], Watcher] = {}
        self._deaths = 0
        self._shrinks = False

    # -- watchers come and go

    def watched(self, peer: Peer, start: int, end: int, now: float) -> None:
        """A broker has this one as a finger, with an arc that ends there; it is told the whole."""
        watcher = self.watchers.get(peer.identifier)
        if watcher is None:
            watcher = self.watchers[peer.identifier] = Watcher(peer, start, end, now)
        watcher.start, watcher.end, watcher.heard = start, end, now
        self._tell_all(watcher)
        self.look_found(now)

    def heard(self, peer: Peer, now: float) -> None:
        """A sign of life."""
        watcher = self.watchers.get(peer.identifier)
        if watcher is not None:
            watcher.heard = now

    def forget(self, identifier: int, now: float, *, is_dead: bool) -> None:
        """A broker watches no more; what it has not echoed counts as echoed, after a while if it died."""
        watcher = self.watchers.pop(identifier, None)
        if watcher is None:
            return
        missing = {(identifier, version) for version in watcher.pending}
        if not is_dead:
            self._echoed_all(missing, now)
            return
        self._deaths += 1
        stands_for = (identifier, -self._deaths)
        self._mourned[stands_for] = watcher
        done = partial(self._mourn_no_more, stands_for, missing | {stands_for})
        self._around.alarms.at(now + self._around.settings.margin_s, done)

    def _mourn_no_more(self, stands_for: tuple[int, int], missing: set[tuple[int, int]], now: float) -> None:
        del self._mourned[stands_for]
        self._echoed_all(missing, now)

    def silent(self, until: float) -> list[Peer]:
        """Watchers without a sign of life since then."""
        return [watcher.peer for watcher in self.watchers.values() if watcher.heard < until]

    # -- growing

    def spread(self, place: int, more: ArcAccount, then: Then, now: float) -> None:
        """More is wanted by the broker at a place, this one or somebody behind it; call once everybody knows."""
        waits: set[tuple[int, int]] = set()
        table = self._around.table
        for watcher in self.watchers.values():
            if table.way_to(place) >= table.way_to(watcher.end):
                # it is not in the arc of that watcher
                continue
            part = table.up_to(watcher.end, more)
            if not watcher.known.covers(part):
                watcher.told = table.accounting.joined(watcher.told, part)
                self._tell(watcher, part, place)
                waits.add((watcher.peer.identifier, watcher.version))
        for stands_for, dead in self._mourned.items():
            is_inside = table.way_to(place) < table.way_to(dead.end)
            if is_inside and not dead.known.covers(table.up_to(dead.end, more)):
                waits.add(stands_for)
        if place == table.me.identifier and not self._is_found:
            waits.add(_FOUND)
        if waits:
            self._growths.append(_Growth(waits, then))
        else:
            then(now)

    def echoed(self, peer: Peer, version: int, now: float) -> None:
        """A watcher and all behind it know what it was told under a version."""
        watcher = self.watchers.get(peer.identifier)
        if watcher is None or version not in watcher.pending:
            return
        echoes = {version}
        if version == watcher.whole_version:
            echoes = {earlier for earlier in watcher.pending if earlier <= version}
        part = watcher.pending[version]
        for earlier in echoes:
            del watcher.pending[earlier]
        if version >= watcher.whole_version:
            watcher.known = self._around.table.accounting.joined(watcher.known, part)
        self._echoed_all({(peer.identifier, earlier) for earlier in echoes}, now)

    @property
    def _is_found(self) -> bool:
        """Whether the one right before this broker watches it; so it is where nobody else is."""
        table = self._around.table
        if table.predecessor is None:
            return table.successor is None
        return table.predecessor.identifier in self.watchers

    def look_found(self, now: float) -> None:
        """Who stands before this broker has changed, or watches it now: what waited for that waits for its echo."""
        if not self._is_found:
            return
        predecessor = self._around.table.predecessor
        watcher = None if predecessor is None else self.watchers[predecessor.identifier]
        for growth in self._growths:
            if _FOUND in growth.waits:
                growth.waits.discard(_FOUND)
                if watcher is not None and watcher.whole_version in watcher.pending:
                    growth.waits.add((watcher.peer.identifier, watcher.whole_version))
        self._echoed_all(set(), now)

    def _echoed_all(self, echoes: set[tuple[int, int]], now: float) -> None:
        done = []
        for growth in self._growths:
            growth.waits -= echoes
            if not growth.waits:
                done.append(growth)
        if done:
            self._growths = [growth for growth in self._growths if growth.waits]
            for growth in done:
                growth.then(now)

    # -- shrinking

    def shrank(self, now: float) -> None:
        """Less is wanted here; watchers are told after a while."""
        if not self._shrinks:
            self._shrinks = True
            self._around.alarms.at(now + self._around.settings.shrink_s, self._shrink)

    def _shrink(self, _now: float) -> None:
        self._shrinks = False
        for watcher in self.watchers.values():
            wanted = self._around.table.wanted_from(self._own(), watcher.end)
            if wanted != watcher.told:
                self._tell_all(watcher)

    def _tell_all(self, watcher: Watcher) -> None:
        watcher.told, watcher.known = self._around.table.wanted_from(self._own(), watcher.end), NOBODY
        watcher.whole_version = watcher.version + 1
        self._tell(watcher, watcher.told, self._around.table.me.identifier)

    def _tell(self, watcher: Watcher, account: ArcAccount, place: int) -> None:
        watcher.version += 1
        watcher.pending[watcher.version] = account
        is_whole = watcher.version == watcher.whole_version
        is_apart = account.members is not None
        members = tuple(Member(*each) for each in account.members.items()) if account.members is not None else ()
        summary = NOTHING if is_apart else account.summary
        told = ArcWanted(watcher.version, watcher.end, place, int(is_whole), int(is_apart), members, summary)
        self._around.send(watcher.peer, told)

    @property
    def unfinished(self) -> int:
        """Growths that wait for echoes."""
        return len(self._growths)


def echo(around: Surroundings, peer: Peer, version: int) -> Then:
    """What to do once everybody behind here knows what a finger has told."""

    def send(_now: float) -> None:
        message: Message = Echo(version)
        around.send(peer, message)

    return send
