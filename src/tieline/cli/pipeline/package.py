"""``tieline pipeline package``: an archive with what executors import, for clusters where it is not installed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tieline.cli.pipeline.running import sentences
from tieline.cli.pipeline.sources import check_target
from tieline.cli.verbs import new_app

app = new_app()


@app.command()
def package(
    *,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The archive; a .tar.gz, by which Spark knows what it is.")
    ] = Path("tieline-executors.tar.gz"),
) -> None:
    """Pack the libraries of this environment that Spark's tasks import, and say how a cluster uses them.

    Machines of the cluster then need Spark and a Python of the same minor version, of the same system and processor.
    """
    with sentences():
        from tieline.pipeline.package import pack, settings

        check_target(out)
        print("packing …", file=sys.stderr, flush=True)
        packed = pack(out)
        print(f"{out}: {packed.files:,} files, {packed.size / 1e6:,.0f} MB: {', '.join(packed.libraries)}")
        print("give every job on the cluster:")
        for name, value in settings(out.absolute()).items():
            print(f"  --conf {name}={value}")
        minor = f"{sys.version_info.major}.{sys.version_info.minor}"
        print(f"  --conf spark.pyspark.python=python{minor}   # where Python {minor} is on the machines of the cluster")
