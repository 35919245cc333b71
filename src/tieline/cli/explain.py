"""``tieline why`` and ``tieline trace``: why a client gets what it gets, and who would get a message.

Answers come from the running broker and change nothing: one line per step, the outcome first and the deciding rule
last.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from pathlib import Path
from typing import Annotated, Any, Final, Literal  # Any: values of JSON

import typer
from rich.table import Table
from rich.text import Text

from tieline.cli.management import RunningBroker
from tieline.cli.terminal import console, duration
from tieline.cli.trouble import MISUSED, Trouble
from tieline.cli.verbs import new_app, with_blocks
from tieline.net.log import printable

_STYLES: Final = {"yes": "green", "no": "red", "unknown": "yellow", "note": "dim"}


def steps_table(steps: list[dict[str, Any]]) -> Table:
    """One row per step."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for step in steps:
        text = Text(printable(step["text"]))
        if step["rule"]:
            text.append(f"  [{printable(step['rule'])}]", style="cyan")
        outcome = step["outcome"]
        table.add_row(Text("·" if outcome == "note" else outcome, style=_STYLES.get(outcome, "")), step["stage"], text)
    return table


def drops_table(drops: list[dict[str, Any]]) -> Table:
    """One row per record, newest first."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in ("ago", "why", "class", "client", "topic"):
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    for heading in ("messages", "queued", "age"):
        table.add_column(heading, justify="right", no_wrap=True)
    for drop in drops:
        table.add_row(
            duration(drop["ago_s"]),
            drop["why"],
            drop["class"] or "–",
            Text(printable(drop["client"])),
            Text(printable(drop["topic"])),
            f"{drop['messages']:,}",
            f"{drop['queued']:,}",
            duration(drop["age_s"]),
        )
    return table


def receivers_table(receivers: list[dict[str, Any]]) -> Table:
    """One row per subscriber of the topic."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in ("subscriber", "fate", "QoS", "by", "why"):
        table.add_column(heading, overflow="fold")
    for one in receivers:
        fate = Text(one["fate"].replace("_", " "), style=_FATES.get(one["fate"], ""))
        by = one["group"] or ", ".join(one["filters"])
        table.add_row(
            Text(printable(one["client"])),
            fate,
            "" if one["fate"] == "passed_over" else str(one["qos"]),
            Text(printable(by)),
            Text(printable(_reason(one))),
        )
    return table


_FATES: Final = {
    "sent": "green",
    "carried": "green",
    "waits": "yellow",
    "squeezes": "yellow",
    "dropped": "red",
    "passed_over": "dim",
}


def _reason(one: dict[str, Any]) -> str:
    parts = [f"{one['why']}: {one['text']}" if one["why"] else one["text"]]
    if one["condition"]:
        values = ", ".join(f"{name} = {'missing' if value is None else value}" for name, value in one["values"].items())
        parts.append(f"condition {one['condition']}" + (f" ({values})" if values else ""))
    return "; ".join(parts)


why_app = new_app()

Question = Literal["publish", "subscribe", "dropped"]


@why_app.command()
@with_blocks
def why(  # one for each option
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="A client id; * for all, with `dropped`.")],
    question: Annotated[
        Question | None, typer.Argument(metavar="[publish TOPIC|subscribe FILTER|dropped [FILTER]]", help="What about.")
    ] = None,
    subject: Annotated[str | None, typer.Argument(metavar="TOPIC", help="A topic, or a filter.")] = None,
    *,
    at: RunningBroker,
    reason: Annotated[str | None, typer.Option("--why", metavar="NAME", help="dropped: only for this reason.")] = None,
    class_: Annotated[
        str | None, typer.Option("--class", metavar="CLASS", help="dropped: only of this class, by name or level.")
    ] = None,
    since: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="dropped: only the last so many seconds.", min=0)
    ] = None,
    most: Annotated[int, typer.Option(metavar="N", help="dropped: at most so many records.", min=1, max=1000)] = 50,
    everywhere: Annotated[
        bool, typer.Option("--all", help="dropped: also what other brokers dropped that are joined with this one.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the broker's answer as JSON.")] = False,
) -> None:
    """Say why: how a client is doing, whether it may publish or subscribe and by which rule, what it lost.

    Answers come from the running broker, over its management socket, and change nothing. Of a client that it does not
    know it asks all brokers that it is joined with. Exit code 1 means no.
    """
    if question in {"publish", "subscribe"} and subject is None:
        raise Trouble(f"`tieline why {client} {question}` needs a topic or a filter.", code=MISUSED)
    if client == "*" and question != "dropped":
        raise Trouble("* stands for all clients only in `tieline why '*' dropped`.", code=MISUSED)
    with at.reach() as broker:
        if question == "dropped":
            wanted = {"client": None if client == "*" else client, "topic": subject, "why": reason, "since_s": since}
            answer = broker.ask("drops", **wanted, **{"class": _class(class_)}, most=most, all=everywhere)
        else:
            answer = broker.ask("why", client=client, ask=question or "", subject=subject or "")
    if as_json:
        print(json.dumps(answer))
    elif question == "dropped":
        _print_all_drops(answer)
    else:
        _print_steps(client, answer)
    told = answer.get("others") or {"": answer}
    if any(step["outcome"] == "no" for each in told.values() for step in each.get("steps", ())):
        raise typer.Exit(1)


