"""``tieline pipeline match``: say what subscriptions would have delivered from the tables."""

from __future__ import annotations

import sys
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tieline.cli.pipeline.flags import Config, OnSpark, TimeSpan, open_lake, settings_of
from tieline.cli.pipeline.output import Format, show
from tieline.cli.pipeline.running import sentences
from tieline.cli.pipeline.sources import Messages
from tieline.cli.trouble import MISUSED, Trouble
from tieline.cli.verbs import new_app, with_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from tieline.pipeline.jobs.match.subscriptions import Subscription

_PAIRS: Final = ("subscription", "_shard", "_offset", "_time", "_topic")
_COUNTS: Final = ("subscription", "matches")

app = new_app()


@app.command()
@with_blocks
def match(  # one for each option
    *,
    source: Messages,
    config: Config = None,
    subscription: Annotated[
        list[str] | None,
        typer.Option(
            "--subscription", "-s", metavar="TEXT", help="As a client writes it: FILTER?CONDITION. Repeatable."
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="One on each line, or a JSON array of id, filter and where.")
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="Only how often each would have been met.")] = False,
    most: Annotated[int, typer.Option(metavar="COUNT", min=0, help="Print so many messages; 0 prints all.")] = 100,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write all of them as Parquet files instead.")] = None,
    spark: OnSpark,
    style: Format = "human",
) -> None:
    """Say which messages subscriptions would have been sent, with the broker's own matching.

    Tables know the attributes that were declared when they were filled; the log, of a log server or as files, knows
    everything that a message says, and takes its event types from --config.
    """
    with sentences():
        from pyspark.sql import functions as sql

        from tieline.pipeline.jobs.match.job import columns_for, match_messages

        wanted = _subscriptions(subscription or [], file)
        settings = settings_of(config)
        rows = source.check()
        with spark.session("tieline match", rows=rows, work="matching") as here:
            if source.lake is not None:
                found = _on_tables(here, source.lake, wanted, source.span, counted=count)
            else:
                messages = source.read_log(here, columns_for(settings))
                found = match_messages(messages, wanted, settings, counted=count)
            if out is not None:
                found.write.mode("error").parquet(str(out.absolute()))
                return
            if count:
                rows_found = found.orderBy(sql.desc("matches"), "subscription").collect()
            else:
                ordered = found.orderBy("_time", "_shard", "_offset", "subscription")
                rows_found = (ordered.limit(most + 1) if most else ordered).collect()
        told = [row.asDict() for row in rows_found]
        if count:
            known = {row["subscription"] for row in told}
            never = [{"subscription": each.id, "matches": 0} for each in wanted if each.id not in known]
            show(_COUNTS, [*told, *never], style)
            return
        show(_PAIRS, told[:most] if most else told, style)
        if most and len(told) > most:
            print("tieline: there are more; --most says how many are printed, --count counts.", file=sys.stderr)


def _on_tables(
    spark: SparkSession, lake: str, wanted: Sequence[Subscription], span: TimeSpan, *, counted: bool
) -> DataFrame:
    """What all tables of a lake hold: declared types, other topics, and what could not be read but has a topic."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as sql

    from tieline.match.cover.filters import overlap
    from tieline.match.events import Events
    from tieline.pipeline.jobs.match.bound import within_reach
    from tieline.pipeline.jobs.match.job import match_events, match_messages, match_payloads
    from tieline.pipeline.jobs.match.subscriptions import NoSubscription
    from tieline.pipeline.lake import OTHER

    opened = open_lake(lake)
    settings = opened.document.settings()
    found = []
    nowhere = set()
    somewhere = set()
    for name, event in Events(settings).types.items():
        able, unable = within_reach([each for each in wanted if overlap(each.filter, event.topic)], event)
        somewhere |= {each.id for each in able}
        nowhere |= {each.id for each in unable}
        if unable:
            print(f"tieline: {_left_out(unable, name)}", file=sys.stderr)
        if able:
            found.append(match_events(opened.read(spark, name, span.since, span.until), able, event, counted=counted))
    for each in sorted(nowhere - somewhere):
        raise NoSubscription(
            f'"{each}" asks for nothing that an event type of its topics declares: tables hold what is declared. '
            "Ask the log instead."
        )
    found.append(match_payloads(opened.read(spark, OTHER, span.since, span.until), wanted, settings, counted=counted))
    nothing = sql.lit(None).cast("map<string, struct<number: double, text: string, flag: boolean>>")
    unread = opened.quarantine(spark, span.since, span.until).withColumn("attributes", nothing)
    found.append(match_messages(unread, wanted, settings, counted=counted))
    whole = reduce(DataFrame.unionByName, found)
    return whole.groupBy("subscription").agg(sql.sum("matches").alias("matches")) if counted else whole


def _left_out(unable: Sequence[Subscription], event: str) -> str:
    others = f" and {len(unable) - 1} more" if len(unable) > 1 else ""
    return (
        f'"{unable[0].id}"{others} cannot be met by events of type {event}, which declares nothing of what is asked '
        "for; they are left out."
    )


def _subscriptions(texts: Sequence[str], file: Path | None) -> list[Subscription]:
    from tieline.pipeline.jobs.match.subscriptions import distinct, read, subscription

    wanted = distinct([*map(subscription, texts), *([] if file is None else read(file))])
    if not wanted:
        raise Trouble("give subscriptions: -s 'FILTER?CONDITION', or --file FILE.", code=MISUSED)
    return wanted
