"""Sparkplug's birth certificates along the log: each message is read with what had been said before it.

A birth may lie in an earlier batch, or in a part of this batch that another task reads.  Hence all births of a batch
are collected first, and every task gets them together with those that were known before the batch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tieline.conf.schema import Settings
from tieline.match.events import Events
from tieline.match.events.sparkplug import MOST_DEVICES

#: What topics of birth certificates look like, and the filters by which a log server finds them.
PATTERN: Final = r"^spBv1\.0/[^/]*/[ND]BIRTH/[^/]*(/[^/]*)?$"
TOPICS: Final = tuple(f"spBv1.0/+/{kind}/{rest}" for kind in ("NBIRTH", "DBIRTH") for rest in ("+", "+/+"))


class Birth(NamedTuple):
    """One birth certificate, and where it stands."""

    shard: str
    offset: int
    topic: str
    payload: bytes


class Timeline:
    """The births of all shards in the order of their logs."""

    def __init__(self, births: Iterable[Birth]) -> None:
        self._births: dict[str, list[Birth]] = {}
        for each in sorted(births, key=lambda birth: (birth.shard, birth.offset)):
            self._births.setdefault(each.shard, []).append(each)
        self._offsets = {shard: [each.offset for each in found] for shard, found in self._births.items()}

    def before(self, shard: str, offset: int, known: int = 0) -> Sequence[Birth]:
        """The births of a shard below an offset, oldest first, without the first ``known`` of them."""
        end = bisect_left(self._offsets.get(shard, []), offset)
        return self._births[shard][known:end] if end > known else ()


class Follower:
    """Event types that know the births before each record, as long as records come in the order of the log."""

    def __init__(self, settings: Settings, timeline: Timeline) -> None:
        self._settings = settings
        self._timeline = timeline
        self.events = Events(settings)
        self._shard = ""
        self._learned = 0
        self._offset = -1

    def reach(self, shard: str, offset: int) -> None:
        """Know what was said before this record, and nothing that was said after it."""
        if shard != self._shard or offset < self._offset:
            self.events = Events(self._settings)
            self._shard, self._learned = shard, 0
        for each in self._timeline.before(shard, offset, self._learned):
            self.events.learn(each.topic, each.payload)
            self._learned += 1
        self._offset = offset


def latest(births: Iterable[Birth]) -> list[Birth]:
    """Of each topic the last birth, and of each shard as many as a broker remembers."""
    by_topic: dict[tuple[str, str], Birth] = {}
    for each in sorted(births, key=lambda birth: (birth.shard, birth.offset)):
        by_topic.pop((each.shard, each.topic), None)
        by_topic[each.shard, each.topic] = each
    per_shard: dict[str, list[Birth]] = {}
    for each in by_topic.values():
        per_shard.setdefault(each.shard, []).append(each)
    return [each for found in per_shard.values() for each in found[-MOST_DEVICES:]]
