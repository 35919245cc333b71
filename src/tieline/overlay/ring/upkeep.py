"""Keeps a broker's table true: it joins, looks after others, notices deaths, finds fingers, and leaves.

Theory of operation
-------------------
Every broker asks its successor once a period who stands before it.  If that is somebody nearer, that one is the
successor from now on; if it is the broker itself, the ring is *closed* there.  Fingers are asked whether they are
there, and one place a period is looked up anew.  Changes are pushed and do not wait for the period: a broker with a new
predecessor tells those who had looked for a place that is the new one's, and a newcomer tells who stands before it.

Nobody becomes a finger before it has told what its arc wants, so that there is never a moment in which an arc is
entered for less than is wanted.  What is lost is replaced at once: the finger before is handed the arc as well, and the
next of the known successors becomes the first.  Both are uncertain then, and entered for everything, until they have
told anew.  A newcomer is *joined* when its predecessor, and everybody behind that, knows what it wants.

Chord itself cannot heal a ring that has fallen into two: who was lost is remembered, and asked now and then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from tieline.overlay.ring.account import NOBODY, ArcAccount
from tieline.overlay.ring.dispatch.protocol import Dispatch
from tieline.overlay.ring.growth import Growth, Then, echo
from tieline.overlay.ring.identifiers import AROUND, starts, way
from tieline.overlay.ring.merging import admitted
from tieline.overlay.ring.messages import (
    Anew,
    Answer,
    ArcWanted,
    Before,
    Behind,
    Find,
    Forgotten,
    Found,
    Leaving,
    Left,
    Message,
    Peer,
    Probe,
    Role,
    Unwatch,
    Watch,
)
from tieline.overlay.ring.surroundings import Surroundings
from tieline.overlay.ring.table import Finger

#: Hops of a search after which nobody passes it on; a ring that is whole needs half as many as identifiers have bits.
_FAR: Final = 128
#: Lost peers that are remembered, and periods between two attempts to find them again.
_REMEMBERED: Final = 8
_HEALING_PERIODS: Final = 8
#: Brokers that are told what is wanted here: of ten thousand a few dozen have one of them as a finger.
_MOST_WATCHERS: Final = 1_024


class Upkeep:
    """One broker's part in keeping the ring together."""

    def __init__(
        self, around: Surroundings, growth: Growth, dispatch: Dispatch, changed: Callable[[Peer | None, float], None]
    ) -> None:
        """``changed`` is called with a peer that is gone, and with None when the ring has closed here."""
        self._around = around
        self._growth = growth
        self._dispatch = dispatch
        self._changed = changed
        #: Brokers that are to become fingers once they have told what they want.
        self._candidates: dict[int, Finger] = {}
        #: Who may still know the ring when everybody in the table is gone.
        self._remembered: deque[Peer] = deque(maxlen=_REMEMBERED)
        self.is_joined = False
        #: Whether the successor takes this broker for its predecessor, so that nobody stands between them.
        self.is_closed = False
        self._due = 0.0
        self._turn = 0
        #: When this broker did something last; 0 before it has begun.
        self._awake = 0.0
        self.is_leaving = False
        #: Who watches this broker since before it knew who stands behind it.
        self._early: dict[Peer, Watch] = {}
        #: Who has said that it leaves: nobody is made a finger because others have not heard of that.
        self._leavers: deque[Peer] = deque(maxlen=_REMEMBERED)

    @property
    def is_whole(self) -> bool:
        """Whether nobody stands between here and the successor; who leaves has handed that place to its predecessor."""
        return self.is_closed or self.is_leaving

    # -- coming and going

    def begin(self, via: Peer | None, now: float, phase_s: float = 0.0) -> None:
        """Found a ring, or join the one of a broker; look around for the first time after a part of a period."""
        self._awake = now
        self._due = now + (phase_s or self._around.settings.stabilise_s)
        self._around.alarms.at(self._due, self.tick)
        if via is None:
            self.is_joined = self.is_closed = True
            return
        self._remembered.append(via)
        self._around.send(via, Find(self._me.identifier, self._me, 0))

    def leave(self, _now: float) -> None:
        """Tell everybody who knows this broker that it goes, and who is behind it."""
        table = self._around.table
        self.is_leaving = True
        peers = {watcher.peer for watcher in self._growth.watchers.values()} | {finger.peer for finger in table}
        if table.predecessor is not None:
            peers.add(table.predecessor)
        for peer in sorted(peers):
            self._take_leave(peer)

    def _take_leave(self, peer: Peer) -> None:
        table = self._around.table
        before = (table.predecessor,) if table.predecessor else ()
        self._around.send(peer, Leaving(before, tuple(table.successors)))

    @property
    def _me(self) -> Peer:
        return self._around.table.me

    # -- once a period

    def tick(self, now: float) -> None:
        """Look after everybody who is known."""
        settings, table = self._around.settings, self._around.table
        self.wake(now)
        self._due = now + settings.stabilise_s
        self._around.alarms.at(self._due, self.tick)
        self._turn += 1
        self._notice_deaths(now - settings.lease_s, now)
        for finger in table:
            is_first = finger.peer == table.successor and not self.is_leaving
            role = Role.SUCCESSOR if is_first else Role.FINGER
            self._around.send(finger.peer, Probe(role, finger.version))
        for candidate in self._candidates.values():
            self._watch(candidate)
        self._look_up_one()
        if self.is_leaving:
            for watcher in list(self._growth.watchers.values()):
                self._take_leave(watcher.peer)
            return
        if not table or self._turn % _HEALING_PERIODS == 0:
            self._ask_remembered()
        if table.successor is not None and (not self.is_joined or self._turn % _HEALING_PERIODS == 0):
            # who answers that and does not know this broker stands in a ring that is wound around twice
            *_, farthest = table
            self._around.send(farthest.peer, Find(self._me.identifier, self._me, 0))

    def wake(self, now: float) -> None:
        """Something is done now: whoever stood still before may have been given up, and has to be told all anew.

        A broker does something once a period.  Its last word to others may be a period old when it stops, so they may
        forget it as early as that much before their patience is over.
        """
        if not self._awake:
            # one that has not begun to look around does nothing once a period: that it was still says nothing
            return
        before, self._awake = self._awake, now
        if now - before > (self._around.settings.patience - 1.0) * self._around.settings.stabilise_s:
            self._hear_all(now)

    def _hear_all(self, now: float) -> None:
        """The others did not stand still: most are there, but may have told this broker nothing meanwhile.

        They have a period to show it, and not as long as anybody else: who died before was noticed elsewhere long ago.
        """
        settings, table = self._around.settings, self._around.table
        least = now - settings.lease_s + settings.stabilise_s
        for finger in table:
            finger.heard, finger.until = max(finger.heard, least), finger.peer.identifier
            self._watch(finger)
        for candidate in self._candidates.values():
            candidate.heard = max(candidate.heard, least)
        for watcher in self._growth.watchers.values():
            watcher.heard = max(watcher.heard, least)
        table.predecessor_heard = max(table.predecessor_heard, least)

    def _notice_deaths(self, until: float, now: float) -> None:
        table = self._around.table
        silent = [finger.peer for finger in (*table, *self._candidates.values()) if finger.heard < until]
        if table.predecessor is not None and table.predecessor_heard < until:
            silent.append(table.predecessor)
        for peer in silent:
            self.lost(peer, now)
        for peer in self._growth.silent(until):
            self._growth.forget(peer.identifier, now, is_dead=True)

    def _look_up_one(self) -> None:
        """One of the places at which fingers are looked for, the next one each time."""
        table = self._around.table
        if table.successor is None:
            return
        places = list(starts(self._me.identifier, table.way_to(table.successor.identifier)))
        if places:
            self._find(places[self._turn % len(places)])

    def look_up_all(self) -> None:
        """All these places at once, as a newcomer does."""
        table = self._around.table
        if table.successor is not None:
            for place in starts(self._me.identifier, table.way_to(table.successor.identifier)):
                self._find(place)

    def _find(self, place: int) -> None:
        hop = self._around.table.closest_before(place)
        if hop is not None:
            self._around.send(hop, Find(place, self._me, 0))

    def remember(self, peer: Peer) -> None:
        """Somebody may know the ring."""
        if peer != self._me and peer not in self._remembered:
            self._remembered.append(peer)

    def _ask_remembered(self) -> None:
        if self._remembered:
            self._remembered.rotate()
            self._around.send(self._remembered[0], Find(self._me.identifier, self._me, 0))

    # -- what others say

    def heard(self, peer: Peer, now: float) -> None:
        """Any message is a sign of life."""
        table = self._around.table
        finger = table.finger(peer.identifier) or self._candidates.get(peer.identifier)
        if finger is not None:
            finger.heard = now
        if table.predecessor == peer:
            table.predecessor_heard = now
        self._growth.heard(peer, now)

    def receive(self, peer: Peer, message: Message, now: float) -> None:
        """Anything but publications and echoes."""
        match message:
            case Find():
                self._on_find(message)
            case Found():
                self._on_found(peer, message, now)
            case Probe():
                self._on_probe(peer, message, now)
            case Answer():
                self._on_answer(peer, message, now)
            case Behind():
                self._on_behind(peer, now)
            case Before():
                self._on_before(peer, message.peer, now)
            case Watch() if self.is_leaving:
                self._take_leave(peer)
            case Watch() if self._is_watched_enough(peer):
                self._around.counts.watchers_full += 1
            case Watch() if self.is_joined or self.is_closed:
                self._growth.watched(peer, message.start, message.end, now)
            case Watch():
                # whoever does not know yet who stands behind it cannot say what is wanted in its arc
                self._early[peer] = message
            case Unwatch():
                self._growth.forget(peer.identifier, now, is_dead=False)
            case Anew():
                self.lost(peer, now)
            case Forgotten():
                if (finger := self._around.table.finger(peer.identifier)) is not None:
                    self._watch(finger)
            case ArcWanted():
                self._on_told(peer, message, now)
            case Leaving():
                self._on_leaving(peer, message, now)
            case Left():
                self._growth.forget(peer.identifier, now, is_dead=False)
            case _:
                raise TypeError(f"{message} is not about the ring itself")

    def _is_watched_enough(self, peer: Peer) -> bool:
        """Whether so many look at this broker that no more can be told what is wanted here."""
        watching = len(self._growth.watchers) + len(self._early)
        return watching >= _MOST_WATCHERS and peer.identifier not in self._growth.watchers and peer not in self._early

    def _on_find(self, message: Find) -> None:
        table = self._around.table
        if not self.is_leaving and (self.is_joined or table) and table.is_mine(message.key):
            behind = tuple(table.successors) or (self._me,)
            if message.asker != self._me:
                self._around.send(message.asker, Found(message.key, behind))
            return
        hop = table.closest_before(message.key) or table.successor
        if hop is not None and message.hops < _FAR:
            self._around.send(hop, message._replace(hops=message.hops + 1))

    def _on_found(self, peer: Peer, message: Found, now: float) -> None:
        others = [each for each in message.successors if each != self._me]
        table = self._around.table
        if message.key != self._me.identifier:
            if others and message.successors[0] != self._me:
                self._consider(others[0], message.key, now)
            return
        if peer != self._me and not others and table.successor is None:
            others = [peer]
        if others and self._is_nearer(others[0]):
            self._consider(others[0], self._me.identifier + 1, now)
        if peer != self._me and (not self.is_joined or message.successors[:1] != (self._me,)):
            self._around.send(peer, Behind())

    def _is_nearer(self, peer: Peer) -> bool:
        """Whether a broker stands between this one and its successor."""
        table = self._around.table
        return table.successor is None or table.way_to(peer.identifier) < table.way_to(table.successor.identifier)

    def _on_probe(self, peer: Peer, message: Probe, now: float) -> None:
        table = self._around.table
        before: tuple[Peer, ...] = ()
        behind: tuple[Peer, ...] = ()
        if not self.is_joined and not table:
            # whoever takes this broker for an earlier life of it, or counts on one that knows nobody, has to look on
            return
        if self.is_leaving:
            self._take_leave(peer)
        elif message.role is Role.SUCCESSOR:
            self._claims(peer, now)
            before = (table.predecessor,) if table.predecessor else ()
            behind = tuple(table.successors)
        if message.version and peer.identifier not in self._growth.watchers:
            self._around.send(peer, Forgotten())
        self._around.send(peer, Answer(before, behind))

    def _claims(self, peer: Peer, now: float) -> None:
        """A broker says that it stands right before this one."""
        table = self._around.table
        old = table.predecessor
        me = self._me.identifier
        if peer in self._leavers or (old and way(old.identifier, peer.identifier) > way(old.identifier, me)):
            return
        table.predecessor, table.predecessor_heard = peer, now
        if old == peer:
            return
        self._growth.look_found(now)
        self._look_joined(now)
        for watcher in self._growth.watchers.values():
            if way(watcher.start, peer.identifier) < way(watcher.start, me) and watcher.peer != peer:
                self._around.send(watcher.peer, Before(peer))

    def _on_answer(self, peer: Peer, message: Answer, now: float) -> None:
        table = self._around.table
        if peer != table.successor:
            return
        table.know_behind(peer, message.successors)
        before = message.before[0] if message.before else None
        if before == self._me:
            if not self.is_closed:
                self._close(now)
                self._answer_early(now)
                self._changed(None, now)
        elif before is not None and self._is_nearer(before):
            self.is_closed = False
            self._consider(before, self._me.identifier + 1, now)

    def _close(self, now: float) -> None:
        """It is known who stands behind this broker, and so that whoever it had lost there is gone."""
        self.is_closed = True
        if not self._around.table.lost_told.is_empty:
            self._around.table.lost_told = NOBODY
            self._growth.shrank(now)

    def _on_behind(self, peer: Peer, now: float) -> None:
        table = self._around.table
        finger = table.finger(peer.identifier)
        if peer in self._leavers:
            # it is back
            self._leavers.remove(peer)
        if self._is_nearer(peer):
            self._consider(peer, self._me.identifier + 1, now)
        elif finger is not None and peer == table.successor:
            # its echo may have been lost
            finger.start = (self._me.identifier + 1) % AROUND
            self._watch(finger)
        else:
            self._on_find(Find(peer.identifier, peer, 0))

    def _on_before(self, peer: Peer, other: Peer, now: float) -> None:
        finger = self._around.table.finger(peer.identifier)
        if finger is not None and way(finger.start, other.identifier) < way(finger.start, peer.identifier):
            self._consider(other, finger.start, now)

    def _on_leaving(self, peer: Peer, message: Leaving, now: float) -> None:
        table = self._around.table
        behind = [each for each in message.successors if each not in (peer, self._me)]
        if peer not in self._leavers:
            self._leavers.append(peer)
        finger = table.finger(peer.identifier)
        if table.predecessor == peer:
            table.predecessor = None
            if message.before and message.before[0] != self._me:
                table.predecessor, table.predecessor_heard = message.before[0], now
        if table.successor == peer:
            table.know_behind(peer, behind)
        self._remove(peer, now, is_dead=False)
        if finger is not None and behind:
            self._consider(behind[0], finger.start, now)
        self._growth.look_found(now)
        self._around.send(peer, Left())

    def echoed(self, peer: Peer, now: float) -> None:
        """Somebody and all behind it know what this broker wants; whether it is joined by that."""
        if peer == self._around.table.predecessor:
            self._look_joined(now)

    def _look_joined(self, now: float) -> None:
        """Whether whoever stands right before this broker has echoed all, and so everybody knows of it.

        That the place right behind a watcher leads here is not enough: who knows too few brokers may think so.
        """
        predecessor = self._around.table.predecessor
        if self.is_joined or predecessor is None:
            return
        watcher = self._growth.watchers.get(predecessor.identifier)
        if watcher is not None and not watcher.pending:
            self.is_joined = True
            self._changed(None, now)

    # -- fingers

    def _consider(self, peer: Peer, start: int, now: float) -> None:
        """Make a broker a finger, unless it is one: it is asked what its arc wants, and comes in when it has told."""
        table = self._around.table
        start %= AROUND
        if peer == self._me or peer in self._leavers:
            return
        known = table.finger(peer.identifier)
        if known is not None:
            if way(start, peer.identifier) > way(known.start, peer.identifier):
                known.start = start
        elif peer.identifier not in self._candidates:
            self._candidates[peer.identifier] = candidate = Finger(peer, start, now)
            self._watch(candidate)

    def _watch(self, finger: Finger) -> None:
        end = self._dispatch.watched_end(self._around.table, finger) % AROUND
        self._around.send(finger.peer, Watch(finger.start, end))

    def _on_told(self, peer: Peer, message: ArcWanted, now: float) -> None:
        table = self._around.table
        told = self._account(message)
        known = echo(self._around, peer, message.version)
        candidate = self._candidates.pop(peer.identifier, None)
        finger = table.finger(peer.identifier)
        if candidate is not None and finger is None:
            if not message.is_whole:
                self._candidates[peer.identifier] = candidate
                return
            candidate.told, candidate.until, candidate.version = told, message.end, message.version
            self._install(candidate, now)
            self._growth.spread(peer.identifier, told, partial(self._replaces_others, candidate, known), now)
        elif finger is None:
            self._around.send(peer, Unwatch())
        elif message.is_whole:
            before, finger.told = finger.told, told
            finger.until, finger.version = message.end, message.version
            if before.covers(told):
                self._growth.shrank(now)
            self._growth.spread(peer.identifier, told, known, now)
        elif message.version != finger.version + 1:
            self._watch(finger)
        else:
            finger.told = table.accounting.joined(finger.told, told)
            finger.version = message.version
            self._growth.spread(message.place, told, known, now)

    def _account(self, message: ArcWanted) -> ArcAccount:
        """What somebody has told, as far as it can be joined with what others tell."""
        spaces = self._around.spaces
        if not message.is_apart:
            return ArcAccount(None, admitted(message.summary, spaces))
        return ArcAccount({peer: admitted(summary, spaces) for peer, summary in message.members})

    def _install(self, finger: Finger, now: float) -> None:
        table = self._around.table
        was_alone = not table
        if table.add(finger) is None:
            self.is_closed = False
            self._around.send(finger.peer, Probe(Role.SUCCESSOR, finger.version))
            if was_alone:
                self.look_up_all()

    def _answer_early(self, now: float) -> None:
        """It is known who stands behind this broker: who has asked before what its arc wants is told."""
        early, self._early = self._early, {}
        for peer, watch in early.items():
            self._growth.watched(peer, watch.start, watch.end, now)

    def _replaces_others(self, finger: Finger, known: Then, now: float) -> None:
        """Everybody knows what a new finger has told: whoever had to tell that before has less to tell now.

        Not earlier: what was on its way through them would get to those behind here after its echo.
        """
        known(now)
        front = self._around.table.before(finger)
        if front is not None:
            self._watch(front)
        if self._around.table:
            self._prune(now)

    def _prune(self, now: float) -> None:
        """Forget fingers at which no place leads any more."""
        table = self._around.table
        assert table.successor is not None, "somebody was just installed"
        distances = [table.way_to(each.peer.identifier) for each in table]
        kept = {distances[0]}
        for place in starts(self._me.identifier, distances[0]):
            kept.update([distance for distance in distances if distance >= table.way_to(place)][:1])
        for finger, distance in zip(list(table), distances, strict=True):
            if distance not in kept:
                front = table.remove(finger)
                self._around.send(finger.peer, Unwatch())
                self._changed(finger.peer, now)
                if front is not None:
                    self._watch(front)

    # -- deaths

    def refused(self, peer: Peer, sent: float, now: float) -> bool:
        """A link could not hand something over; whether to somebody in the table."""
        table = self._around.table
        finger = table.finger(peer.identifier)
        is_known = finger is not None or peer in (table.predecessor, *table.successors)
        heard = 0.0 if finger is None else finger.heard
        if table.predecessor == peer:
            heard = max(heard, table.predecessor_heard)
        if is_known and heard <= sent:
            self.lost(peer, now)
        return is_known

    def lost(self, peer: Peer, now: float) -> None:
        """A broker does not answer, or a link could not hand over what was for it."""
        table = self._around.table
        if peer == self._me:
            return
        self._around.counts.deaths += 1
        self.remember(peer)
        finger = table.finger(peer.identifier)
        self._growth.forget(peer.identifier, now, is_dead=True)
        self._remove(peer, now, is_dead=True)
        if finger is not None and table:
            self._find(finger.start)

    def member_lost(self, peer: Peer) -> None:
        """A broker of an arc that is known by name only is gone: its finger has to tell anew, and is handed the arc."""
        for part in self._around.table.parts(peer.identifier, (peer.identifier + 1) % AROUND):
            part.finger.until = part.finger.peer.identifier
            self._watch(part.finger)

    def _remove(self, peer: Peer, now: float, *, is_dead: bool) -> None:
        table = self._around.table
        self._candidates.pop(peer.identifier, None)
        finger = table.finger(peer.identifier)
        was_first = table.successor == peer
        table.lost(peer)
        if finger is None:
            return
        front = table.remove(finger)
        if was_first:
            self.is_closed = False
            self._promote(finger, now)
        elif front is not None:
            self._watch(front)
        if not table and self.is_joined and is_dead:
            # everybody else is gone, as far as it can be seen from here
            self._close(now)
        self._growth.look_found(now)
        self._changed(peer, now)

    def _promote(self, gone: Finger, now: float) -> None:
        """Somebody else becomes the successor: the next that is known."""
        table = self._around.table
        table.lost_told = table.accounting.joined(table.lost_told, gone.told)
        table.successors = [each for each in table.successors if each not in self._leavers]
        heir = table.successors[0] if table.successors else None
        first = next(iter(table), None)
        if heir is None or (first is not None and table.way_to(heir.identifier) >= table.way_to(first.peer.identifier)):
            if first is not None:
                table.know_behind(first.peer, [each for each in table.successors if each != first.peer])
                self._around.send(first.peer, Probe(Role.SUCCESSOR, first.version))
            return
        self._candidates.pop(heir.identifier, None)
        finger = Finger(heir, (self._me.identifier + 1) % AROUND, now)
        # nothing of it is certain yet, so it is entered for everything; others are told what is known to be wanted
        finger.told = gone.told
        table.add(finger)
        self._watch(finger)
        self._around.send(heir, Probe(Role.SUCCESSOR, 0))
