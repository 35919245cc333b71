"""Passwords that were right a moment ago, recognised without the slow check.

When a broker restarts or a network comes back, every client logs in at once, and each check takes a tenth of a second.
What is kept is a keyed hash of user and password, with a key that exists only in this process: it is of no use to
anybody who reads the memory of another one, and a wrong password never finds an entry.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tieline.core.ports import Login

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
