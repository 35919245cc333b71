"""A tree of topic filters, found by topic filters: which of them cover one, which are covered by it.

The third of its kind beside :mod:`tieline.match.filters` (found by names) and :mod:`tieline.match.names` (names).  Both
walks follow only levels that can still be part of an answer, so that filters elsewhere in the tree cost nothing.
Filters are stored in their canonical form, where a ``#`` never stands for a level that some name must have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from tieline.match.cover.filters import canonical
from tieline.match.tree import LevelTree, Node

T = TypeVar("T")


class CoverTree(LevelTree[T]):
    """Values stored under topic filters, found by topic filters."""

    __slots__ = ()

    def get(self, levels: str) -> T | None:
        return super().get(canonical(levels))

    def put(self, levels: str, value: T) -> None:
        super().put(canonical(levels), value)

    def remove(self, levels: str) -> T | None:
        return super().remove(canonical(levels))

    def coverers(self, filter: str) -> Iterator[T]:
        """The values of all filters that cover one."""
        nodes = [self._root]
        # [MQTT-4.7.2-1] a filter that starts with a wildcard does not match a topic that starts with $
        is_wild = not filter.startswith("$")
        for level in canonical(filter).split("/"):
            deeper: list[Node[T]] = []
            coverers = (level, "+") if is_wild and level != "+" else (level,)
            for node in nodes:
                children = node.children or {}
                if "#" in children:
                    yield from _value(children["#"])
                if level != "#":
                    deeper.extend(children[name] for name in coverers if name in children)
            nodes = deeper
            is_wild = True
        for node in nodes:
            yield from _value(node)
            if node.children and "#" in node.children:
                yield from _value(node.children["#"])

    def covered(self, filter: str) -> Iterator[T]:
        """The values of all filters that are covered by one."""
        nodes = [self._root]
        for level in canonical(filter).split("/"):
            if level == "#":
                for node in nodes:
                    yield from _values(node)
                return
            nodes = [below for node in nodes for below in self._below(node, level)]
        for node in nodes:
            yield from _value(node)

    def _below(self, node: Node[T], level: str) -> list[Node[T]]:
        """The children of a node that one level covers."""
        children = node.children or {}
        if level != "+":
            return [children[level]] if level in children else []
        if node is self._root:
            return [child for name, child in children.items() if not name.startswith("$")]
        return [child for name, child in children.items() if name != "#"]


def _value(node: Node[T]) -> Iterator[T]:
    if node.value is not None:
        yield node.value


def _values(node: Node[T]) -> Iterator[T]:
    """All values at a node and below it."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield from _value(node)
        if node.children:
            stack.extend(node.children.values())
