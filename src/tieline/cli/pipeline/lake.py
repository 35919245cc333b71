"""``tieline pipeline compact`` and ``tieline pipeline status``: what looks after a lake, and what looks at it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final  # Any: values of JSON

import typer

from tieline.cli.pipeline.flags import Json, LakePath, OnSpark, open_lake
from tieline.cli.pipeline.running import sentences
from tieline.cli.trouble import MISUSED, Trouble
from tieline.cli.verbs import new_app, with_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tieline.pipeline.lake import Status
    from tieline.pipeline.lake.compaction import Compacted


files_app = new_app()


@files_app.command()
def files(
    *,
    lake: LakePath,
    table: Annotated[str, typer.Option(metavar="NAME", help="Such as events/reading, quarantine or duplicates.")],
    json: Json = False,
) -> None:
    """Print the files that are a table, one on each line, for readers that know nothing of its log.

    In a lake of Delta tables other files lie beside them: merged ones that readers of a week ago may still use, and
    those of batches that never landed.
    """
    with sentences():
        import msgspec

        opened = open_lake(lake)
        names = [each.name for each in opened.tables()]
        if table not in names:
            raise Trouble(f'{lake} has no table "{table}"; it has {", ".join(names)}.', code=MISUSED)
        found = opened.files(table)
        print(msgspec.json.encode(found).decode() if json else "\n".join(found), end="\n" if found or json else "")


_DAYS: Final = re.compile(r"(\d{1,6})d?")

compact_app = new_app()


@compact_app.command()
@with_blocks
def compact(
    *,
    lake: LakePath,
    keep: Annotated[
        str | None, typer.Option(metavar="DAYS", help="Remove days older than so many, such as 90d; else none.")
    ] = None,
    spark: OnSpark,
    json: Json = False,
) -> None:
    """Merge the small files of each day and sort their rows along the Hilbert curve.

    Ingest may go on meanwhile. Readers see the tables as they were, or as they are afterwards. Runs in this process,
    or on Spark with --master.
    """
    days = None if keep is None else _days(keep)
    with sentences():
        import msgspec

        from tieline.pipeline.lake import compaction
        from tieline.pipeline.lake.writing import today

        opened = open_lake(lake)
        keep_from = None if days is None else today() - timedelta(days=days)

        def report(found: Iterator[Compacted]) -> None:
            count = 0
            for each in found:
                count += 1
                print(msgspec.json.encode(each._asdict()).decode() if json else _line(each))
            if not count and not json:
                print("nothing to do")

        if spark.master is None:
            report(compaction.compact(opened, keep_from=keep_from))
            return
        with spark.session("tieline compact") as here:
            from tieline.pipeline.lake.compaction import on_spark

            report(compaction.compact(opened, keep_from=keep_from, run=on_spark(here)))


def _line(found: Compacted) -> str:
    text = f"{found.table}: {found.files_before:,} files became {found.files_after:,}, {found.rows:,} rows"
    return f"{text}; {found.removed:,} old rows removed" if found.removed else text


def _days(text: str) -> int:
    found = _DAYS.fullmatch(text)
    if found is None:
        raise Trouble(f'--keep takes a number of days, such as 90d; not "{text}".', code=MISUSED)
    return int(found[1])


status_app = new_app()


@status_app.command()
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
    """Say what is in a lake: rows, files and days of each table, the last batch, the place in each broker's log.

    With --url also how far behind each log the tables are; --json is for a monitor: latest, behind, landed_ago_s.
    """
    with sentences():
        import msgspec

        found = open_lake(lake).status()
        ends = _ends(url or [], user, password)
        if json:
            behind = {name: max(0, end - found.positions.get(name, 0)) for name, end in ends.items()}
            landed = None if found.landed is None else datetime.fromisoformat(found.landed)
            age = None if landed is None else int((datetime.now(UTC) - landed).total_seconds())
            shown: dict[str, Any] = {
                **msgspec.to_builtins(found), "latest": ends, "behind": behind, "landed_ago_s": age
            }  # fmt: skip
            print(msgspec.json.encode(shown).decode())
        else:
            _print(found, ends)


def _ends(urls: list[str], user: str | None, password: str | None) -> dict[str, int]:
    from tieline.pipeline.source.client import LogClient

    found = [LogClient(each, user, password, patience_s=5.0).offsets() for each in urls]
    return {each.broker: each.latest for each in found}


def _print(found: Status, ends: dict[str, int]) -> None:
    from rich.table import Table

    from tieline.cli.terminal import console

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
