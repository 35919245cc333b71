"""``tieline store``: look after the files of a data directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tieline.cli.trouble import Trouble
from tieline.cli.verbs import new_app
from tieline.cli.waiting import waiting

if TYPE_CHECKING:
    from tieline.net.store.care import Findings

app = new_app("Check, repair or copy what a broker keeps in its data directory.")

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The data directory of the broker.")]


@app.command()
def check(data: Directory) -> None:
    """Read everything and say whether it is whole; the broker may be running."""
    from tieline.net.store import care
    from tieline.net.store.schema import Unusable

    try:
        with waiting(f"reading {data}"):
            found = care.check(data)
    except Unusable as problem:
        raise Trouble(str(problem)) from None
    _print(found)
    if found.problems:
        raise Trouble(f"the store is damaged: `tieline store repair {data}` saves what can be read")
    print("whole")


@app.command()
def repair(data: Directory) -> None:
    """Make a new file of everything that can be read in a damaged one; the broker must not be running."""
    from tieline.net.store import care
    from tieline.net.store.schema import Unusable

    try:
        with waiting(f"saving what can be read in {data}"):
            found = care.repair(data)
    except Unusable as problem:
        raise Trouble(str(problem)) from None
    _print(found)
    print(f"the old file is {found.aside}")


@app.command()
def backup(
    data: Directory, target: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes.")]
) -> None:
    """Copy the store as it is now; the broker may be running.

    To go back, stop the broker and put the copy in place of tieline.db, without its -wal and -shm files.
    """
    from tieline.net.store import care
    from tieline.net.store.schema import Unusable

    try:
        with waiting(f"copying {data} to {target}"):
            care.backup(data, target)
    except Unusable as problem:
        raise Trouble(str(problem)) from None
    print(f"{target}: {target.stat().st_size} bytes")


def _print(found: Findings) -> None:
    for table, rows in found.rows.items():
        print(f"{table:<14}{rows:>10}")
    for problem in found.problems:
        print(f"! {problem}")
