"""``tieline top``: watch a running broker: how fast, who is slow, what was dropped and why."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any  # Any: values of JSON

import msgspec
import typer
from msgspec import Struct, field
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tieline.cli.management import Management, RunningBroker
from tieline.cli.terminal import console, duration, number, size
from tieline.cli.trouble import Trouble
from tieline.cli.verbs import new_app, with_blocks
from tieline.net.log import printable

#: Users whose memory is shown.
MOST_OWNERS = 5


class Rates(Struct, frozen=True, kw_only=True):
    """What passed through the broker lately, per second."""

    received_per_s: float = 0.0
    sent_per_s: float = 0.0
    bytes_in_per_s: float = 0.0
    bytes_out_per_s: float = 0.0
    dropped_per_s: float = 0.0
    commits_per_s: float = 0.0


class Clients(Struct, frozen=True, kw_only=True):
    """How many are there."""

    connected: int = 0
    sessions: int = 0


class Content(Struct, frozen=True, kw_only=True):
    """Subscriptions with a condition, and what was looked at for them."""

    subscriptions: int = 0
    sifted: int = 0
    unreadable: int = 0
    references: int = 0
    forgotten: int = 0


class Logins(Struct, frozen=True, kw_only=True):
    """Logins that were refused without being checked."""

    throttled: int = 0
    turned_away: int = 0


class Heat(Struct, frozen=True, kw_only=True):
    """Whose heat orders the topics of a class: the broker's own, or that of a table somebody gave."""

    source: str = "own"
    entries: int = 0
    left_s: float = 0.0


class Spilled(Struct, frozen=True, kw_only=True):
    """What waits in the store alone, for all sessions."""

    messages: int = 0
    bytes: int = 0


class Slow(Struct, frozen=True, kw_only=True):
    """One session, and the reason why it is not being served at the moment."""

    client: str
    peer: str = ""
    queued: int = 0
    queued_bytes: int = 0
    #: Of what waits, what waits in the store alone.
    spilled: int = 0
    spilled_bytes: int = 0
    inflight: int = 0
    #: How long the message that goes next has been with the broker.
    oldest_s: float = 0.0
    paused: str = ""
    #: Whose full queue it waits for.
    waits_for: str = ""
    #: Classes in which it is congested.
    congested: list[str] = field(default_factory=list)
    dropped: int = 0


class Traffic(Struct, frozen=True, kw_only=True):
    """One class: how much of it there is, and how long it waits."""

    name: str
    level: int = 0
    received: int = 0
    received_per_s: float = 0.0
    dropped: int = 0
    wait_p50_s: float = 0.0
    wait_p99_s: float = 0.0
    congested: int = 0
    oldest_s: float = 0.0
    timeout_s: float = 0.0


class Store(Struct, frozen=True, kw_only=True):
    """Whether what is acknowledged survives, and what waits for that."""

    is_durable: bool = False
    waiting: int = 0


class Owned(Struct, frozen=True, kw_only=True):
    """What is kept for one user, or for all clients without one."""

    user: str | None = None
    bytes: int = 0
    sessions: int = 0


class Verdict(Struct, frozen=True, kw_only=True):
    """How the broker is, in a sentence."""

    state: str = "ok"
    text: str = ""
    detail: str = ""


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that needs attention, and the command that tells more."""

    title: str
    state: str = "warn"
    text: str = ""
    command: str = ""


class Snapshot(Struct, frozen=True, kw_only=True):
    """The broker's answer to ``top``; fields of a newer broker are passed over."""

    name: str
    version: str = ""
    listeners: list[str] = field(default_factory=list)
    uptime_s: float = 0.0
    verdict: Verdict = field(default_factory=Verdict)
    attention: list[Finding] = field(default_factory=list)
    rates: Rates = field(default_factory=Rates)
    clients: Clients = field(default_factory=Clients)
    subscriptions: int = 0
    content: Content = field(default_factory=Content)
    logins: Logins = field(default_factory=Logins)
    store: Store = field(default_factory=Store)
    retained: int = 0
    queued_bytes: int = 0
    spilled: Spilled = field(default_factory=Spilled)
    #: What is kept because of clients: bytes by kind, and for whom most of it.
    memory: dict[str, int] = field(default_factory=dict)
    owners: list[Owned] = field(default_factory=list)
    loop_lag_ms: float = 0.0
    longest_turn_ms: float = 0.0
    gc_pause_ms: float = 0.0
    drops: dict[str, int] = field(default_factory=dict)
    closed: dict[str, int] = field(default_factory=dict)
    #: Sessions that the broker has ended, by reason.
    ended: dict[str, int] = field(default_factory=dict)
    classes: list[Traffic] = field(default_factory=list)
    heat: Heat = field(default_factory=Heat)
    #: Topic, heat, and whose: "own" or "given".
    hottest: list[tuple[str, float, str]] = field(default_factory=list)
    slowest: list[Slow] = field(default_factory=list)


