"""What a solver says while it works: a line that changes on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from tieline.cli.plan.words import amount, share

if TYPE_CHECKING:
    from tieline.plan.run import Progress

#: Seconds between two plain lines, unless the plan became better by much.
_EVERY_S = 2.0


class Display:
    """Shows incumbent, bound and gap as they come, on standard error: standard output is for the result."""

    def __init__(self, label: str = "") -> None:
        self._console = Console(stderr=True)
        self._label = f"{label}: " if label else ""
        self._live = Live(console=self._console, transient=True, refresh_per_second=5, auto_refresh=False)
        self._told = -math.inf

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()

    def tell(self, progress: Progress) -> None:
        """Take one step of the solver into account."""
        line = self._label + in_words(progress)
        if self._console.is_terminal:
            self._live.update(Text(line, style="dim"), refresh=True)
        elif time.monotonic() - self._told >= _EVERY_S:
            self._told = time.monotonic()
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)


def in_words(progress: Progress) -> str:
    """One step of a solver in one line."""
    plan = "no plan yet"
    if math.isfinite(progress.objective):
        plan = f"objective {amount(progress.objective)}, unmet {progress.unmet:,}"
    bound = f"bound {amount(progress.bound)}" if math.isfinite(progress.bound) else "no bound yet"
    gap = f", gap {share(progress.gap)}" if math.isfinite(progress.objective + progress.bound) else ""
    return f"{progress.seconds:6.1f} s  {progress.doing}: {plan}, {bound}{gap}"


class Stop:
    """Whether somebody pressed Ctrl-C: the first time asks for the best plan so far, the second ends the command."""

    def __init__(self) -> None:
        self.is_asked = False

    def __call__(self) -> bool:
        return self.is_asked

    def ask(self, _signal: int, _frame: FrameType | None) -> None:
        """Handle SIGINT: remember it, and let a second one end the command."""
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True


@contextmanager
def stoppable() -> Iterator[Stop]:
    """While a solver works, Ctrl-C asks it for the best plan so far."""
    stop = Stop()
    before = signal.signal(signal.SIGINT, stop.ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
