"""``tieline reproduce``: a paper's experiments, its figures and tables, and what holds of what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tieline.bench.measure import raise_open_files
from tieline.bench.papers import figures, reproduction
from tieline.bench.papers.priority import run
from tieline.bench.suite.runner import Steps
from tieline.cli.bench import orderly_end, wide_console
from tieline.cli.trouble import Trouble
from tieline.extras import remedy

app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, help="Repeat the papers' experiments."
)


@app.callback()
def _papers() -> None:
    """Repeat the papers' experiments."""


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
    with orderly_end(), Steps(console) as display:
        found = run(quick=quick, watcher=display)
    reproduction.show(found, console)
    pictures = figures.draw_priority(found, out)
    found.write(out / "priority.json")
    (out / "priority.md").write_text(reproduction.markdown(found, pictures))
    if not pictures:
        console.print("no figures: they need numbers and matplotlib (pip install 'tieline[bench]')", markup=False)
    console.print(
        f"written to {out}: {', '.join(['priority.md', 'priority.json', *pictures])}", highlight=False, markup=False
    )


@app.command()
def psp(
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="One seed, shorter limits: about a minute and a half.")
    ] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Directory for pictures and tables.")] = Path("reproduced"),
) -> None:
    r"""The planner's paper: its two tables beside ours, on instances of its dimensions, and the verdict on its bound.

    The naive model, the paper's heuristics and ours solve the same instances in one run.  Writes psp.md, psp.json and
    pictures.  Needs the extra: pip install 'tieline\[plan]'.
    """
    console = wide_console()
    try:
        from tieline.bench.papers import psp as experiment
        from tieline.bench.papers.psp_record import NOTE
    except ImportError as missing:
        raise Trouble(f"{missing.name or missing} is not installed: {remedy('plan')}") from None
    out.mkdir(parents=True, exist_ok=True)
    with orderly_end(), Steps(console) as display:
        found = experiment.run(quick=quick, watcher=display)
    reproduction.show(found, console, NOTE)
    pictures = figures.draw_psp(found, out)
    found.write(out / "psp.json")
    (out / "psp.md").write_text(reproduction.markdown(found, pictures, NOTE))
    console.print(f"written to {out}: {', '.join(['psp.md', 'psp.json', *pictures])}", highlight=False, markup=False)