def render(snapshot: Snapshot) -> RenderableType:
    """One frame: rates, classes, what was dropped or closed and why, and who is slow."""
    title = f"[bold]{snapshot.name}[/] {snapshot.version}  up {duration(snapshot.uptime_s)}"
    parts: list[RenderableType] = [
        *_verdict(snapshot),
        _summary(snapshot),
        Text(),
        _counted("messages dropped because", snapshot.drops, otherwise="Nothing was dropped."),
        Text(),
        _counted("connections closed because", snapshot.closed, otherwise="No connection was closed by the broker."),
        Text(),
        _slowest(snapshot),
    ]
    said = len(parts) - 7
    if any(snapshot.ended.values()):
        parts[said + 5 : said + 5] = [_counted("sessions ended because", snapshot.ended, otherwise=""), Text()]
    if any(snapshot.memory.values()):
        parts[said + 2 : said + 2] = [_memory(snapshot), Text()]
    if any(traffic.received for traffic in snapshot.classes):
        parts[said + 2 : said + 2] = [_classes(snapshot), Text()]
    return Panel(Group(*parts), title=title, subtitle=" ".join(snapshot.listeners), subtitle_align="left")


#: How many findings are shown above the figures, and in which colour each state is.
MOST_FINDINGS = 4
_STYLES = {"ok": "green", "warn": "yellow", "bad": "red"}


def _verdict(snapshot: Snapshot) -> list[RenderableType]:
    """The sentence of the live page, and what needs attention; nothing if the broker says nothing of the kind."""
    verdict, findings = snapshot.verdict, snapshot.attention
    if not verdict.text:
        return []
    told: list[RenderableType] = [Text(printable(verdict.text), style=f"bold {_STYLES.get(verdict.state, '')}")]
    for finding in findings[:MOST_FINDINGS]:
        line = Text("  ! ", style=_STYLES.get(finding.state, ""))
        line.append(f"{printable(finding.title)}: ", style="bold")
        line.append(f"{printable(finding.text)} ", style="default")
        line.append(printable(finding.command), style="dim")
        told.append(line)
    if len(findings) > MOST_FINDINGS:
        told.append(Text(f"  and {len(findings) - MOST_FINDINGS} more", style="dim"))
    return [*told, Text()]


