"""Waiting for something that another thread or process does, without guessing how long it takes."""

from __future__ import annotations

from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

#: Far beyond what anything in the tests takes on a machine that is busy with something else, and far below a test's
#: time limit.  Whoever waits goes on as soon as it has happened, so that only a failure takes this long.
PATIENCE_S: Final = 60


def until(ask: Callable[[], T | None], what: str, *, within_s: float = PATIENCE_S) -> T:
    """The first answer that is true; an AssertionError that names ``what`` when there is none in time."""
    deadline = monotonic() + within_s
    while not (answer := ask()):
        assert monotonic() < deadline, f"waited {within_s:g} s in vain: {what}"
        sleep(0.002)
    return answer
