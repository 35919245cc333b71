"""One core among brokers of which it knows only a few: what its clients want and publish becomes the ring's.

A broker has no place on the ring before it knows where others reach it (:meth:`RingMember.begin`), and is not joined
before it has found somebody who is.  Whoever is given no address of another broker founds a ring; one that was on a
ring before looks first for those who stood behind it.

What is owed, and how far each lane of others has come, is noted in the batch of the store that holds what became of it
here, so what was acknowledged survives both of its ends; between them nothing is kept (ADR 50).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from sys import maxsize
from typing import Final

from tieline.core.broker import Broker
from tieline.core.ports import Prospect
from tieline.core.timers import Action, Timer, Timers
from tieline.overlay.frames.frame import LARGEST
from tieline.overlay.ring.dispatch import DISPATCHES
from tieline.overlay.ring.identifiers import identifier_of
from tieline.overlay.ring.merging import Digests
from tieline.overlay.ring.messages import Peer
from tieline.overlay.ring.node import RingNode, RingWorld
from tieline.overlay.ring.promises import Batch
from tieline.overlay.ring.settings import RingSettings
from tieline.overlay.ring_member.arriving import Arriving
from tieline.overlay.ring_member.declared import Declared
from tieline.overlay.ring_member.everybody import Everybody
from tieline.overlay.ring_member.granting import Granting
from tieline.overlay.ring_member.links import RingLinks
from tieline.overlay.ring_member.notes import Note, RingNotes

#: Topics of the broker itself and others of its own, which do not travel.
_OWN: Final = "$"
#: What others are asked for by a subscription, as work.
_WORK_PER_SUBSCRIPTION: Final = 40
#: Beside the longest message of a client, what a batch of them has.
_BESIDE: Final = 1 << 17
#: How often links are looked after, and how often somebody is dialled by whom the ring may be found.
_LOOK_S: Final = 0.5
#: Rounds of telling the ring what links could not do, and of what that leads to, in one turn.
_ROUNDS: Final = 64


class RingMember:
    """The neighbours of one core, on a ring; for the core a :class:`~tieline.core.ports.Neighbours`."""

    def __init__(  # what a shell knows and tests choose
        self,
        core: Broker,
        settings: RingSettings | None = None,
        *,
        incarnation: int,
        life: int,
        entries: Sequence[str] = (),
        notes: Iterable[Note] = (),
        dispatch: str = "arcs",
    ) -> None:
        """``entries`` are addresses where brokers of the ring may be."""
        self._core = core
        self.name = core.settings.name
        #: The time of what is being handled.
        self.now = 0.0
        self.settings = settings = settings or RingSettings()
        self._dispatch = dispatch
        self.entries = tuple(entries)
        self._notes = RingNotes(notes, incarnation, self._keep, settings.remembered)
        most = min(core.settings.limits.packet_bytes, LARGEST - 2 * _BESIDE)
        # nobody may publish what others would not take: their links would end with it, again and again
        agreed = f"{dispatch} {settings.stabilise_s} {most}"
        self._declared = Declared(core.settings, core.events, agreed)
        self.node: RingNode | None = None
        self.granting = Granting(self._declared)
        self.everybody = Everybody(core, self._declared, settings, most)
        self.links = RingLinks(
            self.name,
            life,
            self._declared.fingerprint,
            self,
            patience_s=settings.lease_s,
            longest=max(most, settings.batch_bytes) + _BESIDE,
            spend=self._spend,
        )
        self.arriving = Arriving(core, self._notes, self.links.name_of, self._time)
        #: Addresses that are to be dialled although nobody knows who is there.
        self.doors: list[str] = []
        self._next_door = 0
        self._has_begun = False
        self._began_at = 0.0
        if not core.journal.is_volatile:
            core.journal.before_seal = self._seal
        core.routes.neighbours = self

    def __repr__(self) -> str:
        return f"<RingMember {self.name} {'on the ring' if self.is_joined else 'looking for the ring'}>"

    # -- coming and going

    def begin(self, address: str, now: float) -> None:
        """Others reach this broker there: look for the ring, or found one."""
        self.now = self._began_at = now
        core, settings = self._core, self.settings
        self.links.address = address
        spaces = self._declared.spaces
        world = RingWorld(
            alarms=_Alarms(self, core.timers), send=self._send, deliver=self.arriving.deliver, commit=self._commit
        )
        ends = self._notes.ends
        if core.journal.is_volatile:
            # nothing says whether it was on the ring before; others may take it for one that was
            ends = replace(ends, has_lived=True)
        self.node = self.granting.node = self.everybody.node = RingNode(
            Peer(identifier_of(self.name), address),
            world,
            merging=Digests(spaces),
            dispatch=DISPATCHES[self._dispatch](),
            spaces=spaces,
            # whether there is room is asked before a message is accepted; what was accepted is owed
            settings=replace(settings, owed_bytes=maxsize),
            ends=ends,
        )
        self.node.resume(now)
        # what clients of an earlier life ask for is known before this broker is taken for one that is joined
        self.granting.say(now)
        for peer in self._notes.peers:
            self.links.reach(peer, now)
        if not self.entries and not self._notes.peers:
            self._join(None, now)
        self._look(now)

    def _join(self, via: Peer | None, now: float) -> None:
        assert self.node is not None, "it has an address"
        self._has_begun = True
        self.node.begin(via, now)

    @property
    def is_joined(self) -> bool:
        """Whether everybody who has to know of this broker does."""
        return self.node is not None and self._has_begun and self.node.upkeep.is_joined

    @property
    def unfinished(self) -> int:
        """What is owed, carried for others, or waited for here."""
        return 0 if self.node is None else self.node.unfinished + len(self.arriving)

    def leave(self, now: float) -> None:
        """The broker stops: those who know it need not find that out."""
        self.now = now
        if self.node is not None and self.is_joined:
            self.node.leave(now)
            self.end_turn(now)

    def _look(self, now: float) -> None:
        """Once in a while: links that are silent, the ring that is not found yet, and who stands behind."""
        node = self.node
        assert node is not None, "it has begun"
        self.now = now
        self._core.timers.at(now + _LOOK_S, self._look)
        self.links.look(now)
        if not node.table and self.entries:
            self.doors.append(self.entries[self._next_door % len(self.entries)])
            self._next_door += 1
        elif not self._has_begun and not self.entries and now - self._began_at > 2 * self.settings.lease_s:
            # nobody is left of those who stood behind it, and it knows of nobody else
            self._join(None, now)
        if not self._core.journal.is_volatile:
            self._notes.know(tuple(node.table.successors))

    # -- what links say

    def met(self, peer: Peer, now: float) -> None:
        """Somebody is connected: by whoever is the first the ring is joined."""
        assert self.node is not None, "it has greeted somebody"
        if not self._has_begun:
            self._join(peer, now)
        self.node.remember(peer)

    def came(self, peer: Peer, data: bytes, now: float) -> bool:
        """A message of the ring has come; False if it is none."""
        assert self.node is not None, "it has greeted somebody"
        return self.node.receive(peer, data, now)

    def returned(self, peer: Peer, data: bytes, sent: float, now: float, *, may_have_come: bool) -> None:
        """A message could not be handed over."""
        assert self.node is not None, "it has sent something"
        self.node.refused(peer, data, sent, now, may_have_come=may_have_come)

    def renewed(self, peer: Peer, now: float) -> None:
        """A broker that was known has begun anew."""
        assert self.node is not None, "it has greeted somebody"
        self.node.renewed(peer, now)

    # -- what the ring asks for

    def _send(self, peer: Peer, data: bytes) -> None:
        self.links.send(peer, data, self.now)

    def _time(self) -> float:
        return self.now

    def _commit(self, batch: Batch, is_owed: bool, then: Callable[[float], None]) -> None:
        journal = self._core.journal
        if journal.is_volatile:
            then(self.now)
            return
        if is_owed:
            self._notes.owe(batch)
        else:
            self._notes.settle(batch)
        journal.then(lambda: then(self.now))

    def _keep(self, key: bytes, value: bytes | None) -> None:
        if not self._core.journal.is_volatile:
            self._core.journal.note(key, value)

    # -- what clients of this broker want

    def began(self, filter_: str, condition: str | None, share: str | None = None) -> None:
        """A subscription begins: others hear of it soon; a group is one of this broker."""
        if filter_.startswith(_OWN):
            return
        was_due = self.granting.is_due
        self._core.work.did(_WORK_PER_SUBSCRIPTION * self.granting.began(filter_, condition))
        if not was_due and self.granting.is_due:
            self._core.timers.soon(self._say)

    def ended(self, filter_: str, condition: str | None, share: str | None = None) -> None:
        """A subscription is over: others hear of it after a while."""
        if not filter_.startswith(_OWN):
            self._core.work.did(_WORK_PER_SUBSCRIPTION * self.granting.ended(filter_, condition, self.now))

    def _say(self, now: float) -> None:
        self.now = now
        self.granting.say(now)

    def refusal(self, filter_: str, condition: str | None, share: str, of_session: int) -> str | None:
        """Nobody else has to know of groups."""
        return None

    def wait(self, then: Callable[[], None], now: float) -> bool:
        """Whether somebody does not know yet of what has begun."""
        self.now = now
        return self.granting.wait(then, now)

    def prospect(self, name: str, *, is_assured: bool) -> Prospect:
        """What would become of a message for all others."""
        if self.is_joined:
            return Prospect("carried", "around the ring, to those who want it")
        if is_assured:
            return Prospect("waits", "this broker is not on the ring yet")
        return Prospect("dropped", "this broker is not on the ring yet")

    # -- turns and commits

    def receive(self, handle: int, data: bytes, now: float) -> bool:
        """Bytes have come from another broker; True if some wait for :meth:`go_on`."""
        self._core.work.enough()
        self.now = now
        return self.links.receive(handle, data, now)

    def go_on(self, handle: int, now: float) -> bool:
        """Others have had their turn: look at more of what has come; whether something still waits."""
        self._core.work.enough()
        self.now = now
        return self.links.go_on(handle, now)

    def _spend(self, units: int) -> bool:
        work = self._core.work
        work.did(units)
        return self.arriving.is_behind or work.is_spent()

    def end_turn(self, now: float) -> None:
        """Everything that was ready has been handled: what was gathered leaves, and what is safe goes on."""
        self.now = now
        self.everybody.flush(now)
        self.arriving.end_turn(now)
        for _ in range(_ROUNDS):
            if self.links.is_settled:
                break
            self.links.settle(now)
        else:
            self._core.timers.soon(self.end_turn)
        self.everybody.reckon(self.settings.owed_bytes, now)

    def _seal(self) -> None:
        """A batch is handed to the store: what is owed is part of it."""
        self.everybody.flush(self.now)


class _Alarms:
    """The timers of a core, which tell a member what time it is."""

    def __init__(self, member: RingMember, timers: Timers) -> None:
        self._member = member
        self._timers = timers

    def at(self, when: float, action: Action) -> Timer:
        """Call ``action(now)`` once the time has come."""
        return self._timers.at(when, partial(self._call, action))

    def cancel(self, timer: Timer | None) -> None:
        """Let something not happen."""
        self._timers.cancel(timer)

    def _call(self, action: Action, now: float) -> None:
        self._member.now = now
        action(now)
