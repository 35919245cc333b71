"""``tieline pipeline``: a list of jobs, each loaded when it is called, because Spark is slow to import."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import typer

from tieline.cli.raw import Raw

#: Job, module of this package with a Typer ``app``, help.
JOBS = (
    ("ingest", "ingest", "Bring brokers' logs into tables, continuously or once."),
    ("compact", "compact", "Merge small files, sort them anew, remove what is too old."),
    ("status", "status", "Say what the tables hold and how far ingest has come."),
    ("quality", "quality", "Judge voltage and frequency by EN 50160, and write the report."),
    ("heat", "heat", "Find the hot topics, and tell the broker."),
    ("latency", "latency", "Hold waiting times against what IEC 61850 and IEEE 1646 allow."),
    ("traffic", "traffic", "Measure who sends what to whom, and write an instance for the planner."),
    ("match", "match", "Say what subscriptions would have delivered from the tables."),
    ("simulate-load", "simulate_load", "Publish what the tables hold to a broker, at a chosen speed."),
)

app = typer.Typer(
    help="Messages as tables, on Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _loader(job: str, module: str) -> Callable[[typer.Context], None]:
    def run(ctx: typer.Context) -> None:
        import_module(f"tieline.cli.pipeline.{module}").app(args=ctx.args, prog_name=f"tieline pipeline {job}")

    return run


for _job, _module, _help in JOBS:
    app.command(_job, cls=Raw, help=_help, add_help_option=False, options_metavar="[OPTIONS]")(_loader(_job, _module))
