"""Patience with a server that is away: what counts as away, and how long and how often it is asked again."""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

#: The pauses between attempts grow from one to the other.
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0


class LogError(Exception):
    """A log server could not be asked, or refused; the message is one sentence."""


class Away(Exception):
    """The server did not answer, or not to the end; asking again may help."""


class Patience:
    """Pauses between attempts, until it has lasted too long since something last went well."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self.renew()

    def renew(self) -> None:
        """Begin anew, because something went well."""
        self._until: float | None = None
        self._pause_s = _FIRST_PAUSE_S

    def pause(self, problem: Away, url: str) -> None:
        """Wait before the next attempt; raises :class:`LogError` at the end of patience."""
        now = time.monotonic()
        self._until = now + self._patience_s if self._until is None else self._until
        if now + self._pause_s > self._until:
            raise LogError(f"{url} could not be read for {self._patience_s:g} s: {problem}") from None
        time.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)


@contextmanager
def breaks() -> Iterator[None]:
    """What a broken connection raises, in the many ways in which it can, becomes :class:`Away`."""
    try:
        yield
    except ssl.SSLCertVerificationError as problem:
        raise LogError(f"the certificate of the log server is not trusted: {problem.verify_message}") from None
    except (OSError, http.client.HTTPException, pa.ArrowException, ValueError) as problem:
        raise Away(_briefly(problem)) from None


def _briefly(problem: Exception) -> str:
    if isinstance(problem, TimeoutError):
        return "it does not answer"
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror.lower()
    if isinstance(problem, http.client.IncompleteRead | http.client.RemoteDisconnected):
        return "the connection broke in the middle of an answer"
    return str(problem) or type(problem).__name__
