"""``tieline clients``, ``subscriptions``, ``retained`` and ``kick``: what a running broker keeps, and who has to go."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal  # Any: values of JSON

import typer
from rich.table import Table
from rich.text import Text

from tieline.cli.management import Management, RunningBroker, shown
from tieline.cli.terminal import console, duration, size
from tieline.cli.trouble import FAILED, Trouble
from tieline.cli.verbs import new_app, with_blocks
from tieline.net.log import printable

#: Entries that are fetched at once; a broker gives no more.
_PAGE: Final = 1_000

clients_app, subscriptions_app, retained_app, kick_app = new_app(), new_app(), new_app(), new_app()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How much of a list is printed, and for whom."""

    most: Annotated[int, typer.Option(metavar="N", help="Print at most so many; 0 prints all.", min=0)] = 100
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on each line.")] = False

    def print(self, broker: Management, question: dict[str, Any], table: Table, row: Any) -> None:  # Any: a function
        """Fetch what was asked for, page by page, and print it."""
        entries, is_more = self._fetch(broker, question)
        if self.as_json:
            for entry in entries:
                print(json.dumps(entry))
            return
        for entry in entries:
            table.add_row(*row(shown(entry)))
        if not entries:
            print("Nothing fits.")
            return
        console().print(table)
        if is_more:
            print(f"and more: --most {10 * self.most} prints more of them, --most 0 all")

    def _fetch(self, broker: Management, question: dict[str, Any]) -> tuple[list[dict[str, Any]], bool]:
        name = question.pop("do")
        answer = broker.ask(name, **question, most=min(self.most or _PAGE, _PAGE))
        entries: list[dict[str, Any]] = answer[name]
        while answer["more"] and (not self.most or len(entries) < self.most):
            answer = broker.ask("more")
            entries += answer[name]
        is_more = answer["more"] or (self.most > 0 and len(entries) > self.most)
        return entries[: self.most or None], is_more


@clients_app.command()
@with_blocks
def clients(
    client: Annotated[str, typer.Argument(metavar="[PATTERN]", help="Client ids, with * and ?.")] = "*",
    *,
    state: Annotated[
        Literal["connected", "away", "slow"] | None,
        typer.Option(help="Only those connected, away, or for which something waits."),
    ] = None,
    user: Annotated[str | None, typer.Option(metavar="USER", help="Only those of this user.")] = None,
    shape: Shape,
    at: RunningBroker,
) -> None:
    """List the clients of a running broker: who is connected, who is away, what waits for them and why.

    `tieline why CLIENT` tells more of one of them.
    """
    table = _table("client", "user", "from", "state", right=("MQTT", "subscriptions", "waits", "oldest", "dropped"))
    with at.reach() as broker:
        shape.print(broker, {"do": "sessions", "client": client, "state": state or "", "user": user}, table, _client)


def _client(entry: dict[str, Any]) -> Iterator[Text]:
    is_connected = entry["is_connected"]
    waits = f"{entry['queued'] + entry['spilled']:,} ({size(entry['queued_bytes'] + entry['spilled_bytes'])})"
    state = entry["paused"].replace("_", " ") if is_connected else f"away for {duration(entry['away_s'])}"
    if entry["waits_for"]:
        state += f", behind {entry['waits_for']}"
    yield from map(Text, (entry["client"], entry["user"] or "–", entry["peer"] or "–", state))
    yield Text({0: "–", 4: "3.1.1"}.get(entry["version"], str(entry["version"])))
    yield Text(f"{entry['subscriptions']:,}")
    yield Text(waits if entry["queued"] or entry["spilled"] else "–")
    yield Text(duration(entry["oldest_s"]) if entry["oldest_s"] else "–")
    yield Text(f"{entry['dropped']:,}" if entry["dropped"] else "–")


@subscriptions_app.command()
@with_blocks
def subscriptions(
    client: Annotated[str, typer.Argument(metavar="[PATTERN]", help="Of these client ids, with * and ?.")] = "*",
    *,
    topic: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Only those that match a topic, whatever their conditions say.")
    ] = None,
    conditions: Annotated[bool, typer.Option("--conditions", help="Only those with a condition.")] = False,
    shape: Shape,
    at: RunningBroker,
) -> None:
    """List the subscriptions at a running broker: who has asked for what, and under which condition.

    `tieline trace TOPIC` says who would get one particular message.
    """
    table = _table("client", "filter", "condition", "group", right=("QoS",))
    question = {"do": "subscriptions", "client": client, "topic": topic, "conditions": conditions}
    with at.reach() as broker:
        shape.print(broker, question, table, _subscription)


def _subscription(entry: dict[str, Any]) -> Iterator[Text]:
    who = entry["client"] if entry["is_connected"] else f"{entry['client']} (away)"
    yield from map(Text, (who, entry["filter"], entry["condition"] or "–", entry["group"] or "–"))
    yield Text(f"{entry['qos']}{', no local' if entry['no_local'] else ''}")


@retained_app.command()
@with_blocks
def retained(
    filter_: Annotated[
        str, typer.Argument(metavar="[FILTER]", help="Topics, with + and #; those of $SYS are seen by '$SYS/#'.")
    ] = "#",
    *,
    shape: Shape,
    at: RunningBroker,
) -> None:
    """List the retained messages of a running broker: the last one of each topic.

    Payloads are shown up to 256 bytes. `tieline pub -t TOPIC -n -r` removes one.
    """
    table = _table("topic", "payload", "publisher", right=("bytes", "QoS", "level", "expires in"))
    with at.reach() as broker:
        shape.print(broker, {"do": "retained", "filter": filter_}, table, _retained)


def _retained(entry: dict[str, Any]) -> Iterator[Text]:
    payload = b64decode(entry["payload"])
    try:
        text = printable(payload.decode())
    except UnicodeDecodeError:
        text = f"0x{payload.hex()}"
    text += "…" if entry["payload_bytes"] > len(payload) else ""
    yield from map(Text, (entry["topic"], text, entry["publisher"] or "–", f"{entry['payload_bytes']:,}"))
    yield from map(Text, (str(entry["qos"]), str(entry["level"])))
    yield Text("–" if entry["left_s"] is None else duration(entry["left_s"]))


@kick_app.command()
@with_blocks
def kick(
    client: Annotated[list[str], typer.Argument(metavar="CLIENT…", help="Client ids, exactly.")],
    *,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="End the session too: subscriptions and whatever waits for the client are gone."),
    ] = False,
    at: RunningBroker,
) -> None:
    """End the connections of clients; MQTT 5 clients are told that an operator did (0x98), and wills are published.

    A client may come back at once: to keep it out, change its user or its rules and `tieline reload`. Exit code 1: one
    of them has no session at this broker.
    """
    is_missing = False
    with at.reach() as broker:
        for each in client:
            try:
                answer = broker.ask("kick", client=each, forget=forget)
            except Trouble as trouble:
                is_missing = True
                console().print(Text(f"{printable(each)}: {trouble}", style="yellow"))
                continue
            was = "disconnected" if answer["was_connected"] else "was away"
            print(
                f"{printable(each)}: {was}; {'its session is kept' if answer['is_kept'] else 'nothing of it is kept'}"
            )
    if is_missing:
        raise typer.Exit(FAILED)


def _table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for column in right:
        table.add_column(column, justify="right", no_wrap=True)
    return table
