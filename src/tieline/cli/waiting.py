"""What takes long says so: a line on standard error that changes, and goes when the work is done.

It is there for people alone: nothing is written where standard error is no terminal, and nothing in the first two
seconds.  Answers are printed when it has gone, so that it never lies between them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from tieline.cli.terminal import duration

if TYPE_CHECKING:
    from rich.console import Console

#: Who has an answer sooner does not need to be told that it comes.
AFTER_S: Final = 2.0
_LOOK_S: Final = 0.5

#: How far it is, in words; nothing if that is not known.
Progress = Callable[[], str]


class Step:
    """What is being done now."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._progress: Progress | None = None

    def go_on(self, what: str, progress: Progress | None = None) -> None:
        """Something else is done from now on."""
        self._what, self._progress = what, progress

    def told(self, seconds: float) -> str:
        """The line after so many seconds of work."""
        far = ""
        # whoever knows how far it is may end at any moment, and the work itself says why
        with suppress(Exception):
            far = "" if self._progress is None else self._progress()
        return ", ".join(part for part in (self._what, far, duration(seconds)) if part)


@contextmanager
def waiting(what: str, *, screen: Console | None = None, after_s: float = AFTER_S) -> Iterator[Step]:
    """While this lasts, a terminal says what is being done and for how long already."""
    from rich.console import Console

    screen = screen or Console(stderr=True)
    step = Step(what)
    if not screen.is_terminal:
        yield step
        return
    ended = threading.Event()
    thread = threading.Thread(target=_show, args=(screen, step, ended, after_s), name="tieline waiting", daemon=True)
    thread.start()
    try:
        yield step
    finally:
        ended.set()
        thread.join()


def _show(screen: Console, step: Step, ended: threading.Event, after_s: float) -> None:
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    began = time.monotonic()
    if ended.wait(after_s):
        return
    spinner = Spinner("dots", Text(step.told(after_s)))
    # answers must never go to standard error, whoever prints one too soon
    with Live(spinner, console=screen, transient=True, redirect_stdout=False):
        while not ended.wait(_LOOK_S):
            spinner.update(text=Text(step.told(time.monotonic() - began)))
