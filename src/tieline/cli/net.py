"""``tieline net``: the network of joined brokers as one of them knows it, as a table, as JSON or as a drawing."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any, Final  # Any: values of JSON

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tieline.cli.management import RunningBroker, shown
from tieline.cli.net_drawing import drawing
from tieline.cli.net_ring import ring
from tieline.cli.terminal import console, duration, size
from tieline.cli.trouble import MISUSED, Trouble
from tieline.cli.verbs import with_blocks

#: What is told in the last table, and in which words.
_TOTALS: Final = {
    "useless": "came in vain",
    "waiting/frames": "wait for links",
    "unacknowledged/frames": "not acknowledged by the next broker",
    "parked/frames": "parked without a way",
    "held/parcels": "held for an earlier one",
    "owed/parcels": "owed to other brokers",
}

app = typer.Typer(invoke_without_command=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
@with_blocks
def net(
    context: typer.Context,
    *,
    at: RunningBroker,
    watch: Annotated[bool, typer.Option("--watch", help="Go on, until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(metavar="SECONDS", help="Seconds between looks.", min=0.1, max=3600)] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the broker's answer as JSON, one line each.")] = False,
    everywhere: Annotated[bool, typer.Option("--all", help="Ask all brokers about their own links, too.")] = False,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the brokers and their links.")] = None,
) -> None:
    """Show the network of joined brokers as a running one knows it: brokers, links, what passes and what waits.

    Who is there and which links are up is known of all; numbers are of the broker's own links. Rates are since the
    last time that somebody asked.
    """
    if context.invoked_subcommand is not None:
        return
    if svg is not None and watch:
        raise Trouble("--svg draws once: it does not go with --watch.", code=MISUSED)
    wanted = {"all": True} if everywhere else {}
    with at.reach() as broker:
        if svg is not None:
            answer = shown(broker.ask("net", **wanted))
            if answer.get("mode") == "ring":
                raise Trouble(
                    "a broker on a ring knows a few others, and no network that could be drawn.", code=MISUSED
                )
            _draw(svg, answer)
        elif watch and not as_json:
            _watch(lambda: render(shown(broker.ask("net", **wanted))), every_s=every)
        else:
            while True:
                answer = broker.ask("net", **wanted)
                if as_json:
                    print(json.dumps(answer), flush=True)
                else:
                    console(pipe_width=140).print(render(shown(answer)))
                if not watch:
                    break
                time.sleep(every)


@app.command()
@with_blocks
def forget(
    gone: Annotated[str, typer.Argument(metavar="NAME", help="The broker that does not come back.")],
    *,
    dry: Annotated[bool, typer.Option("--dry", help="Only say what would be forgotten.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the brokers' answers as JSON.")] = False,
    at: RunningBroker,
) -> None:
    """Have all joined brokers forget one that is gone for good: what it wanted, its sessions, and what is owed to it.

    Messages for groups go to other members, all others are dropped as "forgotten". It is refused while the broker is in
    reach of anybody. Should it come back all the same, it misses what was dropped, and everything else is as before.
    """
    with at.reach() as broker:
        answer = broker.ask("forget", broker=gone, **({"dry": True} if dry else {}))
    if as_json:
        print(json.dumps(answer))
        return
    said = {answer["asked"]: answer, **answer["others"]}
    for each, found in said.items():
        if "error" in found:
            print(f"{each}: {found['error']}")
        elif found["is_known"]:
            print(f"{each}: {found['wanted']:,} that {gone} wanted, {found['owed']:,} parcels owed to it")
    print(f"nothing is changed: leave out --dry to forget {gone}" if dry else f"{gone} is forgotten")
    if answer["silent"]:
        raise Trouble(f"not answered within 2 s: {', '.join(answer['silent'])}. Say it again when they are back.")


def _watch(frame: Any, *, every_s: float) -> None:  # Any: a function without arguments
    try:
        with Live(frame(), auto_refresh=False, screen=Console().is_terminal) as live:
            while True:
                time.sleep(every_s)
                live.update(frame(), refresh=True)
    except KeyboardInterrupt:
        return


def _draw(file: Path, answer: dict[str, Any]) -> None:
    try:
        file.write_text(drawing(answer), "utf-8")
    except OSError as problem:
        raise Trouble(f"cannot write {file}: {(problem.strerror or str(problem)).lower()}.") from None
    print(f"{file}: {answer['verdict']}")


def render(answer: dict[str, Any]) -> RenderableType:
    """One look: the verdict, the brokers, the links, and what passes those of the broker that was asked."""
    if answer.get("mode") == "ring":
        return ring(answer)
    name = answer["name"]
    parts: list[RenderableType] = [Text(answer["verdict"], style="bold"), Text(), _brokers(answer), Text()]
    if answer["links"] or answer["own"]:
        parts += [_links(answer), Text()]
    if any(one["sent"] or one["received"] or one["waiting"] for link in answer["own"] for one in link["classes"]):
        parts += [_classes(answer), Text()]
    if "outside" in answer:
        parts.append(_outside(answer["outside"]))
    for away in answer["away"]:
        parts.append(Text(f"{away['url']}: {away['trouble']}", style="yellow"))
    totals = answer["totals"]
    told = ", ".join(f"{totals[key]:,} {words}" for key, words in _TOTALS.items())
    parts.append(Text(f"At {name}: {told}; strategy {answer['strategy']}."))
    if answer.get("silent"):
        parts.append(Text(f"Not answered within 2 s: {', '.join(answer['silent'])}.", style="yellow"))
    if answer["counts"]:
        counted = ", ".join(f"{what.replace('_', ' ')} {count:,}" for what, count in sorted(answer["counts"].items()))
        parts.append(Text(f"Counted at {name}: {counted}.", style="dim"))
    return Group(*parts)


def _brokers(answer: dict[str, Any]) -> Table:
    table = _table("broker", "reached", "by the link to", right=("wants", "owed", "bytes"))
    for broker in answer["brokers"]:
        is_reached = broker["is_reachable"]
        table.add_row(
            Text(_named(broker), style="bold" if broker["is_here"] else ""),
            Text("here" if broker["is_here"] else "yes" if is_reached else "no", style="" if is_reached else "red"),
            ", ".join(broker["via"]) or "–",
            f"{broker['wants']:,}",
            "" if broker["is_here"] else f"{broker['owed']:,}",
            "" if broker["is_here"] else size(broker["owed_bytes"]),
        )
    return table


def _named(broker: dict[str, Any]) -> str:
    """A broker, and of which region it is a gateway in this one, if it is."""
    region, name = broker.get("gateway_of", ""), broker["name"]
    return f"{name} (gateway of {region})" if region and "@" not in name else str(name)


def _outside(outside: dict[str, Any]) -> RenderableType:
    """The gateways of other regions, as this one knows them."""
    found = [broker for broker in outside["brokers"] if not broker["is_here"]]
    regions = sorted({broker["gateway_of"] for broker in found if broker["gateway_of"] != outside["region"]})
    said = f"Gateway of region {outside['region']}: {', '.join(regions) or 'no other region'} known."
    return Group(Text(said, style="bold"), Text(), _brokers(outside), Text())


def _links(answer: dict[str, Any]) -> Table:
    """Every link that is known, with the numbers of a broker that has it: of the one that was asked, if it does."""
    table = _table("link", "state", right=("round trip", "least", "out/s", "in/s", "waiting", "lost"))
    told: set[frozenset[str]] = set()
    for name, each in {answer["name"]: answer, **answer.get("others", {})}.items():
        for link in each.get("own", ()):
            pair = frozenset((name, link["peer"]))
            if pair not in told and (link["is_up"] or name == answer["name"]):
                told.add(pair)
                table.add_row(*_row(name, link))
    for link in answer["links"]:
        if frozenset(link["ends"]) not in told:
            state = Text("up") if link["is_up"] else Text("one end only", style="yellow")
            table.add_row(" – ".join(link["ends"]), state, *[""] * 6)
    return table


def _row(name: str, link: dict[str, Any]) -> tuple[str | Text, ...]:
    """One link, as the broker of this name has it."""
    is_up = link["is_up"]
    trip = (_milliseconds(link["round_trip_s"]), _milliseconds(link["least_round_trip_s"])) if is_up else ("–", "–")
    return (
        f"{name} – {link['peer']}",
        Text(f"{'up' if is_up else 'down'} {duration(link['since_s'])}", style="" if is_up else "red"),
        *trip,
        size(_sum(link, "sent_bytes_per_s")),
        size(_sum(link, "received_bytes_per_s")),
        f"{_sum(link, 'waiting'):,.0f}",
        ", ".join(f"{why} {times:,}" for why, times in link["lost"].items()) or "–",
    )


def _classes(answer: dict[str, Any]) -> Table:
    """What passes each of the broker's own links, class by class."""
    table = _table(
        f"{answer['name']}'s links", "class", right=("sent", "bytes", "per s", "came", "bytes", "per s", "waiting")
    )
    for link in answer["own"]:
        for one in link["classes"]:
            if not (one["sent"] or one["received"] or one["waiting"]):
                continue
            table.add_row(
                link["peer"],
                f"{one['level']} {one['class']}",
                f"{one['sent']:,}",
                size(one["sent_bytes"]),
                size(one["sent_bytes_per_s"]),
                f"{one['received']:,}",
                size(one["received_bytes"]),
                size(one["received_bytes_per_s"]),
                f"{one['waiting']:,}",
            )
    return table


def _table(*left: str, right: tuple[str, ...]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in left:
        table.add_column(heading, overflow="ellipsis", no_wrap=True)
    for heading in right:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _sum(link: dict[str, Any], what: str) -> float:
    return float(sum(class_[what] for class_ in link["classes"]))


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds else "–"
