"""``tieline pipeline heat``: find the hot topics and the hot content, and tell the broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final  # Any: values of JSON

import typer

from tieline.cli.heat import give, give_over_http, said
from tieline.cli.management import Management, password_in
from tieline.cli.pipeline.flags import Login, OnSpark, TimeSpan, open_lake, whole_seconds
from tieline.cli.pipeline.output import Format, Style, show
from tieline.cli.pipeline.running import sentences, stopping
from tieline.cli.pipeline.sources import EventRecords, rows_in
from tieline.cli.trouble import MISUSED, Trouble
from tieline.cli.verbs import new_app, with_blocks
from tieline.conf.paths import management_socket

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from tieline.pipeline.jobs.topic_heat import Weights, Windows

#: A broker keeps so many entries; what is colder than all of these has the broker's own heat.
_MOST: Final = 100_000
_COLUMNS: Final = ("topic", "heat", "subscribers", "brokers", "deliveries", "publishes")
_CELLS: Final = ("start", "end", "events", "share", "condition")
_LOOK_S: Final = 1

Give = Callable[[dict[str, float]], dict[str, Any]]

app = new_app()


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOptions:
    """Which stretches of time are looked at."""

    window: Annotated[str, typer.Option(metavar="TIME", help="How long a window is.")] = "5m"
    slide: Annotated[str, typer.Option(metavar="TIME", help="From one window's begin to the next.")] = "1m"
    late: Annotated[str, typer.Option(metavar="TIME", help="With --every: how long to wait for late records.")] = "10s"

    def windows(self) -> Windows:
        """What the job takes."""
        from tieline.pipeline.jobs.topic_heat import Windows

        return Windows(
            length_s=whole_seconds("--window", self.window),
            slide_s=whole_seconds("--slide", self.slide),
            late_s=whole_seconds("--late", self.late),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """Whether the broker is told, how often, and for how long it is to believe it."""

    put: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE", help="Tell the broker: its --data directory, its socket, or its http:// address."
        ),
    ] = None
    period: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long the broker keeps it; else 60s, or twice --every.")
    ] = None
    every: Annotated[
        str | None, typer.Option(metavar="TIME", help="Go on, with a new table that often, until SIGINT or SIGTERM.")
    ] = None

    @property
    def every_s(self) -> int | None:
        """Seconds from one table to the next; None for a single one."""
        return None if self.every is None else whole_seconds("--every", self.every)

    def giver(self, login: Login) -> Give | None:
        """What gives a table to the broker; None if nobody is told."""
        if self.put is None:
            return None
        period = self.period or ("60s" if self.every_s is None else f"{2 * self.every_s}s")
        return _giver(self.put, period, login.user, password_in(login.password_file))


@app.command()
@with_blocks
def heat(  # one for each option
    *,
    source: EventRecords,
    lake: Annotated[
        str | None, typer.Option("--lake", metavar="DIR", help="Count what is published, too: the tables' directory.")
    ] = None,
    content: Annotated[
        str | None, typer.Option(metavar="TYPE", help="Show the hot cells of an event type of the lake instead.")
    ] = None,
    stretches: WindowOptions,
    most: Annotated[int, typer.Option(metavar="COUNT", min=1, max=_MOST, help="So many of the hottest.")] = 20,
    telling: Telling,
    weights: Annotated[
        tuple[float, float, float],
        typer.Option(metavar="S D P", help="Weight of a subscriber, of a delivery and of a publish per second."),
    ] = (1.0, 1.0, 1.0),
    spark: OnSpark,
    style: Format = "human",
) -> None:
    """Say which topics are hot in the last window, from what brokers told about their deliveries.

    With --put the broker orders the topics of a class by it, as after `tieline heat put`, for --period.
    """
    if telling.every is not None and telling.put is None:
        raise Trouble("--every goes with --put: without it nobody is told.", code=MISUSED)
    if telling.every is not None and spark.is_connect:
        raise Trouble(
            "--every does not go with Spark Connect, where the batches of a stream end in the server: give another "
            "master, or run --put now and then.",
            code=MISUSED,
        )
    if content is not None and (lake is None or telling.put is not None):
        raise Trouble("--content reads the tables of --lake, and brokers take no heat of content.", code=MISUSED)
    every_s = telling.every_s
    with sentences():
        from tieline.pipeline.jobs.topic_heat import Weights

        windows = stretches.windows()
        weighed = Weights(subscribers=weights[0], deliveries=weights[1], publishes=weights[2])
        to_broker = telling.giver(source.login)
        rows = 0
        if lake is not None:
            opened = open_lake(lake)
            rows = rows_in(opened)
            if content is not None:
                opened.known(content)
        if content is None:
            rows += source.check()
        if every_s is not None and to_broker is not None:
            # a stream goes on, and pays for a JVM that compiles well; it says something as often as it has something
            with spark.session("tieline heat") as here:
                now = _hottest(source.read(here), _published(here, lake, source.span), windows, weighed, most)
                _tell(now, to_broker, style)
                _follow(here, source.options(), windows, weighed, most, to_broker, every_s)
            return
        with spark.session("tieline heat", rows=rows, work="looking for what is hot") as here:
            cells: list[dict[str, Any]] | None = None
            found: list[Row] = []
            if lake is not None and content is not None:
                cells = _cells(here, lake, content, windows, most, source.span)
            else:
                found = _hottest(source.read(here), _published(here, lake, source.span), windows, weighed, most)
        if cells is not None:
            show(_CELLS, cells, style)
        else:
            _tell(found, to_broker, style)


def _hottest(
    events: DataFrame, published: DataFrame | None, windows: Windows, weights: Weights, most: int
) -> list[Row]:
    """The hottest topics of the last window."""
    from tieline.pipeline.jobs.topic_heat import from_deliveries, hottest, recent, topic_heat
    from tieline.pipeline.jobs.traffic import deliveries

    activity = from_deliveries(deliveries(events))
    if published is not None:
        activity = activity.unionByName(published)
    # both steps look twice: at the last moment, and at what belongs to it
    found = topic_heat(recent(activity.cache(), windows), windows, weights).cache()
    return hottest(found, most, behind_s=windows.length_s - windows.slide_s)


def _tell(rows: list[Row], to_broker: Give | None, style: Style) -> None:
    """Print what is hot, and tell the broker if there is one to be told."""
    from tieline.pipeline.jobs.topic_heat import heat_by_topic

    show(_COLUMNS, [row.asDict() for row in rows], style)
    if to_broker is not None:
        if not rows:
            raise Trouble("no topic was hot, and a broker takes no empty table.")
        print(said(to_broker(heat_by_topic(rows))))


def _follow(
    spark: SparkSession,
    source: dict[str, str],
    windows: Windows,
    weights: Weights,
    most: int,
    to_broker: Give,
    every_s: int,
) -> None:
    """One more table whenever a window is complete; a broker that is away for a while misses some."""
    from tieline.pipeline.jobs.topic_heat import from_deliveries, heat_by_topic, hottest, topic_heat
    from tieline.pipeline.jobs.traffic import deliveries

    def tell(batch: DataFrame, _number: int) -> None:
        rows = hottest(batch.cache(), most)
        batch.unpersist()
        if rows:
            try:
                print(said(to_broker(heat_by_topic(rows))), flush=True)
            except Trouble as trouble:
                print(f"tieline: {trouble}", flush=True)

    events = spark.readStream.format("tieline").options(**source, startingOffsets="latest").load()
    found = topic_heat(from_deliveries(deliveries(events)), windows, weights)
    writing = found.writeStream.outputMode("append").foreachBatch(tell)
    with stopping() as asked:
        query = writing.trigger(processingTime=f"{every_s} seconds").start()
        try:
            while not asked.is_set() and not query.awaitTermination(_LOOK_S):
                pass
        finally:
            query.stop()


def _published(spark: SparkSession, lake: str | None, span: TimeSpan) -> DataFrame | None:
    """What was published, by the tables; by when it arrived, as deliveries are."""
    from functools import reduce

    from pyspark.sql import DataFrame

    from tieline.pipeline.jobs.topic_heat import from_messages
    from tieline.pipeline.lake import OTHER

    if lake is None:
        return None
    opened = open_lake(lake)
    tables = [opened.read(spark, name) for name in (*opened.document.types, OTHER)]
    rows = [span.of(each.select("_topic", "_received"), "_received") for each in tables]
    return from_messages(reduce(DataFrame.unionByName, rows), topic="_topic", time="_received")


def _cells(
    spark: SparkSession, lake: str, name: str, windows: Windows, most: int, span: TimeSpan
) -> list[dict[str, Any]]:
    """The hot cells of an event type, each with the condition that it stands for."""
    from pyspark.sql import functions as sql

    from tieline.match.events import Events
    from tieline.pipeline.jobs.content_heat import cell_heat, described

    opened = open_lake(lake)
    rows = opened.read(spark, name, span.since, span.until)
    event = Events(opened.document.settings()).types[name]
    found = cell_heat(rows, event, windows).orderBy(sql.desc("events"), "start", "cell").limit(most).collect()
    return [{**row.asDict(), "condition": described(row["cell"], event) or "anything"} for row in found]


def _giver(where: str, period: str, user: str | None, password: str | None) -> Give:
    if where.startswith(("http://", "https://")):
        return lambda table: give_over_http(where, table, period, user=user, password=password)
    path = Path(where)
    socket = management_socket(where, "") if path.is_dir() else path

    def over_socket(table: dict[str, float]) -> dict[str, Any]:
        with Management(socket) as broker:
            return give(broker, table, period)

    return over_socket
