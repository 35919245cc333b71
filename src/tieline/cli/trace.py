"""``tieline trace``: who would get a message and why, stage by stage, without sending it."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from tieline.cli.management import Management
from tieline.cli.steps import console, receivers_table, steps_table
from tieline.cli.trouble import MISUSED, Trouble
from tieline.conf.paths import management_socket
from tieline.conf.schema import Settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

#: A question is one line of at most 64 KiB, and base64 makes four bytes of three.
MOST_PAYLOAD = 40_000


@app.command()
def trace(
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
    dry: Annotated[bool, typer.Option("--dry", help="Required: this command explains, and never publishes.")] = False,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="The broker's --data directory.")] = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="The broker's --name, if it has no data directory.")
    ] = Settings().name,
    socket: Annotated[Path | None, typer.Option(metavar="PATH", help="The management socket itself.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the broker's answer as JSON.")] = False,
) -> None:
    """Follow a message through a running broker without sending it, and say who would get it and why.

    Nothing is changed by asking. Exit code 1 means that the broker would not take the message.
    """
    if not dry:
        raise Trouble("trace only explains and never publishes: say so with --dry, or use `tieline pub`.", code=MISUSED)
    question = {
        "topic": topic,
        "payload": b64encode(_payload(payload)).decode(),
        "properties": [_property(text) for text in prop or ()],
        "qos": qos,
        "retain": retain,
        "header_level": level,
        "client": client,
    }
    with Management(socket or management_socket(str(data) if data is not None else None, name)) as broker:
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
    if answer["is_refused"]:
        raise typer.Exit(1)


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
