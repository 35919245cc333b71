"""One frame of ``tieline top``: how fast, who is slow, what was dropped and why."""

from __future__ import annotations

from msgspec import Struct, field
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text


class Rates(Struct, frozen=True, kw_only=True):
    """What passed through the broker lately, per second."""

    received_per_s: float = 0.0
    sent_per_s: float = 0.0
    bytes_in_per_s: float = 0.0
    bytes_out_per_s: float = 0.0


class Clients(Struct, frozen=True, kw_only=True):
    """How many are there."""

    connected: int = 0
    sessions: int = 0


class Slow(Struct, frozen=True, kw_only=True):
    """One session with messages waiting."""

    client: str
    peer: str | None = None
    queued: int = 0
    queued_bytes: int = 0
    oldest_s: float | None = None
    paused: bool | str | None = None
    dropped: int = 0


class Snapshot(Struct, frozen=True, kw_only=True):
    """The broker's answer to ``top``; fields of a newer broker are passed over."""

    name: str
    version: str = ""
    uptime_s: float = 0.0
    rates: Rates = field(default_factory=Rates)
    clients: Clients = field(default_factory=Clients)
    subscriptions: int = 0
    retained: int = 0
    queued_bytes: int = 0
    loop_lag_ms: float | None = None
    drops: dict[str, int] = field(default_factory=dict)
    slowest: list[Slow] = field(default_factory=list)


def render(snapshot: Snapshot) -> RenderableType:
    """The whole frame."""
    title = f"[bold]{snapshot.name}[/] {snapshot.version}  up {duration(snapshot.uptime_s)}"
    return Panel(Group(_summary(snapshot), Text(), _drops(snapshot), Text(), _slowest(snapshot)), title=title)


def _summary(snapshot: Snapshot) -> Table:
    rates = snapshot.rates
    lag = "–" if snapshot.loop_lag_ms is None else f"{snapshot.loop_lag_ms:.1f} ms"
    rows = (
        ("received", f"{rates.received_per_s:,.0f} msg/s", "clients", f"{snapshot.clients.connected:,}"),
        ("sent", f"{rates.sent_per_s:,.0f} msg/s", "sessions", f"{snapshot.clients.sessions:,}"),
        ("in", f"{size(rates.bytes_in_per_s)}/s", "subscriptions", f"{snapshot.subscriptions:,}"),
        ("out", f"{size(rates.bytes_out_per_s)}/s", "retained", f"{snapshot.retained:,}"),
        ("loop lag", lag, "queued", size(snapshot.queued_bytes)),
    )
    table = Table.grid(padding=(0, 2))
    for justify, style in (("left", "dim"), ("right", "bold"), ("left", "dim"), ("right", "bold")):
        table.add_column(justify=justify, style=style, min_width=10)  # type: ignore[arg-type]  # a plain str here
    for row in rows:
        table.add_row(*row)
    return table


def _drops(snapshot: Snapshot) -> RenderableType:
    dropped = {reason: count for reason, count in snapshot.drops.items() if count}
    if not dropped:
        return Text("Nothing was dropped.", style="green")
    table = Table("dropped because", "messages", box=None, header_style="dim", pad_edge=False)
    table.columns[1].justify = "right"
    for reason, count in sorted(dropped.items(), key=lambda item: -item[1]):
        table.add_row(reason.replace("_", " "), f"[red]{count:,}[/]")
    return table


def _slowest(snapshot: Snapshot) -> RenderableType:
    if not snapshot.slowest:
        return Text("Every client keeps up.", style="green")
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("slowest clients", overflow="ellipsis", no_wrap=True)
    table.add_column("from")
    for heading in ("waiting", "bytes", "oldest", "dropped"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for slow in snapshot.slowest:
        oldest = "–" if slow.oldest_s is None else duration(slow.oldest_s)
        paused = f"[yellow]paused{f': {slow.paused}' if isinstance(slow.paused, str) else ''}[/]" if slow.paused else ""
        peer = slow.peer or "[dim]away[/]"
        table.add_row(
            Text(_printable(slow.client)), peer, f"{slow.queued:,}", size(slow.queued_bytes), oldest, f"{slow.dropped:,}", paused
        )
    return table


def _printable(text: str) -> str:
    """A client chooses its identifier; it does not choose what our terminal does."""
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)


def duration(seconds: float) -> str:
    """A time as people say it."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"


def size(count: float) -> str:
    """A number of bytes as people say it."""
    for length, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count:.0f} B"
