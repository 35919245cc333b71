"""What every way of ingest has in common: which logs it reads, and how a part of them becomes a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from tieline.pipeline.decode.births import PATTERN, Birth
from tieline.pipeline.decode.records import NEEDED
from tieline.pipeline.jobs.ingest_batch import After, Batch, Landed, run_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Offsets in one batch, unless said otherwise.
MAX_ROWS: Final = 1_000_000

#: Told about each batch that landed.
OnLanded = Callable[[Landed], None]


class Logs(NamedTuple):
    """Which logs are read, and how."""

    urls: Sequence[str]
    max_rows: int = MAX_ROWS
    #: More options of ``format("tieline")``: topics, where, user, reader, startingOffsets.
    options: Mapping[str, str] = {}

    def source(self) -> dict[str, str]:
        """All options of ``format("tieline")``."""
        ours = {"url": ",".join(self.urls), "maxRowsPerTrigger": str(self.max_rows), "columns": ",".join(NEEDED)}
        return {**ours, **self.options}


class Filling(Protocol):
    """Fills a lake from logs, in the background."""

    def start(self, *, once: bool = False, every_s: float | None = None) -> None:
        """Begin; with ``once`` it ends when it has what there is now.

        ``every_s`` is the least time between the beginnings of two batches.
        """

    def wait(self, seconds: int) -> bool:
        """Whether it has ended, or does so within this time; raises what ended it."""

    def stop(self) -> None:
        """End between two batches: the one in the making lands, the next does not begin."""

    def behind(self) -> int | None:
        """How many offsets the logs are ahead; None while that is not known."""


def batch_of(frame: DataFrame, after: After) -> Batch:
    """Records of logs as a batch."""

    def births() -> list[Birth]:
        rows = frame.where(frame["topic"].rlike(PATTERN)).select(*Birth._fields).collect()
        return [Birth(row["shard"], row["offset"], row["topic"], bytes(row["payload"])) for row in rows]

    return Batch(lambda work: run_frame(frame, work), births, after)


def ahead(latest: Mapping[str, int], end: Mapping[str, int]) -> int:
    """How many offsets lie between where logs end and where reading has come to."""
    return sum(max(0, offset - end.get(name, 0)) for name, offset in latest.items())
