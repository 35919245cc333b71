"""``tieline reproduce``: the papers' experiments again, every figure beside ours, and what holds of each sentence."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from tieline.bench.measure import raise_open_files
from tieline.bench.papers.frame import page, runner
from tieline.bench.papers.frame.declaration import Effort, Paper, Request
from tieline.bench.papers.registry import GROUPS, PAPERS, extra_of, load
from tieline.bench.suite.runner import Steps
from tieline.cli.bench import orderly_end, wide_console
from tieline.cli.trouble import MISUSED, Trouble
from tieline.extras import is_installed, remedy

app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, help="Repeat the papers' experiments."
)


@app.command()
def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            metavar="PAPER",
            help=f"Which paper: {', '.join(PAPERS)}; priority is the first two, all is all of them.",
        ),
    ],
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer seeds, points and seconds: all papers within ten minutes.")
    ] = False,
    long: Annotated[
        bool,
        typer.Option("--long", help="With the limits of the papers (600 s for one instance) and the largest worlds."),
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="First of the seeds.")] = 0,
    again: Annotated[
        bool, typer.Option("--again", help="Measure nothing: draw, judge and write what is in DIR once more.")
    ] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Directory for pages, figures and data.")] = Path(
        "reproduced"
    ),
) -> None:
    r"""Repeat a paper's experiments: "paper says / we measure / verdict / why".

    Computes each figure and table of a paper again, draws it beside ours and
    says which of its sentences hold, by stated rules.  Starts brokers on free
    loopback ports where sockets are part of an experiment, and simulates the
    rest; needs no root.

    Writes a page and a record for each paper, NAME.md and NAME.json, and into
    the folder NAME a CSV for each table and a PNG and an SVG for each figure.
    All papers take about an hour, with --quick ten minutes.

    Figures need the extra bench, and psp needs plan:
    pip install 'tieline\[bench]' 'tieline\[plan]'.
    """
    if quick and long:
        raise Trouble("--quick and --long are two ways of saying how much is to be done: choose one.", code=MISUSED)
    if again and (quick or long or seed):
        raise Trouble(
            "--again takes what is there: how much was done, and from which seed, is said in it.", code=MISUSED
        )
    effort: Effort = "quick" if quick else "long" if long else "full"
    papers = _loaded(paper)
    if again and (absent := [one.name for one in papers if not (out / f"{one.name}.json").exists()]):
        raise Trouble(f"{out} has no run of {', '.join(absent)}.")
    console = wide_console()
    raise_open_files()
    out.mkdir(parents=True, exist_ok=True)
    written = []
    with orderly_end(), Steps(console) as display:
        request = Request(effort=effort, seed=seed)
        records = runner.again(papers, out, display) if again else runner.run(papers, request, out, display)
        for record in records:
            page.show(record, console)
            written += [f"{record.name}.md", f"{record.name}.json", f"{record.name}/"]
    if not is_installed("matplotlib"):
        console.print(f"no figures: they need matplotlib ({remedy('bench')})", markup=False)
    console.print(f"written to {out}: {', '.join(written)}", highlight=False, markup=False)


def _loaded(name: str) -> list[Paper]:
    if name not in PAPERS and name not in GROUPS:
        known = ", ".join((*PAPERS, *GROUPS))
        near = get_close_matches(name, (*PAPERS, *GROUPS), n=1)
        meant = f' (did you mean "{near[0]}"?)' if near else ""
        raise Trouble(f'there is no paper "{name}"{meant}; there are {known}.', code=MISUSED)
    papers = []
    for one in GROUPS.get(name, (name,)):
        try:
            papers.append(load(one))
        except ImportError as missing:
            raise Trouble(f"{missing.name or missing} is not installed: {remedy(extra_of(one))}") from None
    return papers
