"""What people see: steps and counters that are kept current on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tieline.cli.demo.audience import Audience
from tieline.cli.demo.ledger import Ledger, before, waits

if TYPE_CHECKING:
    from tieline.sim.microgrid.publish import Publisher

#: Between two lines where there is no terminal.
_PAUSE_S: Final = 5.0
_MARKS: Final = {"waits": "[dim]·[/]", "runs": "[yellow]▸[/]", "done": "[green]✓[/]", "left out": "[red]–[/]"}
_CLASSES: Final = {3: "protection, faults", 2: "commands", 1: "incidents", 0: "readings"}
#: How fast the frame is drawn anew; the waits of all messages are counted for each.
_FRAMES_PER_S: Final = 2.0


@dataclass(slots=True)
class Step:
    """One thing that is done, and how far it is."""

    title: str
    state: Literal["waits", "runs", "done", "left out"] = "waits"
    note: str = ""
    begun: float = 0.0
    took_s: float = 0.0


@dataclass(slots=True)
class Ingested:
    """How far the tables are behind the log."""

    rows: int = 0
    latest: int = 0


@dataclass(slots=True)
class Show:
    """Everything that is shown; changed by whoever does the work, drawn by a thread of its own."""

    console: Console
    is_live: bool
    steps: dict[str, Step]
    ledger: Ledger = field(default_factory=Ledger)
    ingested: Ingested = field(default_factory=Ingested)
    audience: Audience | None = None
    publisher: Publisher | None = None
    begun: float = field(default_factory=time.monotonic)
    #: From when to when, in the world's time, the microgrid is without the grid.
    alone_s: tuple[float, float] = (0.0, 0.0)
    #: Waits are those of what was sent until then: before a broker is killed.
    until: float | None = None
    #: What there is to try while it runs.
    hint: str = ""
    _live: Live | None = None
    _lines: threading.Thread | None = None
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        if self.is_live:
            self._live = Live(
                console=self.console, get_renderable=self.frame, refresh_per_second=_FRAMES_PER_S, transient=True
            )
            self._live.start()
        else:
            self._lines = threading.Thread(target=self._tell, daemon=True)
            self._lines.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._live is not None:
            self._live.stop()
        if self._lines is not None:
            self._lines.join()

    @contextmanager
    def doing(self, name: str) -> Iterator[Step]:
        """A step while it is done."""
        step = self.begin(name)
        yield step
        self.end(name)

    def begin(self, name: str) -> Step:
        """Say that a step begins, and from when on its time is counted."""
        step = self.steps[name]
        step.state, step.begun = "runs", time.monotonic()
        self._say(f"{step.title} …")
        return step

    def end(self, name: str, note: str = "") -> None:
        """A step is done."""
        step = self.steps[name]
        step.state, step.took_s = "done", time.monotonic() - step.begun
        step.note = note or step.note
        if step.note:
            self._say(f"{step.title}: {step.note}")

    def tell(self, text: str) -> None:
        """Something for whoever watches to try; it stays below everything else."""
        self.hint = f"{self.hint}\n{text}".strip()
        self._say(text)

    def leave_out(self, name: str, why: str) -> None:
        """A step will not be done."""
        step = self.steps[name]
        step.state, step.note = "left out", why

    def frame(self) -> RenderableType:
        """The picture at this moment."""
        both = Table.grid(padding=(0, 4))
        both.add_row(self._steps(), self._figures())
        parts: list[RenderableType] = [both]
        if self.audience is not None and self.ledger.sent_at:
            parts += [Text(), self.waits()]
        if self.hint:
            parts += [Text(), Text(self.hint, style="dim")]
        return Panel(Group(*parts), title=f"tieline demo  {self.elapsed():.0f} s", title_align="left", padding=(1, 2))

    def status(self) -> str:
        """The same in one line."""
        return "  ".join(f"{name} {value}" for name, value in self._counters())

    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.begun

    def _say(self, text: str) -> None:
        if not self.is_live:
            self.console.print(f"{self.elapsed():6.1f} s  {text}", highlight=False, markup=False, soft_wrap=True)

    def _tell(self) -> None:
        last = ""
        while not self._over.wait(_PAUSE_S):
            line = self.status()
            if line != last:
                self._say(line)
            last = line

    def _steps(self) -> Table:
        table = Table.grid(padding=(0, 1))
        for step in self.steps.values():
            spent = time.monotonic() - step.begun if step.state == "runs" else step.took_s
            shown = f"{spent:.0f} s" if step.state in ("runs", "done") else ""
            note = Text(step.note, style="dim", overflow="ellipsis", no_wrap=True)
            table.add_row(_MARKS[step.state], step.title, Text(shown, style="dim", justify="right"), note)
        return table

    def _figures(self) -> Table:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        table.add_column(justify="right", no_wrap=True)
        for name, value in self._counters():
            table.add_row(name, value)
        return table

    def _counters(self) -> Iterator[tuple[str, str]]:
        if self.publisher is None:
            return
        now, tally = self.ledger.now, self.publisher.tally
        yield "the world's time", datetime.fromtimestamp(self.publisher.now_s, UTC).strftime("%a %H:%M:%S")
        yield "the grid", "lost" if self.alone_s[0] <= self.publisher.now_s < self.alone_s[1] else "connected"
        if now.frequency is not None:
            yield "frequency", f"{now.frequency:.2f} Hz"
        if voltages := list(now.voltages.values()):
            yield "voltage", f"{min(voltages):.0f} to {max(voltages):.0f} V"
        yield "published", f"{tally.published.total():,}"
        yield "acknowledged", f"{tally.acknowledged.total():,}"
        if self.audience is not None:
            for zone, heard in self.audience.zones.items():
                yield f"zone {zone}", f"{len(heard):,}"
        if self.ingested.rows or self.ingested.latest:
            yield "in the tables", f"{self.ingested.rows:,}"
            yield "behind the log", f"{max(0, self.ingested.latest - self.ingested.rows):,}"

    def waits(self) -> Table:
        """How long the operator waits for each class."""
        assert self.audience is not None
        table = Table(
            box=None,
            header_style="dim",
            pad_edge=False,
            title="the operator, behind thin links",
            title_justify="left",
            title_style="",
        )
        table.add_column("class")
        for heading in ("arrived", "of", "median wait", "longest"):
            table.add_column(heading, justify="right")
        until = self.until or time.monotonic()
        for each in waits(before(self.ledger.sent_at, until), self.audience.operator, until):
            style = "green" if each.level >= 2 else ""
            times = (f"{each.median_s:.2f} s", f"{each.longest_s:.2f} s")
            table.add_row(_CLASSES[each.level], f"{each.arrived:,}", f"{each.sent:,}", *times, style=style)
        return table