def render_all(answer: dict[str, Any]) -> RenderableType:
    """One frame for all brokers that have answered: a line each."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("broker", overflow="ellipsis", no_wrap=True)
    for heading in ("up", "received/s", "sent/s", "clients", "sessions", "queued", "dropped/s", "lag", "slowest"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, each in {answer["name"]: answer, **answer["others"]}.items():
        if "error" in each:
            table.add_row(Text(printable(name)), Text(printable(str(each["error"])), style="yellow"))
            continue
        one = msgspec.convert(each, Snapshot)
        behind = next((slow.client for slow in one.slowest if slow.queued or slow.spilled), "–")
        table.add_row(
            Text(printable(name), style="bold"),
            duration(one.uptime_s),
            f"{one.rates.received_per_s:,.0f}",
            f"{one.rates.sent_per_s:,.0f}",
            f"{one.clients.connected:,}",
            f"{one.clients.sessions:,}",
            _queued(one),
            f"{one.rates.dropped_per_s:,.0f}",
            f"{one.loop_lag_ms:.1f} ms",
            Text(printable(behind)),
        )
    if not answer["silent"]:
        return table
    names = ", ".join(map(printable, answer["silent"]))
    return Group(table, Text(f"not answered within 2 s: {names}", style="yellow"))


def _summary(snapshot: Snapshot) -> Table:
    rates = snapshot.rates
    rows = [
        ("received", f"{rates.received_per_s:,.0f} msg/s", "clients", f"{snapshot.clients.connected:,}"),
        ("sent", f"{rates.sent_per_s:,.0f} msg/s", "sessions", f"{snapshot.clients.sessions:,}"),
        ("in", f"{size(rates.bytes_in_per_s)}/s", "subscriptions", f"{snapshot.subscriptions:,}"),
        ("out", f"{size(rates.bytes_out_per_s)}/s", "retained", f"{snapshot.retained:,}"),
        ("loop lag", f"{snapshot.loop_lag_ms:.1f} ms", "queued", _queued(snapshot)),
        ("longest turn", f"{snapshot.longest_turn_ms:.1f} ms", "longest GC pause", f"{snapshot.gc_pause_ms:.1f} ms"),
    ]
    content = snapshot.content
    conditions = ("conditions", f"{content.subscriptions:,}") if content.subscriptions else ("", "")
    rows.append(("dropped", f"{rates.dropped_per_s:,.0f} msg/s", *conditions))
    if snapshot.store.is_durable:
        waiting = f"{snapshot.store.waiting:,}"
        rows.append(("store", f"{rates.commits_per_s:,.0f} commits/s", "waiting for it", waiting))
    if content.sifted:
        unreadable = f"{content.unreadable:,}" if not content.unreadable else f"[yellow]{content.unreadable:,}[/]"
        rows.append(("looked into", f"{content.sifted:,} msg", "references kept", f"{content.references:,}"))
        rows.append(("unreadable", f"{unreadable} msg", "", ""))
    logins = snapshot.logins
    if logins.throttled or logins.turned_away:
        throttled, turned_away = (f"[yellow]{count:,}[/]" for count in (logins.throttled, logins.turned_away))
        rows.append(("logins throttled", throttled, "turned away", turned_away))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(style="bold", justify="right", min_width=14)
    table.add_column(style="dim")
    table.add_column(style="bold", justify="right", min_width=10)
    for row in rows:
        table.add_row(*row)
    return table


def _memory(snapshot: Snapshot) -> RenderableType:
    """What is kept because of clients, by kind, and for whom most of it."""
    table = Table("kept in memory", "", box=None, header_style="dim", pad_edge=False)
    table.columns[1].justify = "right"
    kinds = sorted(((kind, count) for kind, count in snapshot.memory.items() if count), key=lambda each: -each[1])
    for kind, count in kinds:
        table.add_row(kind, size(count))
    table.add_row("total", size(sum(snapshot.memory.values())))
    owners = Table("kept for", "", "sessions", box=None, header_style="dim", pad_edge=False)
    for column in owners.columns[1:]:
        column.justify = "right"
    for owned in snapshot.owners[:MOST_OWNERS]:
        name = "clients without a user" if owned.user is None else printable(owned.user)
        owners.add_row(Text(name), size(owned.bytes), f"{owned.sessions:,}")
    beside = Table.grid(padding=(0, 4))
    beside.add_row(table, owners)
    return beside


def _classes(snapshot: Snapshot) -> RenderableType:
    """Levels, how long they wait when somebody is congested, and the hottest topics beside them."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("class", no_wrap=True)
    for heading in ("received", "per s", "dropped", "wait p50", "p99", "oldest", "timeout", "congested"):
        table.add_column(heading, justify="right", no_wrap=True)
    for traffic in snapshot.classes:
        is_late = traffic.oldest_s > traffic.timeout_s
        table.add_row(
            f"{traffic.level} {traffic.name}",
            f"{traffic.received:,}",
            f"{traffic.received_per_s:,.0f}",
            f"[yellow]{traffic.dropped:,}[/]" if traffic.dropped else "0",
            duration(traffic.wait_p50_s),
            duration(traffic.wait_p99_s),
            f"[red]{duration(traffic.oldest_s)}[/]" if is_late else duration(traffic.oldest_s),
            duration(traffic.timeout_s),
            f"[yellow]{traffic.congested:,}[/]" if traffic.congested else "0",
        )
    if not snapshot.hottest and snapshot.heat.source == "own":
        return table
    beside = Table.grid(padding=(0, 4))
    beside.add_row(table, _hottest(snapshot))
    return beside


