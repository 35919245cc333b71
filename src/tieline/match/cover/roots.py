"""A set of interests, found by covering.

Filters are found in a tree of levels; under each, the boxes of one event type are found by an index of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from tieline.match.cover.interest import Interest
from tieline.match.cover.shelf import IndexFactory, Shelf
from tieline.match.cover.tree import CoverTree

T = TypeVar("T")


class _Group:
    """The interests that have one filter, as keys."""

    __slots__ = ("plain", "shelves")

    def __init__(self) -> None:
        #: The one without a condition.
        self.plain: int | None = None
        #: Those with a box, by event type; no shelf is empty.
        self.shelves: dict[str, Shelf] = {}

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
            shelf = Shelf(self._make_index, is_mirrored=self._is_withdrawing)
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
