"""The new home's part of a move: what comes is put in its place, marks are asked for, and what follows is let in."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from tieline.conf.quantities import bound
from tieline.core.account import Drop
from tieline.core.broker import Broker
from tieline.core.handover import Sent, SessionContents, Subscribed
from tieline.core.message import Message, Origin
from tieline.overlay.counts import Counts
from tieline.overlay.frames.fields import BadFrame
from tieline.overlay.frames.parcel import Run, read_parcel
from tieline.overlay.sessions.claims import Claims
from tieline.overlay.sessions.errands import (
    AskMark,
    Complete,
    Done,
    Flying,
    Mark,
    Marked,
    Merged,
    NotYet,
    State,
    Subscriptions,
    Tail,
    TailEnd,
    Waiting,
)
from tieline.overlay.sessions.passage import Passage
from tieline.overlay.sessions.passages import Passages
from tieline.overlay.sessions.post import Post
from tieline.overlay.sessions.registry import Registry

#: When an origin is asked again that did not know what the new home wants.
_AGAIN_S: Final = 0.1
#: Times that a session can have come to another broker; beyond that its messages are in order as they come.
_MOST_MOVES: Final = 1 << 40


class Arrivals:
    """Sessions that come to this broker, and marks that others ask of it."""

    def __init__(  # what a session needs at its new home
        self,
        core: Broker,
        post: Post,
        registry: Registry,
        passages: Passages,
        claims: Claims,
        *,
        counts: Counts,
        origin_of: Callable[[int, str], Origin],
        tell_interest: Callable[[float], None],
        keep: Callable[[str, int], None],
    ) -> None:
        self._core = core
        self._post = post
        self._registry = registry
        self._passages = passages
        self._claims = claims
        self._counts = counts
        self._origin_of = origin_of
        self._tell_interest = tell_interest
        self._keep = keep
        passages.on_origin = self._ask

    # -- what is handed over

    def state(self, errand: State, source: int, now: float) -> None:
        """A session comes; a later one of its client that is here stays."""
        client_id, epoch = errand.client_id, errand.epoch
        claim = self._claims.came(client_id, epoch)
        old = self._core.sessions.get(client_id)
        if old is not None and (claim is None or self._registry.epoch(client_id) > epoch):
            return  # it was not waited for: what waits is merged
        most = self._core.settings.limits.sessions
        if old is None and claim is None and len(self._core.sessions) >= bound(most):
            # nobody has come for it; whatever follows is named as lost
            raise BadFrame(f"a session that nobody waits for, where {most} are kept already")
        if old is not None:
            self._core.end_session(old, now)
        inbound = tuple(errand.inbound)
        contents = SessionContents(client_id, errand.user, errand.expiry_s, errand.patience, inbound, (), (), (), False)
        session = self._core.handovers.put_in(contents, now)
        session.origin.moves = min(max(errand.moves, 0), _MOST_MOVES) + 1
        self._keep(client_id, epoch if claim is None else max(epoch, claim.latest))
        self._passages.arrive(session, epoch, source, now)
        self._counts.sessions_in += 1

    def subscriptions(self, errand: Subscriptions) -> None:
        """Some of its subscriptions come."""
        passage = self._passages.of(errand.client_id, errand.epoch)
        session = self._core.sessions.get(errand.client_id)
        if passage is not None and session is not None:
            for filter_, options, identifier, conditions in errand.entries:
                asked = Subscribed(filter_, options, identifier, tuple(conditions))
                self._core.handovers.subscribe(session, asked)

    def flying(self, errand: Flying, parcel: bytes, source: int, now: float) -> None:
        """One of its packet ids in use comes."""
        messages = self._messages(parcel, source, now)
        passage = self._passages.of(errand.client_id, errand.epoch)
        session = self._core.sessions.get(errand.client_id)
        if passage is not None and session is not None:
            sent = Sent(errand.packet_id, messages[0] if messages else None, errand.terms)
            self._core.handovers.put_sent(session, sent)
        else:
            self._name(errand.client_id, messages, Drop.UNCONFIRMED, now)

    def complete(self, errand: Complete, source: int, now: float) -> None:
        """That was its state: every origin is asked from where on it sends to us."""
        passage = self._passages.of(errand.client_id, errand.epoch)
        if passage is None:
            self._post.tell(source, Done(errand.client_id, errand.epoch))
            return
        self._tell_interest(now)
        origins = [self._post.node.broker, *self._post.origins]
        deferred = [number for name in errand.pending if (number := self._post.number(name)) in origins]
        self._passages.completed(passage, origins, deferred)
        self._claims.whole(errand.client_id, errand.epoch, now)
        self.ask_all(passage, now)

    def ask_all(self, passage: Passage, now: float) -> None:
        """Ask every origin whose mark is not known; ours is made now."""
        for origin, part in list(passage.parts.items()):
            if part.floor is None:
                self._ask(passage, origin, now)

    def marked(self, errand: Marked, now: float) -> None:
        """The mark of an earlier move has come: the next one may be asked for."""
        passage = self._passages.of(errand.client_id, errand.epoch)
        origin = self._post.number(errand.origin)
        if passage is not None and origin:
            self._passages.marked(passage, origin)
            self._ask(passage, origin, now)

    def _ask(self, passage: Passage, origin: int, now: float) -> None:
        if not passage.is_complete or not passage.before or passage.part(origin).is_deferred:
            return
        if origin == self._post.node.broker:
            # what is accepted here from now on goes straight to the session
            mark = Mark(passage.client_id, passage.epoch, self._post.lanes_to(passage.before))
            self._post.tell(passage.before, mark)
            self._passages.floor(passage, origin, {}, now)
            return
        version = self._post.node.interests.promised
        old = self._post.name(passage.before)
        self._post.tell(origin, AskMark(passage.client_id, passage.epoch, old, version))

    def not_yet(self, errand: NotYet, source: int, now: float) -> None:
        """An origin does not know yet what we want."""
        self._core.timers.at(now + _AGAIN_S, partial(self._ask_again, (errand.client_id, errand.epoch), source))

    def _ask_again(self, key: tuple[str, int], origin: int, now: float) -> None:
        passage = self._passages.arriving.get(key)
        if passage is not None and passage.part(origin).floor is None:
            self._ask(passage, origin, now)

    # -- what follows

    def waiting(self, errand: Waiting, parcel: bytes, source: int, now: float) -> None:
        """Something comes that waited for it."""
        messages = self._messages(parcel, source, now)
        passage = self._passages.of(errand.client_id, errand.epoch)
        if passage is None:
            self._merge(errand, messages, now)
            return
        for message in messages:
            self._passages.let_in(passage, source, message, errand.terms, now)

    def tail(self, errand: Tail, parcel: bytes, source: int, now: float) -> None:
        """Something comes that an origin had sent to the old home."""
        passage = self._passages.of(errand.client_id, errand.epoch)
        if passage is not None and passage.before == source:
            origin = self._post.number(errand.origin) or source
            for message in self._messages(parcel, source, now):
                self._passages.let_in(passage, origin, message, errand.terms, now)

    def tail_end(self, errand: TailEnd, source: int, now: float) -> None:
        """That was all from one origin."""
        passage = self._passages.of(errand.client_id, errand.epoch)
        origin = self._post.number(errand.origin)
        if passage is not None and origin and passage.before == source:
            if origin in self._post.gone or not passage.has_asked(origin):
                # the old home has decided by itself that nothing more of it goes that way
                self._passages.floor(passage, origin, {}, now)
            self._passages.tail_ended(passage, origin, now)

    def merged(self, errand: Merged, parcel: bytes, source: int, now: float) -> None:
        """Something comes that waited for a session which has lost against the one here."""
        self._merge(errand, self._messages(parcel, source, now), now)

    def _merge(self, errand: Waiting | Merged, messages: list[Message], now: float) -> None:
        session = self._core.sessions.get(errand.client_id)
        if session is None:
            self._name(errand.client_id, messages, Drop.SESSION_ENDED, now)
            return
        for message in messages:
            self._core.handovers.put_waiting(session, message, errand.terms, now)

    def _name(self, client_id: str, messages: list[Message], why: Drop, now: float) -> None:
        for message in messages:
            self._core.account.drop(now, why, client_id, message.topic, 1, level=message.level, since=message.at)

    def _messages(self, parcel: bytes, source: int, now: float) -> list[Message]:
        if not parcel:
            return []
        read = read_parcel(parcel, partial(self._origin_of, source), now)
        return [] if isinstance(read, Run) else read

    # -- marks

    def ask_mark(self, errand: AskMark, source: int, now: float) -> None:
        """A new home asks from where on we send to it what a session wants."""
        old = self._post.number(errand.old)
        if not old or old == source:
            self._counts.bad_errands += 1
            return
        if self._post.node.interests.versions.get(source, 0) < errand.version:
            self._post.tell(source, NotYet(errand.client_id, errand.epoch))
            return
        key = errand.client_id, errand.epoch
        here = self._post.node.broker
        self._post.tell(source, Mark(*key, self._post.lanes_to(source)))
        if old != here:
            self._post.tell(old, Mark(*key, self._post.lanes_to(old)))
            return
        leaving = self._passages.leaving.get(key)
        if leaving is not None and leaving.after == source:
            self._passages.ceiling(leaving, here, {}, now)

    def mark(self, errand: Mark, source: int, now: float) -> None:
        """An origin says it."""
        key = errand.client_id, errand.epoch
        arriving, leaving = self._passages.arriving.get(key), self._passages.leaving.get(key)
        if arriving is not None:
            self._passages.floor(arriving, source, errand.lanes, now)
        elif leaving is not None:
            self._passages.ceiling(leaving, source, errand.lanes, now)
