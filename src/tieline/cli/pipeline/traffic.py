"""``tieline pipeline traffic``: measure who sends what to whom, and write an instance for the planner."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from tieline.cli.pipeline.flags import Master, Since, Until, Verbose, sentences, session
from tieline.cli.pipeline.sources import EventFiles, PasswordFile, Urls, User, records
from tieline.cli.pipeline.tables import Format, show
from tieline.cli.trouble import Trouble

_COLUMNS: Final = (
    "shard", "publisher", "topic", "subscriber", "class", "messages", "bytes", "messages_per_s", "bytes_per_s",
)  # fmt: skip

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def traffic(
    *,
    url: Urls = None,
    events: EventFiles = None,
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
    since: Since = None,
    until: Until = None,
    user: User = None,
    password_file: PasswordFile = None,
    master: Master = None,
    style: Format = "human",
    verbose: Verbose = False,
) -> None:
    """Print the demand matrix: publisher, topic and subscriber, with messages and bytes per second.

    Rates are over the time that a broker's records span. With --instance the same becomes a planning problem: clients
    are linked to the brokers where they connected, and --network says what the links between brokers carry and cost.
    """
    with sentences():
        from tieline.pipeline.jobs import instance as planning
        from tieline.pipeline.jobs.traffic import deliveries, demand_matrix, homes, unnamed_share

        links = None if network is None else planning.Network.read(network)
        with session(master, "tieline traffic", verbose=verbose) as spark:
            told = records(
                spark, "events", url, events, user=user, password_file=password_file, since=since, until=until
            ).cache()
            passed = deliveries(told)
            matrix = [row.asDict() for row in demand_matrix(passed).collect()]
            show(_COLUMNS, matrix, style)
            if instance is not None:
                known = {row["client"]: row["shard"] for row in homes(told).collect()}
                found = planning.instance(
                    matrix,
                    links or planning.Network.of(row["shard"] for row in matrix),
                    name=name,
                    homes=known,
                    unit=unit,
                )
                _write(instance, planning.written(found))
                shape = f"{len(found.nodes):,} nodes, {len(found.links):,} links, {len(found.topics):,} topics"
                print(f"{instance}: {shape}", file=sys.stderr)
            unnamed = unnamed_share(passed)
            if unnamed:
                print(
                    f"tieline: {unnamed:.1%} of the deliveries have no names, because they do not fit in a period's "
                    "table; a larger log.period_keys has room for more.",
                    file=sys.stderr,
                )


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text)
    except OSError as problem:
        raise Trouble(f"cannot write {file}: {(problem.strerror or str(problem)).lower()}.") from None
