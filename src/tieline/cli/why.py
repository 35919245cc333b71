"""``tieline why``: why a client gets what it gets, may do what it may, and lost what it lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tieline.cli.management import Management
from tieline.cli.steps import console, drops_table, steps_table
from tieline.cli.trouble import MISUSED, Trouble
from tieline.conf.paths import management_socket
from tieline.conf.schema import Settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Question = Literal["publish", "subscribe", "dropped"]


@app.command()
def why(
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="A client id; * for all, with `dropped`.")],
    question: Annotated[
        Question | None, typer.Argument(metavar="[publish TOPIC|subscribe FILTER|dropped [FILTER]]", help="What about.")
    ] = None,
    subject: Annotated[str | None, typer.Argument(metavar="TOPIC", help="A topic, or a filter.")] = None,
    *,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="The broker's --data directory.")] = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="The broker's --name, if it has no data directory.")
    ] = Settings().name,
    socket: Annotated[Path | None, typer.Option(metavar="PATH", help="The management socket itself.")] = None,
    reason: Annotated[str | None, typer.Option("--why", metavar="NAME", help="dropped: only for this reason.")] = None,
    class_: Annotated[
        str | None, typer.Option("--class", metavar="CLASS", help="dropped: only of this class, by name or level.")
    ] = None,
    since: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="dropped: only the last so many seconds.", min=0)
    ] = None,
    most: Annotated[int, typer.Option(metavar="N", help="dropped: at most so many records.", min=1, max=1000)] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print the broker's answer as JSON.")] = False,
) -> None:
    """Say why: how a client is doing, whether it may publish or subscribe and by which rule, what it lost.

    Answers come from the running broker, over its management socket, and change nothing. Exit code 1 means no.
    """
    if question in {"publish", "subscribe"} and subject is None:
        raise Trouble(f"`tieline why {client} {question}` needs a topic or a filter.", code=MISUSED)
    if client == "*" and question != "dropped":
        raise Trouble("* stands for all clients only in `tieline why '*' dropped`.", code=MISUSED)
    with Management(socket or management_socket(str(data) if data is not None else None, name)) as broker:
        if question == "dropped":
            wanted = {"client": None if client == "*" else client, "topic": subject, "why": reason, "since_s": since}
            answer = broker.ask("drops", **wanted, **{"class": _class(class_)}, most=most)
        else:
            answer = broker.ask("why", client=client, ask=question or "", subject=subject or "")
    if as_json:
        print(json.dumps(answer))
    elif question == "dropped":
        _print_drops(answer)
    else:
        console().print(steps_table(answer["steps"]))
    if any(step["outcome"] == "no" for step in answer.get("steps", ())):
        raise typer.Exit(1)


def _class(word: str | None) -> str | int | None:
    return int(word) if word is not None and word.lstrip("-").isdigit() else word


def _print_drops(answer: dict[str, Any]) -> None:
    if answer["drops"]:
        console().print(drops_table(answer["drops"]))
    else:
        print(f"Nothing of the last {answer['kept']:,} records fits; {answer['total']:,} messages were dropped in all.")
