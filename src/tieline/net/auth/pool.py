"""Passwords are checked here: a few threads, a bounded line in front of them, and nobody who fills it for the others.

Theory of operation
-------------------
A check takes a tenth of a second of a core, so it must not run on the loop, and there cannot be many at once.  Logins
that wait stand in one line for each address; the threads take from the lines in turn.  So whoever floods the broker
waits behind himself.  All lines together are bounded; when they are full, the newest login of the longest line is
refused as busy, which is the newcomer's own if his line is the longest.

The outcome is brought to the loop with ``deliver`` (``loop.call_soon_threadsafe``).  A login that has become hopeless
because too many others of its kind have failed meanwhile is not checked when its turn comes.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final  # Any: nobody asks what such a callback returns

from tieline.access.failures import address_of
from tieline.access.gate import Outcome
from tieline.core.ports import Login, Refused
from tieline.net.log import log
from tieline.wire.reason import Reason

if TYPE_CHECKING:
    from tieline.access.users import Authenticator
    from tieline.core.ports import Login


#: What those are told who did not fit.
BUSY = Refused("too many logins are being checked", Reason.SERVER_BUSY)
#: And those whose check itself failed; the log knows more.
BROKEN = Refused("logins cannot be checked at the moment", Reason.SERVER_UNAVAILABLE)

Deliver = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    login: Login
    done: Callable[[Outcome], None]


class Pool:
    """Checks logins in threads."""

    def __init__(
        self,
        authenticator: Authenticator,
        *,
        workers: int,
        waiting: int,
        deliver: Deliver,
        is_hopeless: Callable[[Login], Refused | None] = lambda _: None,
    ) -> None:
        self.authenticator = authenticator
        self._most = waiting
        self._deliver = deliver
        self._is_hopeless = is_hopeless
        self._changed = threading.Condition()
        #: By address; the first line is next.
        self._lines: OrderedDict[str, deque[_Job]] = OrderedDict()
        self._waiting = 0
        self._is_open = True
        #: Logins refused because too many waited.
        self.turned_away = 0
        self._workers = workers
        #: Begun when there is something to do: most brokers never check a password.
        self._threads: list[threading.Thread] = []

    def __len__(self) -> int:
        """How many logins wait."""
        return self._waiting

    def check(self, login: Login, done: Callable[[Outcome], None]) -> Refused | None:
        """Let a login stand in line; Refused when it does not fit."""
        address = address_of(login.peer)
        job = _Job(login, done)
        with self._changed:
            own = self._lines.get(address)
            if self._waiting >= self._most:
                self.turned_away += 1
                longest = max(self._lines.values(), key=len)
                if own is longest or (own is not None and len(own) >= len(longest)):
                    return BUSY
                self._waiting -= 1
                self._end(longest.pop(), BUSY)
            if own is None:
                own = self._lines.setdefault(address, deque())
            own.append(job)
            self._waiting += 1
            self._changed.notify()
            if len(self._threads) < self._workers:
                self._threads.append(threading.Thread(target=self._work, name="tieline-auth", daemon=True))
                self._threads[-1].start()
        return None

    def retire(self) -> None:
        """Take no more logins; the threads end when none waits."""
        with self._changed:
            self._is_open = False
            self._changed.notify_all()

    def close(self) -> None:
        """Check no more; logins that wait get no answer, because the broker is ending."""
        with self._changed:
            self._is_open = False
            self._lines.clear()
            self._waiting = 0
            self._changed.notify_all()

    def join(self, timeout_s: float) -> None:
        """Wait for the threads to end."""
        for thread in self._threads:
            thread.join(timeout_s)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                hopeless = self._is_hopeless(job.login)
                outcome: Outcome = self.authenticator.authenticate(job.login) if hopeless is None else hopeless
            except Exception as error:  # noqa: BLE001 - somebody else's code; one login's trouble is not the broker's
                # neither the login nor the error's own text: either may hold what the client sent
                log.error("a login from %s could not be checked: %s", job.login.peer, type(error).__name__)
                outcome = BROKEN
            self._end(job, outcome)

    def _next(self) -> _Job | None:
        """The first of the next line; None when there will be no more."""
        with self._changed:
            while True:
                while self._lines:
                    address, line = self._lines.popitem(last=False)
                    if not line:
                        continue
                    job = line.popleft()
                    self._waiting -= 1
                    if line:
                        self._lines[address] = line  # at the end: the others come first
                    return job
                if not self._is_open:
                    return None
                self._changed.wait()

    def _end(self, job: _Job, outcome: Outcome) -> None:
        with suppress(RuntimeError):  # the loop has closed: nobody waits
            self._deliver(job.done, outcome)


MOST: Final = 10_000


class Remembered:
    """A bounded table of credentials, each for a short time."""

    def __init__(self, seconds: float, most: int = MOST) -> None:
        """Zero seconds remember nothing."""
        self.seconds = seconds
        self._most = most
        self._key = secrets.token_bytes(32)
        self._known: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Remembered {len(self._known)} logins>"

    def __len__(self) -> int:
        return len(self._known)

    def recall(self, login: Login, now: float) -> str | None:
        """The user of credentials that were right; None when they are not known."""
        if not self._known:
            return None
        user, until = self._known.get(self._digest(login), (None, now))
        return user if until > now else None

    def keep(self, login: Login, user: str, now: float) -> None:
        """These credentials were right."""
        if not self.seconds:
            return
        key = self._digest(login)
        self._known[key] = (user, now + self.seconds)
        self._known.move_to_end(key)
        if len(self._known) > self._most:
            self._known.popitem(last=False)

    def clear(self) -> None:
        """Forget all: users have changed."""
        self._known.clear()

    def _digest(self, login: Login) -> bytes:
        name = (login.username or "").encode()
        # the length keeps "ab" + "c" apart from "a" + "bc"
        text = b"%d %b%b" % (len(name), name, login.password or b"")
        return hashlib.blake2b(text, key=self._key, digest_size=32).digest()
