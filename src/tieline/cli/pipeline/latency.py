"""``tieline pipeline latency``: hold waiting times against what IEC 61850 and IEEE 1646 allow."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from tieline.cli.pipeline.flags import Master, Since, Until, Verbose, sentences, session
from tieline.cli.pipeline.sources import EventFiles, PasswordFile, Urls, User, records
from tieline.cli.pipeline.tables import Format, show

_COLUMNS: Final = (
    "level", "class", "topics", "messages", "p50_ms", "p95_ms", "p99_ms", "max_ms",
    "requirement", "strict_ms", "limit_ms", "within", "verdict",
)  # fmt: skip

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def latency(
    *,
    url: Urls = None,
    events: EventFiles = None,
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="CLASS=NAME", help="What a class, by name or level, has to keep. Repeatable."),
    ] = None,
    part: Annotated[
        float, typer.Option(metavar="PART", min=0.0, max=1.0, help="The verdict is about this part of the messages.")
    ] = 0.99,
    depth: Annotated[
        int, typer.Option(metavar="LEVELS", min=0, help="Tell topics apart by so many of their first levels.")
    ] = 0,
    since: Since = None,
    until: Until = None,
    user: User = None,
    password_file: PasswordFile = None,
    master: Master = None,
    style: Format = "human",
    verbose: Verbose = False,
) -> None:
    """Say how long messages waited in brokers, class by class, and whether that is soon enough.

    Times are upper bounds: brokers count in buckets that end at 1, 2, 4, … ms. Where a limit lies inside the bucket in
    question the verdict is undecided. Requirements: immediate-1a, immediate-1b, control, monitoring, distribution,
    demand-response, outage.
    """
    with sentences():
        from tieline.pipeline.jobs.latency import latency as job
        from tieline.pipeline.jobs.latency import requirements_of
        from tieline.pipeline.jobs.traffic import deliveries

        required = requirements_of(require or ())
        with session(master, "tieline latency", verbose=verbose) as spark:
            told = records(
                spark, "events", url, events, user=user, password_file=password_file, since=since, until=until
            )
            found = job(deliveries(told), required, judged=part, depth=depth)
            rows = sorted(found.collect(), key=lambda row: (-row["level"], row["class"], row["topics"]))
            show(_COLUMNS, [row.asDict() for row in rows], style)
