"""The broker's access port: who a client is, then what its user may do.

Theory of operation
-------------------
A client is, in this order: whom its certificate names, on a listener that takes users from certificates; whom its user
name and password prove, where something can check them; otherwise nobody, and then it is let in only where that is
allowed.  Passwords are checked beside the broker, by ``check``, which answers later; a password that was right a moment
ago is recognised without that.

Between a question and its answer the users may have become others.  So each table of users has a number
(``_generation``), and an answer that was found in an earlier table is worth nothing: the login is asked about anew, and
nothing of the old answer is remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tieline.access.failures import Failures, address_of
from tieline.access.rules import Rules
from tieline.access.users import admit_nobody
from tieline.conf.schema import Settings
from tieline.core.ports import Action, Allowed, Login, Pending, Refused, Verdict
from tieline.wire.reason import Reason

#: What a check ends with: the user, nobody, or that it did not take place and why.
Outcome = str | Refused | None


class Check(Protocol):
    """Has credentials checked, and says the outcome later, in the broker's thread."""

    def __call__(self, login: Login, done: Callable[[Outcome], None]) -> Refused | None:
        """None when it will be done; otherwise why not, and ``done`` is not called."""


class RememberedLogins(Protocol):
    """Recognises credentials that were right a moment ago."""

    def recall(self, login: Login, now: float) -> str | None:
        """The user; None when they are not known."""

    def keep(self, login: Login, user: str, now: float) -> None:
        """Remember that the name and password of a login were right, and whose they are."""

    def clear(self) -> None:
        """Forget every answer, because users or passwords have changed."""


class Gate:
    """Decides who may connect, publish, subscribe and read."""

    def __init__(
        self,
        settings: Settings,
        *,
        check: Check | None,
        memory: RememberedLogins,
        decided: Callable[[int, Allowed | Refused], None],
        clock: Callable[[], float],
    ) -> None:
        """``check`` is None when nothing can check a password; ``decided`` takes the verdicts that came later."""
        self._auth = settings.auth
        self._check = check
        self._memory = memory
        self._decided = decided
        self._clock = clock
        self._failures = Failures(settings.auth.failures)
        self._token = 0
        #: The number of the table of users that holds now.
        self._generation = 0
        #: Logins refused unheard, because too many had failed.
        self.throttled = 0
        self.rules = Rules(settings)

    def renew(self, settings: Settings, check: Check | None) -> None:
        """Other settings and users hold from now on, also for logins that are being checked.

        What failed before still counts, unless the number itself has changed.
        """
        self._generation += 1
        if settings.auth.failures != self._auth.failures:
            self._failures = Failures(settings.auth.failures)
        self._auth = settings.auth
        self._check = check
        self._memory.clear()
        self.rules = Rules(settings)

    # -- what the broker asks

    @property
    def is_open(self) -> bool:
        """There are no rules for topics."""
        return self.rules.is_open

    @property
    def effort(self) -> int:
        """Every rule may have to be compared."""
        return self.rules.effort

    def connect(self, login: Login) -> Verdict:
        """Let in whom something vouches for, and nobody else except where that is configured."""
        self._token += 1
        token = self._token
        verdict = self.admit(login, lambda later: self._decided(token, later))
        return Pending(token) if verdict is None else verdict

    def publish(self, login: Login, topic: str) -> Verdict:
        return self.rules.publish(login, topic)

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        return self.rules.subscribe(login, filter_)

    def may(self, action: Action, user: str | None, client_id: str, topic: str) -> bool:
        return self.rules.may(action, user, client_id, topic)

    def explain(self, action: Action, user: str | None, client_id: str, topic: str) -> Allowed | Refused:
        """By the rules, and by which."""
        return self.rules.decide(action, user, client_id, topic).verdict()

    # -- what any door asks

    def admit(self, login: Login, done: Callable[[Allowed | Refused], None]) -> Allowed | Refused | None:
        """The verdict on a login, for any door: at once, or None, and ``done`` is called with it later."""
        if login.certificate_user == "":
            return Refused("the client's certificate names no user", Reason.BAD_USER_NAME_OR_PASSWORD)
        if login.certificate_user is not None:
            return Allowed("the client's certificate", user=login.certificate_user)
        if login.username is None and login.password is None:
            return admit_nobody(self._auth.anonymous, login, has_users=self._check is not None)
        if self._check is None:
            return admit_nobody(self._auth.anonymous, login, has_users=False)
        now = self._clock()
        known = self._memory.recall(login, now)
        if known is not None:
            return Allowed("a password that was right a moment ago", user=known)
        refusal = self.is_hopeless(login)
        if refusal is not None:
            self.throttled += 1
            return refusal
        generation = self._generation

        def conclude(outcome: Outcome) -> None:
            if generation != self._generation:
                verdict = self.admit(login, done)
                if verdict is not None:
                    done(verdict)
            else:
                done(self._conclude(login, outcome))

        return self._check(login, conclude)

    def is_hopeless(self, login: Login) -> Refused | None:
        """Why a login need not be checked; None when it has to be.  Threads may ask."""
        why = self._failures.refusal(address_of(login.peer), login.username or "", self._clock())
        return None if why is None else Refused(why, Reason.CONNECTION_RATE_EXCEEDED)

    def patience(self, peer: str, user: str) -> tuple[int | None, float]:
        """How many logins from there may still fail, None for any number; if none, how many seconds to wait."""
        return self._failures.patience(address_of(peer), user, self._clock())

    def _conclude(self, login: Login, outcome: Outcome) -> Allowed | Refused:
        if isinstance(outcome, Refused):
            self.throttled += outcome.reason is Reason.CONNECTION_RATE_EXCEEDED
            return outcome
        now, address = self._clock(), address_of(login.peer)
        if outcome is None:
            self._failures.failed(address, login.username or "", now)
            return Refused("the user name or the password is wrong", Reason.BAD_USER_NAME_OR_PASSWORD)
        if not outcome or not isinstance(outcome, str):
            # an authenticator of somebody's own: a name that is none must not become the one that the client claims
            return Refused("who this is was answered with no name", Reason.BAD_USER_NAME_OR_PASSWORD)
        self._failures.succeeded(address, login.username or "")
        self._memory.keep(login, outcome, now)
        return Allowed("its password", user=outcome)
