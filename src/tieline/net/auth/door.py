"""Everything behind the question "who is this?": the gate, the users it knows, and the threads that check them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any  # Any: nobody asks what such a callback returns

from tieline.access.gate import Gate
from tieline.access.users import admit_nobody
from tieline.core.ports import Allowed, Login, Refused
from tieline.net.auth import passwords
from tieline.net.auth.pool import Pool, Remembered

if TYPE_CHECKING:
    from tieline.access.users import Authenticator
    from tieline.conf.schema import Settings


def read_users(settings: Settings) -> passwords.Passwords | None:
    """The users of the password file; None without one."""
    path = settings.auth.password_file
    return None if path is None else passwords.read(path)


class Door:
    """Lets clients in: the gate, and the threads that check passwords for it."""

    def __init__(
        self,
        settings: Settings,
        *,
        authenticator: Authenticator | None,
        deliver: Callable[..., Any],
        decided: Callable[[int, Allowed | Refused], None],
        clock: Callable[[], float],
    ) -> None:
        """An authenticator of somebody's own takes the place of the password file.

        ``deliver`` calls a function with its arguments in the broker's thread.
        """
        self._settings = settings
        self._own = authenticator
        self._deliver = deliver
        self._users = None if authenticator is not None else read_users(settings)
        self._memory = Remembered(settings.auth.remember_s)
        self._pool: Pool | None = None
        #: What pools counted that are no longer in use.
        self._turned_away = 0
        self.gate = Gate(settings, check=None, memory=self._memory, decided=decided, clock=clock)
        self._open_pool()

    @property
    def has_users(self) -> bool:
        """Whether a user name and password can be checked."""
        return self._pool is not None

    @property
    def throttled(self) -> int:
        """Logins refused unheard, because too many had failed."""
        return self.gate.throttled

    @property
    def turned_away(self) -> int:
        """Logins refused because too many were being checked."""
        return self._turned_away + (0 if self._pool is None else self._pool.turned_away)

    def renew(self, settings: Settings, users: passwords.Passwords | None) -> Callable[[Login], str | None]:
        """Other settings and users from now on; the answer says why a client that is in may not stay."""
        before, self._users = self._users, users if self._own is None else None
        self._settings = settings
        self._memory.seconds = settings.auth.remember_s
        self._open_pool()
        return lambda login: self._why_not(login, before)

    def close(self) -> None:
        """Check nobody any more."""
        if self._pool is not None:
            self._pool.close()

    def _open_pool(self) -> None:
        """A pool of the right size for the users there are; one that is in use ends when its line is empty."""
        auth, old = self._settings.auth, self._pool
        checker: Authenticator | None = self._own if self._own is not None else self._users
        if old is not None:
            old.retire()
            self._turned_away += old.turned_away
        self._pool = None
        if checker is not None:
            self._pool = Pool(
                checker,
                workers=auth.workers,
                waiting=auth.waiting,
                deliver=self._deliver,
                is_hopeless=self.gate.is_hopeless,
            )
        self.gate.renew(self._settings, None if self._pool is None else self._pool.check)

    def _why_not(self, login: Login, before: passwords.Passwords | None) -> str | None:
        if login.certificate_user is not None or self._own is not None:
            return None
        if login.user is None:
            verdict = admit_nobody(self._settings.auth.anonymous, login, has_users=self._users is not None)
            return verdict.rule if isinstance(verdict, Refused) else None
        users = self._users
        if before is None or users is None or login.user not in users or before.differs(login.user, users):
            return "the user was removed, or has another password"
        return None
