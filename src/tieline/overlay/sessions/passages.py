"""All sessions that are on their way here or from here: what is passed on, held and let in, and when that is over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from heapq import heappop, heappush
from typing import Final

from tieline.core.broker import Broker
from tieline.core.client import Session
from tieline.core.durable.journal import terms_of
from tieline.core.handover import Subscribed, Terms
from tieline.core.message import Message, Origin
from tieline.core.receiver import Entry, Grant
from tieline.overlay.counts import Counts
from tieline.overlay.sessions.errands import Done, Errand, Marked, Tail, TailEnd, Waiting
from tieline.overlay.sessions.passage import HERE, IGNORE, TAKE, Mark, Passage
from tieline.overlay.sessions.passage_notes import PassageNotes, message_parcel
from tieline.overlay.sessions.stand_in import Gate, StandIn

#: Bytes that one session holds before order is given up: nothing is lost by that.
_MOST_HELD: Final = 8 << 20
#: How long an old home that is out of reach is waited for, and how long whatever is missing of a passage.
AWAIT_S: Final = 5.0
GIVE_UP_S: Final = 86_400.0


class Passages:
    """The passages of one broker."""

    def __init__(  # what a message on its way touches
        self,
        core: Broker,
        broker: int,
        *,
        counts: Counts,
        name_of: Callable[[int], str],
        origin_of: Callable[[int, str], Origin],
        position: Callable[[int, int], int],
        tell: Callable[[int, Errand, bytes], None],
        may_read: Callable[[int, bytes], bool],
        is_full: Callable[[int], bool],
    ) -> None:
        self._core = core
        self._broker = broker
        self._counts = counts
        self._name_of = name_of
        self._position = position
        self._tell = tell
        self._may_read = may_read
        self._is_full = is_full
        self._notes = PassageNotes(core.journal, origin_of)
        #: From where what is routed just now has come: origin, lane and number.
        self.source = broker, HERE, 0
        self._last = 0
        #: By client id and epoch: as the new home, and as the old one.
        self.arriving: dict[tuple[str, int], Passage] = {}
        self.leaving: dict[tuple[str, int], Passage] = {}
        #: By client id, the last that came.
        self._here: dict[str, Passage] = {}
        self._stand_ins: dict[int, StandIn] = {}
        #: By origin and lane, floors (True) and ceilings that the stream has not come to, lowest first.
        self._awaited: dict[tuple[int, int], list[tuple[int, int, Passage, bool]]] = {}
        self._serial = 0
        #: Called when a passage needs the mark of an origin.
        self.on_origin: Callable[[Passage, int, float], None] = _ignore
        #: Called with the client id when a session is here with everything that was on its way.
        self.on_arrived: Callable[[str, float], None] = _ignore_arrival

    def __len__(self) -> int:
        return len(self.arriving) + len(self.leaving)

    # -- a session arrives

    def arrive(self, session: Session, epoch: int, before: int, now: float) -> Passage:
        """A session has come from another broker: what comes for it is looked at from now on."""
        self._last += 1
        passage = Passage(self._last, session.client_id, session.user, now)
        passage.before, passage.epoch, passage.is_open = before, epoch, False
        self.arriving[session.client_id, epoch] = self._here[session.client_id] = passage
        self._divert(session, passage)
        self._notes.passage(passage)
        return passage

    def _divert(self, session: Session, passage: Passage) -> None:
        session.divert(Gate(self._core.delivery, partial(self._offered, passage)))

    def of(self, client_id: str, epoch: int) -> Passage | None:
        """The passage by which a session came here, if it is under way."""
        return self.arriving.get((client_id, epoch))

    def is_arriving(self, client_id: str) -> bool:
        """Whether something of a session that came here is on its way still."""
        return self._still_arriving(client_id) is not None

    def lacks_parts(self, client_id: str) -> bool:
        """Whether a session has begun to come, and subscriptions or packet ids of it may be on their way still."""
        passage = self._still_arriving(client_id)
        return passage is not None and not passage.is_complete

    def completed(self, passage: Passage, origins: Iterable[int], deferred: Iterable[int]) -> None:
        """All of its state has come: every origin is to be asked for its mark."""
        passage.is_complete = True
        for origin in origins:
            passage.part(origin)
        for origin in deferred:
            passage.part(origin).is_deferred = True
        self._notes.passage(passage)
        for origin in passage.parts:
            self._notes.part(passage, origin)

    # -- a session leaves

    def leave(self, session: Session, epoch: int, after: int, now: float) -> Passage:
        """A session is about to go to another broker; it may still be on its way here."""
        client_id = session.client_id
        passage = self._still_arriving(client_id)
        if passage is None:
            self._last += 1
            passage = Passage(self._last, client_id, session.user, now)
        passage.after, passage.after_epoch = after, epoch
        self.leaving[client_id, epoch] = passage
        return passage

    def _still_arriving(self, client_id: str) -> Passage | None:
        passage = self._here.get(client_id)
        return None if passage is None or passage.after or not passage.before else passage

    def left(self, passage: Passage, subscriptions: tuple[Subscribed, ...]) -> None:
        """The session is gone: what still comes for it here is passed on."""
        passage.subscriptions = subscriptions
        self._stand(passage)
        self._notes.passage(passage)
        for origin in passage.parts:
            self._notes.part(passage, origin)

    def _stand(self, passage: Passage) -> None:
        take = partial(self._offered, passage)
        stand_in = StandIn(passage.client_id, passage.user, take, partial(self._is_full, passage.after))
        stand_in.subscriptions = self._core.handovers.stand_in(stand_in, passage.subscriptions)
        self._stand_ins[passage.number] = stand_in

    def await_estate(self, passage: Passage, number: int) -> None:
        """More of the session waits in the store alone: it goes before everything that comes now."""
        passage.estate, passage.is_open = number, False
        self._core.estates.heirs[number] = partial(self._inherited, passage)
        self._notes.passage(passage)

    def _inherited(self, passage: Passage, entries: list[Entry] | None, now: float) -> None:
        if entries is None:
            passage.estate = 0
            passage.is_open = not passage.before
            self._notes.passage(passage)
            self._settle(passage, now)
            return
        key = passage.client_id, passage.after_epoch
        for item, grant in entries:
            if isinstance(item, Message):
                self.send(passage, Waiting(*key, terms_of(grant)), item, now)

    def send(self, passage: Passage, errand: Errand, message: Message, now: float) -> None:
        """Give the next home a message, if it may have it."""
        if self._may_read(passage.after, message.topic):
            if not self._core.journal.is_volatile:
                self._core.journal.expected += 1  # its acknowledgement waits for what is owed
            self._tell(passage.after, errand, message_parcel(message, now))
        else:
            self._counts.withheld += 1

    # -- messages

    def _offered(self, passage: Passage, message: Message, grant: Grant, now: float) -> None:
        """Something is routed to a session that is under way."""
        origin, lane, number = self.source
        if origin not in passage.parts and passage.before:
            self.on_origin(passage, origin, now)
        verdict = passage.judge(origin, lane, number)
        if grant.share is not None:
            # it was given to this member alone, and no mark says otherwise
            self._take(passage, origin, message, terms_of(grant), now)
        elif verdict == TAKE and message.origin.publisher not in passage.waiting:
            self._take(passage, origin, message, terms_of(grant), now)
        elif verdict != IGNORE:
            # others here get it at once, and when they have, the store forgets what it called it
            held = passage.hold(origin, lane, number, message.afresh(), terms_of(grant))
            self._notes.held(passage, held, now)
            self._bound(passage, now)

    def _bound(self, passage: Passage, now: float) -> None:
        if passage.held_bytes > _MOST_HELD and not passage.is_open:
            self._open(passage, now)

    def _open(self, passage: Passage, now: float) -> None:
        """Wait for the old home no longer: what it still passes on comes later than it should."""
        self._counts.tails_not_awaited += 1
        passage.is_open = True
        self._notes.passage(passage)
        self._settle(passage, now)

    def _take(self, passage: Passage, origin: int, message: Message, terms: Terms, now: float) -> None:
        if passage.after:
            errand = Tail(passage.client_id, passage.after_epoch, self._name_of(origin), terms)
            self.send(passage, errand, message, now)
            return
        session = self._core.sessions.get(passage.client_id)
        if session is not None:
            self._core.handovers.put_waiting(session, message, terms, now)

    def let_in(self, passage: Passage, origin: int, message: Message, terms: Terms, now: float) -> None:
        """The old home passes something on: it is before what has come here straight, but for its publisher's moves.

        What the publisher had sent before, to a broker that had made its mark already, is here and waits.
        """
        behind = passage.held_before(message)
        if behind is not None:
            self._notes.held(passage, passage.hold_behind(behind, origin, message, terms), now)
            self._bound(passage, now)
        elif passage.estate:
            self._notes.held(passage, passage.hold_early(message, terms), now)
        else:
            self._take(passage, origin, message, terms, now)

    def tail_ended(self, passage: Passage, origin: int, now: float) -> None:
        """The old home has passed on everything of an origin."""
        passage.part(origin).has_tail = True
        self._notes.part(passage, origin)
        self._settle(passage, now)

    # -- marks

    def floor(self, passage: Passage, origin: int, mark: Mark, now: float) -> None:
        """An origin says from where on it sends to us what the session wants."""
        part = passage.part(origin)
        if part.floor is None:
            part.floor = mark
            part.below = self._watch(passage, origin, mark, is_floor=True)
            if passage.after:
                errand = Marked(passage.client_id, passage.after_epoch, self._name_of(origin))
                self._tell(passage.after, errand, b"")
            self._notes.part(passage, origin)
            self._settle(passage, now)

    def marked(self, passage: Passage, origin: int) -> None:
        """The mark of an origin for the move before has come: it may be asked for ours."""
        passage.part(origin).is_deferred = False
        self._notes.part(passage, origin)

    def ceiling(self, passage: Passage, origin: int, mark: Mark, now: float) -> None:
        """An origin says from where on it sends to the next home what the session wants."""
        part = passage.part(origin)
        if part.ceiling is None:
            part.ceiling = mark
            part.missing = self._watch(passage, origin, mark, is_floor=False)
            self._notes.part(passage, origin)
            self._settle(passage, now)

    def _watch(self, passage: Passage, origin: int, mark: Mark, *, is_floor: bool) -> int:
        """How many lanes have not come to a mark; they are watched until they have."""
        missing = 0
        for lane, number in mark.items():
            if lane != HERE and self._position(origin, lane) < number:
                missing += 1
                self._serial += 1
                heappush(self._awaited.setdefault((origin, lane), []), (number, self._serial, passage, is_floor))
        return missing

    def advanced(self, origin: int, lane: int, position: int, now: float) -> None:
        """A stream has moved on: some passages may have got everything that is theirs."""
        waiting = self._awaited.get((origin, lane))
        if waiting is None:
            return
        while waiting and waiting[0][0] <= position:
            _, _, passage, is_floor = heappop(waiting)
            part = passage.parts.get(origin)
            if part is None:
                continue  # it is over
            if is_floor:
                part.below -= 1
            else:
                part.missing -= 1
            self._settle(passage, now)
        if not waiting:
            self._awaited.pop((origin, lane), None)

    def met(self, origins: Iterable[int], now: float) -> None:
        """There are brokers that were not known: what they send may go to old homes, of which they may know more."""
        for passage in list(self.arriving.values()):
            for origin in origins:
                if passage.is_complete and origin not in passage.parts:
                    self.on_origin(passage, origin, now)

    def renewed(self, broker: int, now: float) -> None:
        """A broker has begun anew and knows nothing: what was to come from it does not."""
        for passage in [*self.arriving.values(), *self.leaving.values()]:
            if passage.after == broker and passage.after_epoch:
                self._remove(passage)
                continue
            # the next home waits for the end of its tail, also where nothing of it has come
            part = passage.part(broker) if passage.after else passage.parts.get(broker)
            if part is not None:
                part.floor, part.below = part.floor or {}, 0
                if passage.after and part.ceiling is None:
                    for held in passage.let_out(broker):
                        self._notes.released(passage, held)
                        self._take(passage, broker, held.message, held.terms, now)
                if passage.after:
                    part.ceiling, part.missing = part.ceiling or {}, 0
                self._notes.part(passage, broker)
                self._settle(passage, now)
            if passage.before == broker:
                passage.is_complete = True
                self._notes.passage(passage)
                for origin in list(passage.parts):
                    if passage.before:  # else that was the last that it waited for
                        self.tail_ended(passage, origin, now)
        for key in [key for key in self._awaited if key[0] == broker]:
            del self._awaited[key]

    def _settle(self, passage: Passage, now: float) -> None:
        """Something is known that was not: what was held for it goes on, and perhaps that is the end."""
        if passage.has_arrived and not passage.estate and not passage.is_open:
            passage.is_open = True
            self._notes.passage(passage)
        for held, is_taken in passage.let_go():
            self._notes.released(passage, held)
            if is_taken:
                self._take(passage, held.origin, held.message, held.terms, now)
        for origin, part in passage.parts.items():
            if passage.after and not part.is_ended and passage.is_over(origin):
                part.is_ended = True
                self._notes.part(passage, origin)
                errand = TailEnd(passage.client_id, passage.after_epoch, self._name_of(origin))
                self._tell(passage.after, errand, b"")
        if passage.before and passage.has_arrived:
            self._arrived(passage)

    def _arrived(self, passage: Passage) -> None:
        """The old home is not needed any more."""
        self._tell(passage.before, Done(passage.client_id, passage.epoch), b"")
        self.arriving.pop((passage.client_id, passage.epoch), None)
        passage.before = 0
        if passage.after:
            self._notes.passage(passage)
            return
        session = self._core.sessions.get(passage.client_id)
        if session is not None:
            session.divert(self._core.delivery)
        self._end(passage)
        self._core.timers.soon(partial(self.on_arrived, passage.client_id))

    def _end(self, passage: Passage) -> None:
        if self._here.get(passage.client_id) is passage:
            del self._here[passage.client_id]
        self._notes.forget(passage)
        passage.parts.clear()
        passage.held.clear()

    def done(self, client_id: str, epoch: int) -> None:
        """The next home needs nothing more of us."""
        passage = self.leaving.get((client_id, epoch))
        if passage is not None:
            self._remove(passage)

    def _remove(self, passage: Passage) -> None:
        if passage.before:
            self._tell(passage.before, Done(passage.client_id, passage.epoch), b"")
        self.leaving.pop((passage.client_id, passage.after_epoch), None)
        self.arriving.pop((passage.client_id, passage.epoch), None)
        stand_in = self._stand_ins.pop(passage.number, None)
        if stand_in is not None:
            stand_in.is_over = True
            self._core.handovers.stand_down(stand_in, stand_in.subscriptions)
        self._core.estates.heirs.pop(passage.estate, None)
        self._end(passage)

    def session_ended(self, client_id: str) -> None:
        """A session that had arrived is over: the old home need not pass anything on."""
        passage = self._still_arriving(client_id)
        if passage is not None:
            self._remove(passage)

    def look_after(self, reachable: frozenset[int], away_since: dict[int, float], now: float) -> None:
        """Called now and then: nobody waits for ever for a broker that is gone."""
        for passage in list(self.arriving.values()):
            if not passage.is_open and not passage.estate and self._is_in_vain(passage, reachable, away_since, now):
                self._open(passage, now)
        for passage in [*self.arriving.values(), *self.leaving.values()]:
            if now - passage.began >= GIVE_UP_S:
                self._counts.moves_given_up += 1
                for origin in list(passage.parts):
                    self.floor(passage, origin, {}, now)
                    self.tail_ended(passage, origin, now)
                if passage.after and (passage.client_id, passage.after_epoch) in self.leaving:
                    self._remove(passage)

    def _is_in_vain(
        self, passage: Passage, reachable: frozenset[int], away_since: dict[int, float], now: float
    ) -> bool:
        """Whether what a session waits for is to come from brokers that have been out of reach for long."""
        awaited = {passage.before, *(origin for origin, part in passage.parts.items() if part.floor is None)}
        if passage.before in reachable and not all(
            part.has_tail or origin not in reachable for origin, part in passage.parts.items()
        ):
            return False
        gone = [broker for broker in awaited if broker not in reachable and broker != self._broker]
        return bool(gone) and all(now - away_since.get(broker, now) >= AWAIT_S for broker in gone)

    def restore(self, notes: Iterable[tuple[bytes, bytes]], now: float) -> None:
        """Go on with what was under way when the predecessor ended; its sessions are back."""
        for passage in self._notes.read(notes, now):
            self._last = max(self._last, passage.number)
            self._resume(passage)

    def _resume(self, passage: Passage) -> None:
        if passage.before:
            self.arriving[passage.client_id, passage.epoch] = passage
            if not passage.after:
                self._here[passage.client_id] = passage
        for origin, part in passage.parts.items():
            part.below = self._watch(passage, origin, part.floor or {}, is_floor=True)
            part.missing = self._watch(passage, origin, part.ceiling or {}, is_floor=False)
        if passage.after:
            self.leaving[passage.client_id, passage.after_epoch] = passage
            self._stand(passage)
            if passage.estate:
                self._core.estates.heirs[passage.estate] = partial(self._inherited, passage)
            return
        session = self._core.sessions.get(passage.client_id)
        if session is not None:
            self._divert(session, passage)


def _ignore(passage: Passage, origin: int, now: float) -> None:
    pass


def _ignore_arrival(client_id: str, now: float) -> None:
    pass
