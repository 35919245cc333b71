"""``tieline reload``: let a running broker read its configuration again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tieline.cli.management import Management
from tieline.cli.trouble import FAILED, MISUSED
from tieline.conf.paths import management_socket
from tieline.conf.schema import Settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def reload(
    *,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="The broker's --data directory.")] = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="The broker's --name, if it has no data directory.")
    ] = Settings().name,
    socket: Annotated[Path | None, typer.Option(metavar="PATH", help="The management socket itself.")] = None,
    dry: Annotated[bool, typer.Option("--dry", help="Only print what would change.")] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Apply what can be applied, although the rest needs a restart.")
    ] = False,
) -> None:
    """Print what differs from the file the broker was started with, then apply it.

    A file that cannot be used changes nothing. Neither does one with changes that need a restart, unless --partial is
    given; exit code 2 says so.
    """
    with Management(socket or management_socket(str(data) if data is not None else None, name)) as broker:
        planned = broker.ask("reload", dry=True)
        _print(planned)
        if dry:
            raise typer.Exit(MISUSED if planned["refused"] else 0)
        if planned["refused"] and not partial:
            names = ", ".join(planned["refused"])
            print(f"tieline: nothing was changed: {names} would need a restart (--partial: the rest).", file=sys.stderr)
            raise typer.Exit(MISUSED)
        done = broker.ask("reload", partial=partial)
    if not done["applied"]:
        print("tieline: the file has changed in the meantime; nothing was applied.", file=sys.stderr)
        raise typer.Exit(FAILED)
    print(f"applied; {done['disconnected']} clients were disconnected")


def _print(answer: dict[str, Any]) -> None:
    for change in answer["changes"]:
        state = "applies now" if change["live"] else "needs a restart"
        print(f"{change['key']}: {change['old']} -> {change['new']}  ({state})")
    for name in answer["read_again"]:
        print(f"{name}: read again")
    if not answer["changes"]:
        print("no setting differs")
