"""The password file: one ``user:hash`` on each line, the hash made by argon2id."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from argon2 import PasswordHasher

    from tieline.core.ports import Login

#: What a user may not be called: "*" and "-" mean others in rules; the rest could not be read back.
_REFUSED_NAMES: Final = frozenset({"", "*", "-"})
_HASH: Final = re.compile(r"\$argon2id\$v=\d+\$m=(\d+),t=(\d+),p=(\d+)\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+")
#: A file above this is not a password file.
_MOST_BYTES: Final = 64 * 1024 * 1024


class PasswordFileError(Exception):
    """A password file that cannot be used; the text is a whole sentence and holds no hash."""


class Passwords:
    """The users of one password file."""

    def __init__(self, hashes: dict[str, str]) -> None:
        self._hashes = hashes
        self._hasher = _hasher()
        #: What the password of a user who does not exist is compared with: as costly as the costliest real one.
        self._decoy = max(hashes.values(), key=_cost, default=None)
        self._decoy_hash: str | None = None

    def __repr__(self) -> str:
        return f"<Passwords of {len(self._hashes)} users>"

    def __contains__(self, user: str) -> bool:
        return user in self._hashes

    def differs(self, user: str, other: Passwords) -> bool:
        """Whether a user has another password there, or none, than here."""
        return self._hashes.get(user) != other._hashes.get(user)

    def authenticate(self, login: Login) -> str | None:
        """The user, if the password is the user's.  Takes as long for a user who does not exist."""
        from argon2.exceptions import Argon2Error, InvalidHashError

        found = self._hashes.get(login.username or "")
        password = login.password or b""
        try:
            # argon2 compares in constant time, and lets other threads run meanwhile
            self._hasher.verify(found or self._stand_in(), password)
        except (Argon2Error, InvalidHashError):
            return None
        return None if found is None else login.username

    def _stand_in(self) -> str:
        """A hash of something nobody knows."""
        if self._decoy_hash is None:
            hasher = self._hasher if self._decoy is None else _hasher_like(self._decoy)
            self._decoy_hash = hasher.hash(secrets.token_bytes(32))
        return self._decoy_hash


def read(path: str | Path) -> Passwords:
    """Read a password file; a line that is neither a user nor a comment is an error."""
    path = Path(path)
    return Passwords(dict(_entries(path, _text(path))))


def put(path: str | Path, user: str, password: bytes | None, hasher: PasswordHasher | None = None) -> bool:
    """Set a user's password, or remove the user (None); True if the user was there before.

    The file is written beside the old one and takes its place, so nobody ever reads half of it; of two who do this at
    the same time one waits, so that neither undoes what the other did.  A link stays one, and the file keeps its owner
    and its mode.
    """
    path = Path(path)
    if problem := flaw(user):
        raise PasswordFileError(problem)
    added = None if password is None else f"{user}:{(hasher or _hasher()).hash(password)}"
    with _told_if_unwritable(path):
        target = path.resolve()
    with _locked(target, path):
        text = _text(path) if target.exists() else ""
        existed = user in dict(_entries(path, text))
        lines = [line for line in text.splitlines() if line.startswith("#") or line.partition(":")[0] != user]
        if added is not None:
            lines.append(added)
        if existed or added is not None:
            with _told_if_unwritable(path):
                _replace(target, "".join(f"{line}\n" for line in lines))
    return existed


def flaw(user: str) -> str | None:
    """Why nobody may be called that; None if somebody may."""
    if user in _REFUSED_NAMES:
        return f'"{user}" is no user name.'
    if user.startswith("#") or ":" in user or any(not letter.isprintable() for letter in user):
        return "a user name has no colon, no control character, and no # at its beginning."
    return None


def exposure(path: str | Path) -> str | None:
    """A warning, if others than its owner can read the file or write to it."""
    with suppress(OSError):
        if stat.S_IMODE(Path(path).stat().st_mode) & 0o077:
            return f"{path} can be read or changed by others than its owner: chmod 600 {path}"
    return None


def _entries(path: Path, text: str) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        user, colon, hashed = line.partition(":")
        if not colon:
            raise PasswordFileError(f"{path}:{number}: a line is user:hash.")
        if problem := flaw(user):
            raise PasswordFileError(f"{path}:{number}: {problem}")
        if not _HASH.fullmatch(hashed):
            known = "tieline passwd writes it"
            raise PasswordFileError(f"{path}:{number}: what follows the user is not an argon2id hash; {known}.")
        if user in seen:
            raise PasswordFileError(f'{path}:{number}: the user "{user}" is there already.')
        seen.add(user)
        yield user, hashed


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise PasswordFileError(f"{path} is too large to be a password file.")
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise PasswordFileError(f"{path} cannot be read: {(problem.strerror or str(problem)).lower()}.") from None
    except UnicodeDecodeError:
        raise PasswordFileError(f"{path} is not written in UTF-8.") from None


@contextmanager
def _locked(target: Path, path: Path) -> Iterator[None]:
    """Nobody else changes the file meanwhile; its directory is locked, because the file itself is replaced."""
    with _told_if_unwritable(path):
        lock = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


@contextmanager
def _told_if_unwritable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as problem:  # links that lead in a circle are a RuntimeError
        said = getattr(problem, "strerror", None) or str(problem)
        raise PasswordFileError(f"{path} cannot be written: {said.lower()}.") from None


def _replace(path: Path, text: str) -> None:
    """Write a file in one step: a new one for its owner alone, an old one with the owner and the mode that it had."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            with suppress(FileNotFoundError):
                before = path.stat()
                if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher  # only a broker with passwords needs it

    return PasswordHasher()


def _hasher_like(hashed: str) -> PasswordHasher:
    from argon2 import PasswordHasher

    memory, rounds, lanes = _cost_of(hashed)
    return PasswordHasher(time_cost=rounds, memory_cost=memory, parallelism=lanes)


def _cost(hashed: str) -> int:
    memory, rounds, _lanes = _cost_of(hashed)
    return memory * rounds


def _cost_of(hashed: str) -> tuple[int, int, int]:
    found = _HASH.fullmatch(hashed)
    assert found is not None
    return int(found[1]), int(found[2]), int(found[3])
