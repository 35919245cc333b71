"""Interests: the topics somebody wants messages of and what the messages must say, one or many of them.

A subscription whose predicate is a union of several boxes is several interests.  Covering is pairwise: one interest
covers another if it alone does.  Whether a *set* of boxes covers a box is a co-NP complete question, and the answer
would only save a few forwarded subscriptions; pairwise covering never loses anything, it may only forward more.

In a set, interests are found by covering: filters in a tree of levels; under each, the boxes of one event type are
found by an index of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from tieline.match.box import Box
from tieline.match.cover.boxes import BoxSet, IndexFactory
from tieline.match.cover.filters import CoverTree, canonical, covers, overlap


@dataclass(frozen=True, slots=True)
class Interest:
    """A topic filter, and either no condition or a box over the attributes of an event type.

    Event and box come together.  A box without a condition is not the same as no box: it wants no message that cannot
    be read as an event of its type.
    """

    filter: str
    event: str | None = None
    box: Box | None = None

    def __post_init__(self) -> None:
        if (self.event is None) != (self.box is None):
            raise ValueError("an interest in content names an event type and a box, another one neither")
        if self.box is not None and self.box.is_empty:
            raise ValueError("a box without a point is no interest")

    @property
    def canonical(self) -> Interest:
        """The one spelling of all interests in the same messages."""
        filter = canonical(self.filter)
        return self if filter == self.filter else Interest(filter, self.event, self.box)

    def covers(self, other: Interest) -> bool:
        """Whether everything the other one wants is wanted by this one."""
        if self.box is not None and (other.box is None or self.event != other.event or not self.box.covers(other.box)):
            return False
        return covers(self.filter, other.filter)

    def overlaps(self, other: Interest) -> bool:
        """Whether some message may be wanted by both.

        Of two event types it is not known whether a message can be read as both, so the filters alone decide.
        """
        if self.box is not None and other.box is not None and self.event == other.event:
            return self.box.meets(other.box) and overlap(self.filter, other.filter)
        return overlap(self.filter, other.filter)


T = TypeVar("T")


class _Group:
    """The interests that have one filter, as keys."""

    __slots__ = ("plain", "shelves")

    def __init__(self) -> None:
        #: The one without a condition.
        self.plain: int | None = None
        #: Those with a box, by event type; no shelf is empty.
        self.shelves: dict[str, BoxSet] = {}

    def __iter__(self) -> Iterator[int]:
        if self.plain is not None:
            yield self.plain
        for shelf in self.shelves.values():
            yield from shelf


class Roots(Generic[T]):
    """Values stored under a key and an interest; no two interests in it want the same."""

    def __init__(self, make_index: IndexFactory | None, *, is_withdrawing: bool) -> None:
        self._make_index = make_index
        #: Whether somebody will ask what an interest covers.
        self._is_withdrawing = is_withdrawing
        self._values: dict[int, T] = {}
        self._groups: CoverTree[_Group] = CoverTree()

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[T]:
        return iter(self._values.values())

    def add(self, key: int, interest: Interest, value: T) -> None:
        self._values[key] = value
        group = self._groups.get(interest.filter)
        if group is None:
            group = _Group()
            self._groups.put(interest.filter, group)
        if interest.event is None or interest.box is None:
            group.plain = key
            return
        shelf = group.shelves.get(interest.event)
        if shelf is None:
            shelf = BoxSet(self._make_index, is_mirrored=self._is_withdrawing)
            group.shelves[interest.event] = shelf
        shelf.add(key, interest.box)

    def remove(self, key: int, interest: Interest) -> None:
        del self._values[key]
        group = self._groups.get(interest.filter)
        assert group is not None, "an interest is removed under the filter it was added with"
        if interest.event is None:
            group.plain = None
        else:
            shelf = group.shelves[interest.event]
            shelf.remove(key)
            if not shelf:
                del group.shelves[interest.event]
        if group.plain is None and not group.shelves:
            self._groups.remove(interest.filter)

    def coverer(self, interest: Interest) -> T | None:
        """One that covers an interest, if there is any."""
        for group in self._groups.coverers(interest.filter):
            if group.plain is not None:
                return self._values[group.plain]
            if interest.event is None or interest.box is None:
                continue
            shelf = group.shelves.get(interest.event)
            keys = shelf.coverers(interest.box) if shelf is not None else []
            if keys:
                # Not just any: the same calls should give the same answer whatever the index.
                return self._values[min(keys)]
        return None

    def covered(self, interest: Interest) -> list[T]:
        """All that an interest covers."""
        keys: list[int] = []
        for group in self._groups.covered(interest.filter):
            if interest.event is None or interest.box is None:
                keys.extend(group)
                continue
            shelf = group.shelves.get(interest.event)
            if shelf is not None:
                keys.extend(shelf.covered(interest.box))
        return [self._values[key] for key in sorted(keys)]
