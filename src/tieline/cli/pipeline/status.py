"""``tieline pipeline status``: what the tables hold, and how far ingest has come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tieline.cli.pipeline.flags import Json, LakePath, sentences

if TYPE_CHECKING:
    from tieline.pipeline.lake import Status

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def status(
    *,
    lake: LakePath,
    url: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="A broker's log server, to say how far behind. Repeatable.")
    ] = None,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="The user for the log servers.")] = None,
    password: Annotated[str | None, typer.Option(metavar="TEXT", envvar="TIELINE_PASSWORD", help="The password.")] = (
        None
    ),
    json: Json = False,
) -> None:
    """Say what is in a lake: rows, files and days of each table, the last batch, the place in each broker's log."""
    with sentences():
        import msgspec

        from tieline.pipeline.lake import Lake

        found = Lake.open(lake).status()
        ends = _ends(url or [], user, password)
        if json:
            shown: dict[str, Any] = msgspec.to_builtins(found) | {"latest": ends}
            print(msgspec.json.encode(shown).decode())
        else:
            _print(found, ends)


def _ends(urls: list[str], user: str | None, password: str | None) -> dict[str, int]:
    from tieline.pipeline.source.client import LogClient

    found = [LogClient(each, user, password, patience_s=5.0).offsets() for each in urls]
    return {each.broker: each.latest for each in found}


def _print(found: Status, ends: dict[str, int]) -> None:
    from rich.table import Table

    from tieline.cli.steps import console

    here = console()
    last = "no batch yet" if found.landed is None else f"batch {found.batch} landed {found.landed}"
    here.print(f"{found.lake} ({found.format}): {last}", highlight=False, soft_wrap=True)
    tables = Table(box=None, header_style="dim", pad_edge=False)
    tables.add_column("table", no_wrap=True)
    for heading in ("rows", "files", "bytes", "first day", "last day"):
        tables.add_column(heading, justify="right", no_wrap=True)
    for each in found.tables:
        days = (each.first_day or "–", each.last_day or "–")
        tables.add_row(each.name, f"{each.rows:,}", f"{each.files:,}", f"{each.bytes:,}", *days)
    here.print(tables)
    if found.positions or ends:
        logs = Table(box=None, header_style="dim", pad_edge=False)
        logs.add_column("log", no_wrap=True)
        for heading in ("position", "latest", "behind"):
            logs.add_column(heading, justify="right", no_wrap=True)
        for shard in sorted({*found.positions, *ends}):
            at, end = found.positions.get(shard, 0), ends.get(shard)
            behind = ("–", "–") if end is None else (f"{end:,}", f"{max(0, end - at):,}")
            logs.add_row(shard, f"{at:,}", *behind)
        here.print(logs)
    if found.history_files:
        here.print(f"{found.history_files:,} history files taken", highlight=False)