def _class(word: str | None) -> str | int | None:
    return int(word) if word is not None and word.lstrip("-").isdigit() else word


def _print_steps(client: str, answer: dict[str, Any]) -> None:
    """What the broker that was asked has to say, or those that know the client."""
    here = console()
    there = answer.get("others", {})
    if not there:
        here.print(steps_table(answer["steps"]))
    for name, each in there.items():
        here.print(Text(f"{printable(client)} is at broker {printable(name)}:", style="bold"))
        here.print(steps_table(each["steps"]))
    _print_silent(answer)


def _print_silent(answer: dict[str, Any]) -> None:
    """Who was asked and has not answered; what they would say is missing."""
    if answer.get("silent"):
        names = ", ".join(map(printable, answer["silent"]))
        console().print(Text(f"not answered within 2 s, and missing here: {names}", style="yellow"))


def _print_all_drops(answer: dict[str, Any]) -> None:
    if "others" not in answer:
        _print_drops(answer)
        return
    for name, each in {answer["asked"]: answer, **answer["others"]}.items():
        console().print(Text(f"broker {printable(name)}:", style="bold"))
        if "error" in each:
            print(printable(each["error"]))
        else:
            _print_drops(each)
    _print_silent(answer)


def _print_drops(answer: dict[str, Any]) -> None:
    if answer["drops"]:
        console().print(drops_table(answer["drops"]))
    else:
        print(f"Nothing of the last {answer['kept']:,} records fits; {answer['total']:,} messages were dropped in all.")


trace_app = new_app()

#: A question is one line of at most 64 KiB, and base64 makes four bytes of three.
MOST_PAYLOAD = 40_000


@trace_app.command()
@with_blocks
def trace(  # one for each option
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic of the message.")],
    *,
    payload: Annotated[
        str, typer.Option(metavar="TEXT|@FILE", help="What it says; @FILE reads it, @- from standard input.")
    ] = "",
    prop: Annotated[
        list[str] | None, typer.Option("--property", metavar="KEY=VALUE", help="A user property. Repeatable.")
    ] = None,
    qos: Annotated[int, typer.Option(metavar="N", help="QoS of the message.", min=0, max=2)] = 0,
    retain: Annotated[bool, typer.Option("--retain", help="It is to be retained.")] = False,
    level: Annotated[
        int | None, typer.Option(metavar="N", help="Level in the extra header byte, if it has one.", min=0, max=3)
    ] = None,
    client: Annotated[
        str, typer.Option("--as", metavar="CLIENT", help="Who publishes it; access rules are asked about this client.")
    ] = "",
    _dry: Annotated[bool, typer.Option("--dry", hidden=True, help="As always: nothing is published.")] = False,
    at: RunningBroker,
    as_json: Annotated[bool, typer.Option("--json", help="Print the broker's answer as JSON.")] = False,
) -> None:
    """Follow a message through a running broker without sending it, and say who would get it and why.

    Nothing is changed by asking. Exit code 1 means that the broker would not take the message.
    """
    question = {
        "topic": topic,
        "payload": b64encode(_payload(payload)).decode(),
        "properties": [_property(text) for text in prop or ()],
        "qos": qos,
        "retain": retain,
        "header_level": level,
        "client": client,
    }
    with at.reach() as broker:
        answer = broker.ask("trace", **question)
    if as_json:
        print(json.dumps(answer))
    else:
        here = console()
        here.print(steps_table(answer["steps"]))
        if answer["receivers"]:
            here.print(Text())
            here.print(receivers_table(answer["receivers"]))
        elif not answer["is_refused"]:
            here.print("Nobody is subscribed to it.")
        if answer["unlisted"]:
            here.print(f"and {answer['unlisted']:,} more")
        for name, each in answer.get("others", {}).items():
            _print_there(name, each)
        _print_silent(answer)
    if answer["is_refused"]:
        raise typer.Exit(1)


def _print_there(name: str, answer: dict[str, Any]) -> None:
    """What another broker would do with the message."""
    here = console()
    here.print(Text())
    here.print(Text(f"broker {printable(name)}:", style="bold"))
    if "error" in answer:
        here.print(Text(printable(answer["error"]), style="yellow"))
    elif "fates" in answer:
        told = ", ".join(f"{count:,} {fate.replace('_', ' ')}" for fate, count in answer["fates"].items())
        here.print(Text(f"{told or 'nobody is subscribed to it'}; it does not say who"))
    else:
        here.print(steps_table(answer["steps"]))
        if answer["receivers"]:
            here.print(receivers_table(answer["receivers"]))
        elif not answer["is_refused"]:
            here.print("Nobody is subscribed to it there.")
        if answer["unlisted"] or answer.get("is_cut"):
            here.print(f"and {answer['unlisted']:,} more" if answer["unlisted"] else "and more")


def _payload(text: str) -> bytes:
    if not text.startswith("@"):
        found = text.encode()
    else:
        try:
            found = sys.stdin.buffer.read() if text == "@-" else Path(text[1:]).read_bytes()
        except OSError as problem:
            raise Trouble(f"cannot read {text[1:]}: {(problem.strerror or str(problem)).lower()}.") from None
    if len(found) > MOST_PAYLOAD:
        raise Trouble(f"the payload has {len(found):,} bytes; the management channel takes {MOST_PAYLOAD:,}.")
    return found


def _property(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise Trouble(f'"{text}" is no property: write KEY=VALUE.', code=MISUSED)
    return key, value
