"""Clients that have come here and whose sessions other brokers keep: claimed, waited for, and let in.

CONNACK leaves when the session is here, or when it is known that there is none.  A home that does not answer in 5 s is
not waited for any longer: the client gets a new session, and is told so.  One that has given the session away and then
says no more is not waited for either: what its client had published there may come later than it should.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from tieline.core.broker import Broker
from tieline.core.client import Again, Connection, Hold
from tieline.core.ports import Allowed, Refused
from tieline.core.timers import Timer
from tieline.overlay.counts import Counts
from tieline.overlay.sessions.errands import NOT_FOR_YOU, NOT_YOURS, OUTDATED
from tieline.wire.reason import Reason

#: How long a client waits for the answer of its home.
WAIT_S: Final = 5.0
#: What a connection remembers of its question.
_QUESTION: Final = "session"


class PendingClaim:
    """One session that is being fetched."""

    __slots__ = ("broker", "connection", "epoch", "is_coming", "latest", "timer", "user")

    def __init__(self, broker: int, epoch: int, user: str | None, connection: Connection | None) -> None:
        #: Where it is believed to be; 0 while that is not known.
        self.broker = broker
        self.epoch = epoch
        #: When its client last came here: a claim from elsewhere that is older than that comes too late.
        self.latest = epoch
        self.user = user
        #: Who waits for it; None if nobody does.
        self.connection = connection
        #: Some of it is here.
        self.is_coming = False
        self.timer: Timer | None = None


class Claims:
    """The sessions that are being fetched, by client id."""

    def __init__(self, core: Broker, counts: Counts) -> None:
        self._core = core
        self._counts = counts
        self.pending: dict[str, PendingClaim] = {}

    def verdict(self, conn: Connection, client_id: str) -> Allowed | Refused | None:
        """What came of the question of a connection; None if it was not asked."""
        found = conn.verdicts.get((_QUESTION, client_id))
        return found if isinstance(found, Allowed | Refused) else None

    def begin(  # whose, from whom, and for whom
        self,
        client_id: str,
        broker: int,
        epoch: int,
        user: str | None,
        conn: Connection | None,
        now: float,
        *,
        wait_s: float = WAIT_S,
    ) -> PendingClaim:
        """Fetch a session, for a connection or for nobody."""
        claim = self.pending[client_id] = PendingClaim(broker, epoch, user, conn)
        claim.timer = self._core.timers.at(now + wait_s, partial(self._late, client_id, claim))
        return claim

    def wait(self, client_id: str, conn: Connection, now: float) -> None:
        """Hold a connection until its session is here; raises Again.  Of two of one client id the later one counts."""
        claim = self.pending[client_id]
        older = claim.connection
        if older is not None and older is not conn and older.hold is Hold.HOME:
            self._core.shut(older, "taken_over", now, reason=Reason.SESSION_TAKEN_OVER)
        claim.connection = conn
        self._core.holds.suspend(conn, Hold.HOME, now)
        raise Again

    def came(self, client_id: str, epoch: int) -> PendingClaim | None:
        """Some of a session has come; the claim that it answers, if any does.

        It may have been claimed before this broker was killed, and again since: what was on its way answers that.
        """
        claim = self.pending.get(client_id)
        if claim is None or (claim.epoch != epoch and (claim.is_coming or claim.epoch < epoch)):
            return None
        claim.epoch = epoch
        claim.is_coming = True
        return claim

    def is_awaited(self, client_id: str, epoch: int) -> bool:
        """Whether a session was claimed before an epoch, and what its client had published elsewhere is on its way."""
        claim = self.pending.get(client_id)
        return claim is not None and claim.is_coming and claim.epoch < epoch

    def whole(self, client_id: str, epoch: int, now: float) -> None:
        """A session is here; its home says soon that its client may be let in, unless it dies before that."""
        claim = self.pending.get(client_id)
        if claim is not None and claim.epoch == epoch:
            self._core.timers.cancel(claim.timer)
            claim.timer = self._core.timers.at(now + WAIT_S, partial(self._unsaid, client_id, claim))

    def _unsaid(self, client_id: str, claim: PendingClaim, now: float) -> None:
        if self.pending.get(client_id) is claim:
            self._counts.order_not_awaited += 1
            self._end(client_id, claim, None)

    def ready(self, client_id: str, epoch: int) -> None:
        """A session is here, and its client may be let in."""
        claim = self.pending.get(client_id)
        if claim is not None and claim.epoch == epoch:
            # it may have gone on to somewhere else by now
            self._end(client_id, claim, None)

    def declined(self, client_id: str, epoch: int, why: int) -> None:
        """There is nothing to be had."""
        claim = self.pending.get(client_id)
        if claim is None or claim.epoch != epoch:
            return
        self._counts.claims_declined += 1
        verdict: Allowed | Refused = Allowed()
        if why == NOT_YOURS:
            verdict = Refused("this client id belongs to another user", Reason.CLIENT_IDENTIFIER_NOT_VALID)
        elif why == NOT_FOR_YOU:
            verdict = Refused("this session cannot be had here: its broker does not let this one read what it wants")
        elif why == OUTDATED:
            verdict = Refused("the client has connected elsewhere since", Reason.SERVER_BUSY)
        self._end(client_id, claim, verdict)

    def _late(self, client_id: str, claim: PendingClaim, now: float) -> None:
        if self.pending.get(client_id) is claim and not claim.is_coming:
            self._counts.claims_late += 1
            self._end(client_id, claim, Allowed())

    def give_up(self, is_over: Callable[[PendingClaim], bool]) -> None:
        """Some claims need not be waited for: where the session is has to be asked again."""
        for client_id, claim in list(self.pending.items()):
            if is_over(claim):
                self._end(client_id, claim, None)

    def _end(self, client_id: str, claim: PendingClaim, verdict: Allowed | Refused | None) -> None:
        del self.pending[client_id]
        self._core.timers.cancel(claim.timer)
        conn = claim.connection
        if conn is not None and conn.hold is Hold.HOME:
            if verdict is not None:
                conn.verdicts[_QUESTION, client_id] = verdict
            self._core.holds.resume_soon(conn, Hold.HOME)
