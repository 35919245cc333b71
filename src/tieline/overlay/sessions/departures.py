"""The old home's part of a move: a claim is judged, the session taken out and sent, and what follows passed on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final
from zlib import crc32

from tieline.core.account import Drop
from tieline.core.broker import Broker
from tieline.core.client import Session
from tieline.core.durable.journal import terms_of
from tieline.core.handover import SessionContents
from tieline.core.message import Message
from tieline.core.receiver import Entry
from tieline.core.restore import grant_of
from tieline.match.where import ExpressionError, split
from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import SPREAD, lane_of
from tieline.overlay.interests.entries import entry_of
from tieline.overlay.may import May
from tieline.overlay.sessions.claims import WAIT_S
from tieline.overlay.sessions.errands import (
    MOST_SUBSCRIPTIONS,
    NOT_FOR_YOU,
    NOT_HERE,
    NOT_YOURS,
    OUTDATED,
    Claim,
    Complete,
    Declined,
    Flying,
    Merged,
    Ready,
    State,
    Subscriptions,
    Waiting,
)
from tieline.overlay.sessions.passage import Passage
from tieline.overlay.sessions.passage_notes import message_parcel
from tieline.overlay.sessions.passages import Passages
from tieline.overlay.sessions.post import Post
from tieline.overlay.sessions.registry import Registry

#: When it is looked again whether a session is whole.
_AGAIN_S: Final = 0.05
#: How often a claim is forwarded.
_HOPS: Final = 8
#: How long a client waits for what it has published here, at most.
_ORDER_S: Final = 2.0
#: What a subscription and a message of a session that leaves count towards the work of a turn, in tenths of
#: microseconds.
_WORK_PER_FILTER, _WORK_PER_MESSAGE = 300, 120


class _Unsettled:
    """What a client has published here and others have not taken yet, which it waits for."""

    __slots__ = ("broker", "client_id", "deadline", "epoch", "is_safe", "last")

    def __init__(self, broker: int, client_id: str, epoch: int, deadline: float) -> None:
        self.broker = broker
        self.client_id = client_id
        self.epoch = epoch
        self.deadline = deadline
        #: Everything that was accepted here has been routed.
        self.is_safe = False
        #: By destination and lane.
        self.last: dict[tuple[int, int], int] = {}


class Departures:
    """Sessions of this broker that others claim."""

    def __init__(  # what a session has at its old home
        self,
        core: Broker,
        post: Post,
        registry: Registry,
        passages: Passages,
        *,
        counts: Counts,
        rights: Callable[[int], May | None],
        forget: Callable[[str], None],
        is_gone: Callable[[int], bool],
        is_claimed: Callable[[str, int], bool],
    ) -> None:
        self._core = core
        self._post = post
        self._registry = registry
        self._passages = passages
        self._counts = counts
        self._rights = rights
        self._forget = forget
        #: Whether a broker has been out of reach for so long that nobody waits for it.
        self._is_gone = is_gone
        #: Whether a session was claimed here before an epoch, and its client is not to be let in yet.
        self._is_claimed = is_claimed
        self._unsettled: list[_Unsettled] = []

    # -- claims

    def claimed(self, claim: Claim, source: int, now: float) -> None:
        """A broker wants a session for a client that has come to it.

        One of which only a part has come yet is given away when it is whole, as long as somebody waits for that.
        """
        if self._passages.lacks_parts(claim.client_id):
            self._judge_when_whole(claim, source, now + WAIT_S, now)
        else:
            self._judge(claim, source, now)

    def _judge_when_whole(self, claim: Claim, source: int, until: float, now: float) -> None:
        self._post.now = now
        if not self._passages.lacks_parts(claim.client_id):
            self._judge(claim, source, now)
        elif now < until:
            self._core.timers.at(now + _AGAIN_S, partial(self._judge_when_whole, claim, source, until))

    def _judge(self, claim: Claim, source: int, now: float) -> None:
        claimant = self._post.number(claim.claimant)
        rights = self._rights(source)
        if not claimant or claimant == self._post.node.broker or (rights is not None and claimant != source):
            self._counts.bad_errands += 1
            return
        if not self._registry.heard(claim.epoch, self._post.now_ms):
            self._decline(claimant, claim, OUTDATED)
            return
        session = self._core.sessions.get(claim.client_id)
        if session is None or session.is_doomed:
            self._forward(claim, claimant)
            return
        why = self._why_not(session, claim, claimant)
        if why is not None:
            self._decline(claimant, claim, why)
            return
        self._core.handovers.part(session, now, is_claimed=True)
        if session.is_over:
            # it ended with its connection
            self._decline(claimant, claim, NOT_HERE)
            return
        self._send(session, claim, claimant, now)

    def _decline(self, claimant: int, claim: Claim, why: int) -> None:
        self._post.tell(claimant, Declined(claim.client_id, claim.epoch, why))

    def _forward(self, claim: Claim, claimant: int) -> None:
        """The session is not here; somebody else may have it."""
        if self._registry.is_on_its_way(claim.client_id, claimant):
            return  # by an earlier claim, and there soon
        found = self._registry.find(claim.client_id)
        if found is None or found[0] == claimant or claim.hops >= _HOPS:
            self._decline(claimant, claim, NOT_HERE)
        else:
            self._post.tell(found[0], claim._replace(hops=claim.hops + 1))

    def _why_not(self, session: Session, claim: Claim, claimant: int) -> int | None:
        if session.user is not None and session.user != claim.user:
            return NOT_YOURS
        if session.user != claim.user:
            # as here: what waits for nobody in particular is not for a user who comes later with that id
            return NOT_HERE
        if self._registry.epoch(session.client_id) >= claim.epoch:
            return OUTDATED
        rights = self._rights(claimant)
        if rights is not None and not all(self._is_within(rights, written) for written in session.subscriptions):
            return NOT_FOR_YOU
        return None

    def _is_within(self, rights: May, written: str) -> bool:
        try:
            asked = split(written, question_mark=self._core.settings.content.question_mark == "on")
        except ExpressionError:
            return False
        entry = entry_of(asked.filter)
        return entry in rights.read.narrow(entry)

    # -- what is sent

    def _send(self, session: Session, claim: Claim, claimant: int, now: float) -> None:
        key = session.client_id, claim.epoch
        number = session.number
        self._registry.moved(session.client_id, claimant, claim.epoch)
        self._forget(session.client_id)
        passage = self._passages.leave(session, claim.epoch, claimant, now)
        moves = session.origin.moves
        contents = self._core.handovers.take_out(session, now)
        self._passages.left(passage, contents.subscriptions)
        self._count(contents)
        if contents.has_more:
            self._passages.await_estate(passage, number)
        tell = self._post.tell
        state = State(*key, contents.user, contents.expiry_s, contents.patience, contents.inbound, moves)
        tell(claimant, state)
        subscriptions = [tuple(each) for each in contents.subscriptions]
        for at in range(0, len(subscriptions), MOST_SUBSCRIPTIONS):
            tell(claimant, Subscriptions(*key, subscriptions[at : at + MOST_SUBSCRIPTIONS]))  # type: ignore[arg-type]  # the same fields
        for each in contents.sent:
            if each.message is None:
                tell(claimant, Flying(*key, each.packet_id, each.terms))
            elif self._may_have(claimant, each.message, now):
                tell(claimant, Flying(*key, each.packet_id, each.terms), message_parcel(each.message, now))
        pending = [origin for origin, part in passage.parts.items() if part.floor is None]
        tell(claimant, Complete(*key, [self._post.name(origin) for origin in pending]))
        for message, terms in contents.queue:
            if self._may_have(claimant, message, now):
                tell(claimant, Waiting(*key, terms), message_parcel(message, now))
        for origin in self._post.gone:
            # nobody is asked for its mark, and the new home may not know yet that it is gone
            self._passages.ceiling(passage, origin, {}, now)
        self._counts.sessions_out += 1
        waits = self._await_order(claimant, *key, now)
        if self._core.journal.is_volatile:
            self._mark_safe(waits)
        else:
            self._core.journal.then(lambda: self._routed(waits))
        self.look(now)

    def _count(self, contents: SessionContents) -> None:
        """What leaves counts towards the work of a turn: others that are claimed leave in the next ones."""
        messages = len(contents.sent) + len(contents.queue)
        self._core.work.did(len(contents.subscriptions) * _WORK_PER_FILTER + messages * _WORK_PER_MESSAGE)

    def resume(self, passage: Passage, now: float) -> None:
        """A session had left when the predecessor ended: its client may be waiting still."""
        self._routed(self._await_order(passage.after, passage.client_id, passage.after_epoch, now))

    def _await_order(self, broker: int, client_id: str, epoch: int, now: float) -> _Unsettled:
        waits = _Unsettled(broker, client_id, epoch, now + _ORDER_S)
        self._unsettled.append(waits)
        return waits

    def _may_have(self, broker: int, message: Message, now: float) -> bool:
        rights = self._rights(broker)
        if rights is None or rights.read.has(message.topic):
            return True
        name = f"broker {self._post.name(broker)}"
        self._core.account.drop(now, Drop.DENIED, name, message.topic, 1, level=message.level, since=message.at)
        return False

    # -- order of what the client has published

    def _routed(self, waits: _Unsettled) -> None:
        """What was accepted before the session left is permanent, and is routed in the next turn."""
        self._core.timers.soon(lambda _now: self._core.timers.soon(lambda _due: self._mark_safe(waits)))

    def _mark_safe(self, waits: _Unsettled) -> None:
        waits.is_safe = True
        sender = self._post.node.carrier.sender
        spread = crc32(waits.client_id.encode()) % SPREAD
        for broker in self._post.others:
            last = self._post.lanes_to(broker)
            for level in range(4):
                lane = lane_of(level, True, spread)
                if lane in last and not sender.is_settled(broker, lane, last[lane]):
                    waits.last[broker, lane] = last[lane]

    def look(self, now: float) -> None:
        """See whether clients that have gone need wait no longer for what they have published here."""
        if not self._unsettled:
            return
        still = []
        for waits in self._unsettled:
            missing = self._missing(waits)
            is_claimed = self._is_claimed(waits.client_id, waits.epoch)
            is_all = waits.is_safe and not is_claimed and all(map(self._is_gone, missing))
            if not is_all and now < waits.deadline:
                still.append(waits)
                continue
            self._counts.order_not_awaited += not is_all or bool(missing)
            self._post.tell(waits.broker, Ready(waits.client_id, waits.epoch))
        self._unsettled = still

    def _missing(self, waits: _Unsettled) -> set[int]:
        """The brokers that have not taken everything yet that a client had published here."""
        sender = self._post.node.carrier.sender
        last = waits.last.items()
        return {broker for (broker, lane), number in last if not sender.is_settled(broker, lane, number)}

    @property
    def is_waiting(self) -> bool:
        """Whether clients wait for something that was published here."""
        return bool(self._unsettled)

    # -- a session that has lost

    def outranked(self, session: Session, broker: int, epoch: int, now: float, *, is_clean: bool) -> None:
        """The client of a session has a later one at another broker: what was never sent to it is handed over."""
        self._counts.sessions_outranked += 1
        self._core.handovers.part(session, now, is_claimed=False)
        if session.is_over:
            return
        if is_clean or not session.expiry_s:
            self._end(session, now)
            return
        self._forget(session.client_id)
        if session.spill is not None:
            self._core.estates.heirs[session.number] = lambda entries, due: self._merge(
                broker, session.client_id, epoch, entries or (), due
            )
        contents = self._core.handovers.take_out(session, now)
        self._count(contents)
        self._name_sent(contents, session, now)
        waiting = [(message, grant_of(session, terms)) for message, terms in contents.queue]
        self._merge(broker, session.client_id, epoch, waiting, now)

    def _merge(self, broker: int, client_id: str, epoch: int, entries: Sequence[Entry], now: float) -> None:
        for item, grant in entries:
            if isinstance(item, Message) and self._may_have(broker, item, now):
                self._post.tell(broker, Merged(client_id, epoch, terms_of(grant)), message_parcel(item, now))

    def _name_sent(self, contents: SessionContents, session: Session, now: float) -> None:
        """Nobody knows whether the client has what was sent to it and not acknowledged."""
        for each in contents.sent:
            if each.message is not None:
                session.turn_away(each.message, Drop.UNCONFIRMED, now)

    def _end(self, session: Session, now: float) -> None:
        self._core.end_session(session, now)
