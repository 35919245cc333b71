"""What is read next of several logs: where a batch ends, how it is cut into ranges, what was lost before that.

Nothing here is remembered that a restart would miss: a range between two places always means the same records,
wherever it is asked for.  So Spark's own streams (:mod:`tieline.pipeline.source.stream`) and ingest, which keeps its
place in the lake, share it.

A broker that joins enters with an empty range: its starting place is kept before any of its records is read, or a
restart might find another one.
"""

from __future__ import annotations

from tieline.pipeline.options import SparkOffset
from tieline.pipeline.source.client import Gap
from tieline.pipeline.source.offsets import (
    LogPlace,
    Places,
    Survey,
    check,
    chosen,
    decode,
    encode,
    missing,
    spread,
    survey,
)
from tieline.pipeline.source.options import SourceOptions, Where
from tieline.pipeline.source.ranges import REMEDY, Range, cut, log, warn


class Following:
    """Follows the logs of several brokers from place to place."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        #: Where every log ended when nothing new was to count any more; None while everything counts.
        self._target: dict[str, int] | None = None
        #: Records that were gone before they were read, since this object was made.
        self.lost = 0

    def begin(self) -> SparkOffset:
        """Where somebody begins who has read nothing."""
        return encode(chosen("startingOffsets", self._options.starting, survey(self._options)))

    def stop_at_latest(self) -> None:
        """From now on nothing new counts."""
        self._target = {name: shard.offsets.latest for name, shard in survey(self._options).items()}

    def latest(self) -> SparkOffset:
        """Where the logs end."""
        return encode(chosen("endingOffsets", "latest", survey(self._options)))

    def next_end(self, start: SparkOffset, most_rows: int | None) -> SparkOffset:
        """Where the batch ends that begins at a place."""
        found = survey(self._options)
        kept = self._checked(start, found)
        begins = {name: self._kept_from(name, place, found) for name, place in kept.items()}
        waiting = {name: max(0, self._end(name, found) - begin) for name, begin in begins.items()}
        if most_rows is not None:
            waiting = spread(waiting, most_rows)
        # a place stays where nothing waits, also before a gap: else a batch would run for it alone
        ends: Places = {
            name: LogPlace(begins[name] + waiting[name] if waiting[name] else place.offset, place.created)
            for name, place in kept.items()
        }
        if joined := found.keys() - kept.keys():
            ends |= chosen("startingOffsets", self._starting(), {name: found[name] for name in joined})
        return encode(ends)

    def ranges(self, start: SparkOffset, end: SparkOffset) -> list[Range]:
        """What lies between two places, in pieces that are read in parallel."""
        found = survey(self._options)
        begins, ends = self._checked(start, found), self._checked(end, found)
        parts: list[Range] = []
        for name, place in sorted(ends.items()):
            if name not in begins or begins[name].offset >= place.offset:
                continue
            first = min(self._kept_from(name, begins[name], found), place.offset)
            if lost := first - begins[name].offset:
                self.lost += lost
                warn(name, Gap("", begins[name].offset, first))
                log.warning("%d records were lost since reading was started", self.lost)
            parts += cut(name, found[name].url, first, place.offset, rows=self._options.partition_rows)
        return parts

    def commit(self, end: SparkOffset) -> None:
        """Nobody needs what lies below a place any more: so says the named reader, if there is one."""
        if self._options.reader is None or self._options.stream != "log":
            return
        found = survey(self._options)
        for name, place in self._checked(end, found).items():
            self._options.client(found[name].url).move_reader(self._options.reader, place.offset)

    def _checked(self, kept: SparkOffset, found: Survey) -> Places:
        return check(decode(kept), found, fail_on_data_loss=self._options.fail_on_data_loss)

    def _kept_from(self, name: str, place: LogPlace, found: Survey) -> int:
        """The first offset at or behind a place that is still there."""
        gap = missing(name, place, found[name])
        if gap is not None and self._options.fail_on_data_loss:
            raise Gap(f"{gap}; {REMEDY}", gap.first, gap.last)
        return place.offset if gap is None else gap.last

    def _end(self, name: str, found: Survey) -> int:
        latest = found[name].offsets.latest
        return latest if self._target is None else min(latest, self._target.get(name, 0))

    def _starting(self) -> Where:
        # offsets by name were meant for the brokers of the start; one that joins later is read from its beginning
        return "earliest" if isinstance(self._options.starting, dict) else self._options.starting
