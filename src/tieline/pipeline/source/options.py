"""What ``spark.read`` and ``spark.readStream`` with ``format("tieline")`` take and give: options and columns.

The columns are those of the log, and behind them which broker they came from.  There is one definition, in Arrow
(:mod:`tieline.log.columns`); Spark's is derived from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tieline.log import columns as log_columns
from tieline.log.columns import SHARD
from tieline.pipeline.options import Given, OptionError
from tieline.pipeline.source.client import PATIENCE_S, LogClient

LOG_ARROW: Final[pa.Schema] = log_columns.LOG.append(SHARD)
EVENTS_ARROW: Final[pa.Schema] = log_columns.EVENTS.append(SHARD)

LOG: Final[StructType] = from_arrow_schema(LOG_ARROW)
EVENTS: Final[StructType] = from_arrow_schema(EVENTS_ARROW)

ARROW: Final = {"log": LOG_ARROW, "events": EVENTS_ARROW}
SPARK: Final = {"log": LOG, "events": EVENTS}


Where = Literal["earliest", "latest"] | dict[str, int]

NAMES: Final = (
    "url", "stream", "topics", "where", "columns", "user", "password", "passwordFile", "ca", "startingOffsets",
    "endingOffsets", "maxRowsPerTrigger", "partitionRows", "failOnDataLoss", "reader", "patience",
)  # fmt: skip
#: Offsets that one task reads, if not said otherwise: a second's work or so.
_PARTITION_ROWS: Final = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What a reader is asked to do."""

    urls: tuple[str, ...]
    stream: str
    topics: tuple[str, ...]
    where: str | None
    columns: tuple[str, ...]
    user: str | None
    password: str | None
    #: Certificates to trust (PEM); None for those of the system.
    ca: str | None
    starting: Where
    ending: Where
    #: Offsets of one batch, of all brokers together; None for as many as there are.
    max_rows: int | None
    partition_rows: int
    fail_on_data_loss: bool
    #: The named reader that is moved on when Spark has committed.
    reader: str | None
    patience_s: float

    def __repr__(self) -> str:
        """Without the password: plans and errors are printed."""
        return f"SourceOptions({', '.join(self.urls)}, stream={self.stream})"

    def client(self, url: str) -> LogClient:
        """Somebody who asks one of the log servers."""
        return LogClient(url, self.user, self.password, ca=self.ca, patience_s=self.patience_s)


def read_options(options: Mapping[str, str]) -> SourceOptions:
    """Take options apart; raises :class:`OptionError`."""
    given = Given("tieline", NAMES, options)
    stream = given.one_of("stream", "log", "events")
    urls = given.listed("url")
    if not urls:
        raise OptionError('the option url is missing: .option("url", "http://HOST:9884"), several with commas')
    if len(set(urls)) < len(urls):
        raise OptionError("url is refused: it names a log server twice, and every record would be there twice")
    found = SourceOptions(
        urls=urls,
        stream=stream,
        topics=given.listed("topics"),
        where=given.text("where"),
        columns=_columns(given, stream),
        user=given.text("user"),
        password=given.password(),
        ca=given.file("ca"),
        starting=_offsets("startingOffsets", given.text("startingOffsets") or "earliest"),
        ending=_offsets("endingOffsets", given.text("endingOffsets") or "latest"),
        max_rows=given.count("maxRowsPerTrigger", 1) if "maxRowsPerTrigger" in given else None,
        partition_rows=given.count("partitionRows", _PARTITION_ROWS),
        fail_on_data_loss=given.one_of("failOnDataLoss", "true", "false") == "true",
        reader=given.text("reader"),
        patience_s=given.seconds("patience", PATIENCE_S),
    )
    for url in urls:
        found.client(url)
    return found


def _columns(given: Given, stream: str) -> tuple[str, ...]:
    known = tuple(ARROW[stream].names)
    if "columns" not in given:
        return known
    names = given.listed("columns")
    if not names or len(set(names)) < len(names):
        raise OptionError("columns is refused: it takes at least one name, and each of them once")
    for name in names:
        if name not in known:
            raise OptionError(f'columns is refused: {stream} has no column "{name}"; it has {", ".join(known)}')
    return names


def _offsets(name: str, text: str) -> Where:
    if text == "earliest":
        return "earliest"
    if text == "latest":
        return "latest"
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(type(each) is int and each >= 0 for each in found.values()):
        raise OptionError(
            f'{name} = "{text}" is refused: it is earliest, latest, or offsets by broker, as in {{"edge": 48031}}'
        )
    return found
