"""Bound subscriptions at work in one process: which rows of a batch each subscription is sent.

Theory of operation
-------------------
The topics of a batch are looked up among the filters, once each.  For every filter that some of them match, their rows
go through the filter's index together; a few boxes are compared one by one instead, because most filters have a single
subscriber.  Boxes that are not a whole condition leave candidates, and those are evaluated, in the order of the rows.

``changed()`` and ``delta()`` compare with what a subscription was sent last of a topic, so rows have to come topic by
topic, in the order of their offsets; the references are :class:`tieline.match.change.LastValues`, as in a broker.  A
broker may forget references when it has too many (``content.change_topics``), which here nothing does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tieline.match.change import ChangeMemory, LastValues, holds
from tieline.match.events import Get
from tieline.match.index import AdaptiveIndex, Boxes
from tieline.match.index.adaptive import has_numba
from tieline.match.trees import FilterTree
from tieline.match.where import Predicate
from tieline.pipeline.jobs.match.bound import BoundSubscriptions, FilterWants

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Boxes that are compared one by one.
FEW: Final = 8
#: Topics whose filters are remembered.
MOST_KNOWN: Final = 100_000
#: No rows at all.
NONE: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Rows:
    """Messages of one event type."""

    #: The topics that occur; what tells them apart from the same topics at other brokers; and each row's among them.
    topics: Sequence[str]
    keys: Sequence[bytes]
    topic_of: Integers
    #: A row of numbers for each.
    points: Floats
    #: How the attributes of a row are read.
    get: Callable[[int], Get]
    #: Which can be read; None if all can.
    is_readable: NDArray[np.bool_] | None = None


class Search:
    """Bound subscriptions, found by messages."""

    def __init__(self, bound: BoundSubscriptions) -> None:
        self._filters: FilterTree[int] = FilterTree()
        for number, wanted in enumerate(bound.wanted):
            self._filters.put(wanted.filter, number)
        self._found = [_Filter(wanted) for wanted in bound.wanted]
        #: By topic: the filters that match it.
        self._known: dict[str, list[int]] = {}

    def match(self, rows: Rows) -> tuple[Integers, Integers]:
        """Pairs of a row and the number of a subscription that is sent it, in no particular order."""
        by_topic = _slices(rows.topic_of, len(rows.topics))
        topics: dict[int, list[int]] = {}
        for code, topic in enumerate(rows.topics):
            for number in self._matching(topic):
                topics.setdefault(number, []).append(code)
        pairs = [
            pair
            for number, codes in topics.items()
            for pair in self._found[number].match(rows, _taken(by_topic, codes))
        ]
        if not pairs:
            return NONE, NONE
        return np.concatenate([taken for taken, _ in pairs]), np.concatenate([numbers for _, numbers in pairs])

    def leave(self, key: bytes | None) -> None:
        """Forget what was sent of all topics but one: no more of them will come."""
        for each in self._found:
            each.leave(key)

    def _matching(self, topic: str) -> list[int]:
        found = self._known.get(topic)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[topic] = self._filters.match(topic)
        return found


class _Filter:
    """The subscriptions with one filter."""

    def __init__(self, wanted: FilterWants) -> None:
        self._wanted = wanted
        self._index = _index(wanted)
        self._is_unsure = np.zeros(len(wanted.members), np.bool_)
        self._is_unsure[list(wanted.unsure)] = True
        self._memory = ChangeMemory(sys.maxsize, sys.maxsize)
        conditions = {int(wanted.members[member]): each for member, each in wanted.unsure.items()} | dict(
            wanted.scanned
        )
        self._conditions = conditions
        self._last = {
            number: LastValues(each.watched, self._memory) for number, each in conditions.items() if each.watched
        }

    def match(self, rows: Rows, taken: Integers) -> Iterable[tuple[Integers, Integers]]:
        """Pairs of those rows, all of whose topics the filter matches."""
        wanted = self._wanted
        if len(wanted.everything):
            yield np.repeat(taken, len(wanted.everything)), np.tile(wanted.everything, len(taken))
        readable = taken if rows.is_readable is None else taken[rows.is_readable[taken]]
        if not len(readable):
            return
        if len(wanted.members):
            met, members = self._meeting(rows.points, readable)
            is_unsure = self._is_unsure[members]
            yield met[~is_unsure], wanted.members[members[~is_unsure]]
            yield self._decided(rows, met[is_unsure], wanted.members[members[is_unsure]])
        for number in wanted.scanned:
            yield self._decided(rows, readable, np.full(len(readable), number))

    def leave(self, key: bytes | None) -> None:
        """Forget all references but those of one topic."""
        for last in self._last.values():
            before = None if key is None else last.before(key)
            last.clear()
            if key is not None and before is not None:
                last.note(key, before)

    def _meeting(self, points: Floats, readable: Integers) -> tuple[Integers, Integers]:
        """Rows and the members with a box around them."""
        mine = points if len(readable) == len(points) else points[readable]
        if self._index is None:
            return _compared(self._wanted, mine, readable)
        offsets, members = self._index.match_batch(mine)  # type: ignore[arg-type]  # rows of an array are sequences
        ends: Integers = np.asarray(offsets, np.int64)
        return np.repeat(readable, ends[1:] - ends[:-1]), np.asarray(members, np.int64)

    def _decided(self, rows: Rows, candidates: Integers, numbers: Integers) -> tuple[Integers, Integers]:
        """Those candidates whose condition holds; what holds is delivered, and becomes the reference."""
        keep = np.zeros(len(candidates), np.bool_)
        pairs = zip(candidates.tolist(), numbers.tolist(), strict=True)
        for place, (row, number) in enumerate(pairs):
            condition: Predicate = self._conditions[number]
            get = rows.get(row)
            last = self._last.get(number)
            key = b"" if last is None else rows.keys[rows.topic_of[row]]
            keep[place] = holds(condition, get, last, key)
            if keep[place] and last is not None:
                last.note(key, last.compared(get))
        return candidates[keep], numbers[keep]


def _index(wanted: FilterWants) -> AdaptiveIndex | None:
    """The boxes of a filter in the kind of index that answers many questions at once; None where they are few."""
    if len(wanted.owners) <= FEW:
        return None
    boxes = Boxes(wanted.owners, wanted.lo, wanted.hi)
    return AdaptiveIndex.from_boxes(boxes, wanted.lo.shape[1], backend="numba" if has_numba() else "numpy")


def _compared(wanted: FilterWants, points: Floats, readable: Integers) -> tuple[Integers, Integers]:
    inside = np.zeros((len(points), len(wanted.members)), np.bool_)
    for owner, lo, hi in zip(wanted.owners, wanted.lo, wanted.hi, strict=True):
        inside[:, owner] |= ((points >= lo) & (points <= hi)).all(axis=1)
    places, members = np.nonzero(inside)
    return readable[places], members.astype(np.int64)


def _slices(topic_of: Integers, topics: int) -> list[Integers]:
    """The rows of each topic, in their order."""
    if topics == 1:
        return [np.arange(len(topic_of), dtype=np.int64)]
    order = np.argsort(topic_of, kind="stable")
    ends = np.cumsum(np.bincount(topic_of, minlength=topics))
    found: list[Integers] = np.split(order, ends[:-1])
    return found


def _taken(by_topic: Sequence[Integers], codes: Sequence[int]) -> Integers:
    """The rows of some topics, in the order of the batch."""
    return by_topic[codes[0]] if len(codes) == 1 else np.sort(np.concatenate([by_topic[code] for code in codes]))
