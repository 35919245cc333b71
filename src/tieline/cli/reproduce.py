"""``tieline reproduce``: a paper's experiments on the real broker, its figures, and what holds of what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tieline.bench.bar import Steps
from tieline.bench.measure import raise_open_files
from tieline.bench.papers import figures, report
from tieline.bench.papers.run import run
from tieline.bench.priority.report import line
from tieline.cli.bench import orderly_end, wide_console

app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, help="Repeat the papers' experiments."
)


@app.callback()
def _papers() -> None:
    """Repeat the papers' experiments on the real broker."""


@app.command()
def priority(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions: about a minute.")] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Directory for figures and table.")] = Path("reproduced"),
) -> None:
    """Heat priority (Figures 2 to 5) and priority-QoS (Figures 7 to 9): figures, and a table "paper says / we measure".

    Starts brokers on free loopback ports, uses real sockets, needs no root.  Writes priority.md, priority.json and one
    PNG for each figure.
    """
    console = wide_console()
    raise_open_files()
    out.mkdir(parents=True, exist_ok=True)
    with orderly_end(), Steps(console, line) as display:
        found = run(quick=quick, watcher=display)
    report.show(found, console)
    pictures = figures.draw(found, out)
    found.write(out / "priority.json")
    (out / "priority.md").write_text(report.markdown(found, pictures))
    if not pictures:
        console.print("no figures: they need numbers and matplotlib (pip install 'tieline[bench]')", markup=False)
    console.print(
        f"written to {out}: {', '.join(['priority.md', 'priority.json', *pictures])}", highlight=False, markup=False
    )
