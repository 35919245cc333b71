"""A bar while a run lasts, on a terminal; a line for each step, where there is no bar to see, and for each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tieline.bench.suite.record import Row


class Steps:
    """So many steps, and the one that is being made."""

    def __init__(self, console: Console, line: Callable[[Row], str] = str) -> None:
        """``line`` is how a row is told."""
        self._console = console
        self._line = line
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
            refresh_per_second=2,  # drawing takes CPU that the brokers are measured by
        )
        self._task = self._bar.add_task("starting", total=None)
        self._steps = self._begun = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.stop()

    def planned(self, steps: int) -> None:
        """So many steps will be made."""
        self._steps = steps
        self._bar.update(self._task, total=steps)

    def step(self, text: str) -> None:
        """A step begins."""
        self._bar.update(self._task, description=text, completed=self._begun)
        self._begun += 1
        if not self._console.is_terminal:
            self.say(f"[{self._begun}/{self._steps}] {text}")

    def found(self, rows: Sequence[Row]) -> None:
        """Rows are complete."""
        for row in rows:
            self.say(f"  {self._line(row)}")

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)
