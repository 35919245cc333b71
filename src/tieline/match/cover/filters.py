"""Topic filters compared as sets of topic names: which covers which, which overlap, and a tree that finds them.

Theory of operation
-------------------
Filters are well-formed and bare, without ``$share/name/``.  Two of MQTT's rules make different filters match the same
names.  A ``#`` stands for no level too, so ``+/#`` is ``#``; and no name is empty, so the parent that ``/#`` would
include does not exist, and ``/+/#`` is ``/#``.  :func:`canonical` spells both as the longer one.  After that, a filter
that ends in ``#`` wants exactly the names with at least as many levels as stand before the ``#``, and every question is
answered level by level: a ``+`` covers every level, a literal only itself, because there are always more names than the
literals that somebody wrote down.  Two filters match the same names exactly if their canonical forms are equal.

The tree is the third of its kind beside the two of :mod:`tieline.match.trees`: filters found by filters.  Both walks
follow only levels that can still be part of an answer, so that filters elsewhere in the tree cost nothing.  Filters are
stored in their canonical form, where a ``#`` never stands for a level that some name must have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from tieline.match.trees import LevelTree, TreeNode

#: Filters whose shortest name is longer than the levels in front of their ``#``, and what says so.
_LONGER: Final = {"#": "+/#", "/#": "/+/#"}


def canonical(filter: str) -> str:
    """The one spelling of all filters that match the same names."""
    return _LONGER.get(filter, filter)


def covers(one: str, other: str) -> bool:
    """Whether the first filter matches every name that the second one matches."""
    if _is_hidden(one, other):
        return False
    wide, is_wide_open = _levels(one)
    narrow, is_narrow_open = _levels(other)
    if len(wide) != len(narrow) and not (is_wide_open and len(wide) < len(narrow)):
        return False
    if is_narrow_open and not is_wide_open:
        return False
    return all(level in ("+", below) for level, below in zip(wide, narrow, strict=False))


def overlap(one: str, other: str) -> bool:
    """Whether some name is matched by both filters."""
    if _is_hidden(one, other) or _is_hidden(other, one):
        return False
    first, is_first_open = _levels(one)
    second, is_second_open = _levels(other)
    if not (
        len(first) == len(second)
        or (is_first_open and len(first) < len(second))
        or (is_second_open and len(second) < len(first))
    ):
        return False
    return all(a == b or "+" in (a, b) for a, b in zip(first, second, strict=False))


def _is_hidden(wild: str, filter: str) -> bool:
    """Whether the names of a filter all begin with $, which a leading wildcard does not see [MQTT-4.7.2-1]."""
    return filter[:1] == "$" and wild[:1] in ("+", "#")


def _levels(filter: str) -> tuple[list[str], bool]:
    """The levels in front of a ``#``, and whether there is one; names have at least that many levels."""
    levels = canonical(filter).split("/")
    if levels[-1] == "#":
        levels.pop()
        return levels, True
    return levels, False


T = TypeVar("T")


class CoverTree(LevelTree[T]):
    """Values stored under topic filters, found by topic filters."""

    __slots__ = ("visited",)

    def __init__(self) -> None:
        super().__init__()
        #: Nodes that all questions for what covers something have visited.
        self.visited = 0

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
            deeper: list[TreeNode[T]] = []
            self.visited += len(nodes)
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

    def _below(self, node: TreeNode[T], level: str) -> list[TreeNode[T]]:
        """The children of a node that one level covers."""
        children = node.children or {}
        if level != "+":
            return [children[level]] if level in children else []
        if node is self._root:
            return [child for name, child in children.items() if not name.startswith("$")]
        return [child for name, child in children.items() if name != "#"]


class OverlapTree(LevelTree[bool]):
    """Filters that can be asked whether some name that another filter matches is matched by one of them.

    For filters and names that do not begin with $.
    """

    __slots__ = ()

    @classmethod
    def of(cls, filters: Iterable[str]) -> OverlapTree:
        """A tree of some filters."""
        tree = cls()
        for filter_ in filters:
            tree.put(canonical(filter_), True)
        return tree

    def meets(self, filter: str) -> bool:
        """Whether one of the filters overlaps this one."""
        nodes = [self._root] if len(self) else []
        for level in canonical(filter).split("/"):
            if level == "#":
                # every node has a filter at it or below it
                return bool(nodes)
            deeper: list[TreeNode[bool]] = []
            for node in nodes:
                children = node.children or {}
                if "#" in children:
                    return True
                if level == "+":
                    deeper.extend(children.values())
                else:
                    deeper.extend(children[name] for name in (level, "+") if name in children)
            nodes = deeper
        return any(node.value is not None or "#" in (node.children or {}) for node in nodes)


def _value(node: TreeNode[T]) -> Iterator[T]:
    if node.value is not None:
        yield node.value


def _values(node: TreeNode[T]) -> Iterator[T]:
    """All values at a node and below it."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield from _value(node)
        if node.children:
            stack.extend(node.children.values())
