"""``tieline pipeline register``: tables of a lake in Spark's catalogue, for people who ask in SQL."""

from __future__ import annotations

from typing import Annotated

import typer

from tieline.cli.pipeline.flags import LakePath, OnSpark, open_lake
from tieline.cli.pipeline.running import sentences
from tieline.cli.trouble import MISUSED, Trouble
from tieline.cli.verbs import new_app, with_blocks

app = new_app()


@app.command()
@with_blocks
def register(
    *,
    lake: LakePath,
    database: Annotated[str, typer.Option(metavar="NAME", help="Where the tables are entered.")] = "tieline",
    spark: OnSpark,
) -> None:
    """Enter the tables of a lake into Spark's catalogue, or renew them after event types have changed.

    They show what lands without being told again; a session that has looked before needs REFRESH TABLE. The catalogue
    has to be one that is kept, such as a Hive metastore.
    """
    with sentences():
        from tieline.pipeline.lake.catalogue import is_kept
        from tieline.pipeline.lake.catalogue import register as enter

        opened = open_lake(lake)
        with spark.session("tieline register") as here:
            if not is_kept(here):
                raise Trouble(
                    "this Spark keeps its catalogue in memory, where tables end with the session: give it one that "
                    "stays, such as --conf spark.sql.catalogImplementation=hive.",
                    code=MISUSED,
                )
            for name in enter(here, opened, database):
                print(f"{name}: {here.table(name).count():,} rows")
