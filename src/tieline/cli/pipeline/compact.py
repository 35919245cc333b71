"""``tieline pipeline compact``: merge small files, sort them anew, remove what is too old."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tieline.cli.pipeline.flags import Json, LakePath, Master, Verbose, sentences, session
from tieline.cli.trouble import MISUSED, Trouble

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tieline.pipeline.lake.compaction import Compacted

_DAYS: Final = re.compile(r"(\d{1,6})d?")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def compact(
    *,
    lake: LakePath,
    keep: Annotated[
        str | None, typer.Option(metavar="DAYS", help="Remove days older than so many, such as 90d; else none.")
    ] = None,
    master: Master = None,
    json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Merge the small files of each day and sort their rows along the Hilbert curve.

    Ingest may go on meanwhile. Readers see the tables as they were, or as they are afterwards. Runs in this process,
    or on Spark with --master.
    """
    days = None if keep is None else _days(keep)
    with sentences():
        import msgspec

        from tieline.pipeline.lake import Lake, compaction
        from tieline.pipeline.lake.writing import today

        opened = Lake.open(lake)
        keep_from = None if days is None else today() - timedelta(days=days)

        def report(found: Iterator[Compacted]) -> None:
            count = 0
            for each in found:
                count += 1
                print(msgspec.json.encode(each._asdict()).decode() if json else _line(each))
            if not count and not json:
                print("nothing to do")

        if master is None:
            report(compaction.compact(opened, keep_from=keep_from))
            return
        with session(master, "tieline compact", verbose=verbose) as spark:
            from tieline.pipeline.lake.compaction import on_spark

            report(compaction.compact(opened, keep_from=keep_from, run=on_spark(spark)))


def _line(found: Compacted) -> str:
    text = f"{found.table}: {found.files_before:,} files became {found.files_after:,}, {found.rows:,} rows"
    return f"{text}; {found.removed:,} old rows removed" if found.removed else text


def _days(text: str) -> int:
    found = _DAYS.fullmatch(text)
    if found is None:
        raise Trouble(f'--keep takes a number of days, such as 90d; not "{text}".', code=MISUSED)
    return int(found[1])
