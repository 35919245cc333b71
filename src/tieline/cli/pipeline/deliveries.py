"""``tieline pipeline latency`` and ``tieline pipeline traffic``: what brokers told about their deliveries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from tieline.cli.pipeline.flags import OnSpark
from tieline.cli.pipeline.output import Format, show
from tieline.cli.pipeline.running import sentences
from tieline.cli.pipeline.sources import EventRecords, check_target
from tieline.cli.trouble import Trouble
from tieline.cli.verbs import new_app, with_blocks

_LATENCY: Final = (
    "level", "class", "topics", "messages", "p50_ms", "p95_ms", "p99_ms", "max_ms",
    "requirement", "strict_ms", "limit_ms", "within", "verdict",
    "kbps", "least_kbps", "most_kbps", "bandwidth",
)  # fmt: skip

latency_app = new_app()


@latency_app.command()
@with_blocks
def latency(  # one for each option
    *,
    source: EventRecords,
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
    by_broker: Annotated[
        bool, typer.Option("--by-broker", help="Tell apart which broker accepted a message and which delivered it.")
    ] = False,
    on_the_way: Annotated[
        bool, typer.Option("--on-the-way", help="How long brokers had it that came from another one, not deliveries.")
    ] = False,
    spark: OnSpark,
    style: Format = "human",
) -> None:
    """Say how long messages waited in brokers, class by class, and whether that is soon enough.

    Times are upper bounds: brokers count in buckets that end at 1, 2, 4, … ms. Where a limit lies inside the bucket in
    question the verdict is undecided. What a class takes of a line (kbps) is held against the bandwidth that the same
    table gives it. Requirements: immediate-1a, immediate-1b, control, monitoring, distribution,
    demand-response, outage.
    """
    with sentences():
        from tieline.pipeline.jobs.latency import BROKERS, requirements_of
        from tieline.pipeline.jobs.latency import latency as job
        from tieline.pipeline.jobs.traffic import carried, deliveries

        required = requirements_of(require or ())
        brokers = BROKERS if by_broker or on_the_way else ()
        with spark.session("tieline latency", rows=source.check(), work="counting deliveries") as here:
            told = source.read(here)
            records = carried(told) if on_the_way else deliveries(told)
            found = job(records, required, judged=part, depth=depth, by_broker=by_broker or on_the_way)
            rows = sorted(
                found.collect(),
                key=lambda row: (*(row[name] for name in brokers), -row["level"], row["class"], row["topics"]),
            )
        columns = (*brokers, *(("hops",) if on_the_way else ()), *_LATENCY)
        show(columns, [row.asDict() for row in rows], style)


_TRAFFIC: Final = (
    "shard", "origin", "publisher", "topic", "subscriber", "class",
    "messages", "bytes", "messages_per_s", "bytes_per_s",
)  # fmt: skip

traffic_app = new_app()


@traffic_app.command()
@with_blocks
def traffic(
    *,
    source: EventRecords,
    instance: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the planning problem; `tieline plan` reads it.")
    ] = None,
    network: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Brokers and the links between them, in JSON.")
    ] = None,
    unit: Annotated[
        Literal["bytes", "messages"], typer.Option(help="What rates and capacities of the instance count.")
    ] = "bytes",
    name: Annotated[str, typer.Option(metavar="NAME", help="What the instance is called.")] = "traffic",
    spark: OnSpark,
    style: Format = "human",
) -> None:
    """Print the demand matrix: publisher, topic and subscriber, with messages and bytes per second.

    The broker that delivered is the shard, the one that had accepted the messages the origin.
    Rates are over the time that a broker's records span. With --instance the same becomes a planning problem: clients
    are linked to the brokers where they connected, and --network says what the links between brokers carry and cost.
    """
    with sentences():
        from tieline.instance_document import rendered
        from tieline.pipeline.jobs import instance as planning
        from tieline.pipeline.jobs.traffic import deliveries, demand_matrix, homes, unnamed_share

        links = None if network is None else planning.NetworkFile.read(network)
        if instance is not None:
            check_target(instance)
        with spark.session("tieline traffic", rows=source.check(), work="counting deliveries") as here:
            told = source.read(here).cache()
            passed = deliveries(told)
            matrix = [row.asDict() for row in demand_matrix(passed).collect()]
            known = {} if instance is None else {row["client"]: row["shard"] for row in homes(told).collect()}
            unnamed = unnamed_share(passed)
        show(_TRAFFIC, matrix, style)
        if instance is not None:
            found = planning.instance(
                matrix,
                links or planning.NetworkFile.of(row["shard"] for row in matrix),
                name=name,
                homes=known,
                unit=unit,
            )
            _write(instance, rendered(found))
            shape = f"{len(found.nodes):,} nodes, {len(found.links):,} links, {len(found.topics):,} topics"
            print(f"{instance}: {shape}", file=sys.stderr)
        if unnamed:
            print(
                f"tieline: {unnamed:.1%} of the deliveries have no names, because they do not fit in a period's "
                "table; a larger log.period_keys has room for more.",
                file=sys.stderr,
            )


def _write(file: Path, text: bytes) -> None:
    try:
        file.write_bytes(text)
    except OSError as problem:
        raise Trouble(f"cannot write {file}: {(problem.strerror or str(problem)).lower()}.") from None