def _hottest(snapshot: Snapshot) -> Table:
    """Topics by heat; where somebody gave a table, whose number each one is, and how long that holds."""
    heat = snapshot.heat
    is_own = heat.source == "own"
    table = Table("hottest topics", "subscribers" if is_own else "heat", box=None, header_style="dim", pad_edge=False)
    table.columns[1].justify = "right"
    if not is_own:
        table.add_column(f"{heat.source}, {duration(heat.left_s)} left", no_wrap=True)
    for topic, value, source in snapshot.hottest[:4]:
        table.add_row(Text(printable(topic)), number(value), *(() if is_own else (source,)))
    return table


def _counted(heading: str, counts: dict[str, int], *, otherwise: str) -> RenderableType:
    some = {reason: count for reason, count in counts.items() if count}
    if not some:
        return Text(otherwise, style="green")
    table = Table(heading, "", box=None, header_style="dim", pad_edge=False)
    table.columns[1].justify = "right"
    for reason, count in sorted(some.items(), key=lambda item: -item[1]):
        table.add_row(_spaced(reason), f"[yellow]{count:,}[/]")
    return table


def _queued(snapshot: Snapshot) -> str:
    """What waits in memory, and what waits in the store alone where something does."""
    spilled = snapshot.spilled.bytes
    return f"{size(snapshot.queued_bytes)} + {size(spilled)} on disk" if spilled else size(snapshot.queued_bytes)


def _slowest(snapshot: Snapshot) -> RenderableType:
    behind = [slow for slow in snapshot.slowest if slow.queued or slow.spilled or slow.dropped or slow.inflight]
    if not behind:
        return Text("Every client keeps up.", style="green")
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("slowest clients", overflow="ellipsis", no_wrap=True)
    table.add_column("from", overflow="ellipsis", no_wrap=True)
    for heading in ("waiting", "bytes", "in flight", "oldest", "dropped"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("why", style="yellow", no_wrap=True)
    for slow in behind:
        table.add_row(
            Text(printable(slow.client)),
            slow.peer or "–",
            f"{slow.queued + slow.spilled:,}",
            size(slow.queued_bytes + slow.spilled_bytes),
            f"{slow.inflight:,}",
            duration(slow.oldest_s),
            f"{slow.dropped:,}",
            Text(_why(slow)),
        )
    return table


def _why(slow: Slow) -> str:
    """What it waits for, and what that means for its classes."""
    text = _spaced(slow.paused)
    if slow.waits_for:
        text += f" of {printable(slow.waits_for)}"
    if slow.congested:
        text += f", congested: {printable(', '.join(slow.congested))}"
    return text


def _spaced(word: str) -> str:
    return word.replace("_", " ")


app = new_app()


@app.command()
@with_blocks
def top(
    *,
    at: RunningBroker,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the broker's answer as JSON, one line each.")] = False,
    every: Annotated[float, typer.Option(metavar="SECONDS", help="Seconds between frames.", min=0.1, max=3600)] = 1.0,
    everywhere: Annotated[
        bool, typer.Option("--all", help="All brokers that are joined with this one, a line each.")
    ] = False,
) -> None:
    """Watch a running broker: rates, slow clients, drops. Ends with Ctrl-C."""
    with at.reach() as broker:
        wanted = {"all": True} if everywhere else {}
        if as_json:
            _print_json(broker, wanted, once=once, every_s=every)
        elif once:
            console(pipe_width=120).print(_frame(broker.ask("top", **wanted)))
        else:
            _watch(broker, wanted, every_s=every)


def _print_json(broker: Management, wanted: dict[str, bool], *, once: bool, every_s: float) -> None:
    while True:
        print(json.dumps(broker.ask("top", **wanted)), flush=True)
        if once:
            return
        time.sleep(every_s)


def _watch(broker: Management, wanted: dict[str, bool], *, every_s: float) -> None:
    try:
        with Live(_frame(broker.ask("top", **wanted)), auto_refresh=False, screen=Console().is_terminal) as live:
            while True:
                time.sleep(every_s)
                live.update(_frame(broker.ask("top", **wanted)), refresh=True)
    except KeyboardInterrupt:
        return


def _frame(answer: dict[str, Any]) -> RenderableType:
    try:
        if "others" in answer:
            return render_all(answer)
        return render(msgspec.convert(answer, Snapshot))
    except msgspec.ValidationError as problem:
        raise Trouble(f"the broker's answer cannot be read; is it of another version? ({problem})") from None
