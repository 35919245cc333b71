"""A tree of topic names: which of them match a topic filter.

The mirror of :mod:`tieline.match.filters`.  Retained messages are looked up in it when somebody subscribes, and
remembered routes are found in it when a subscription changes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from tieline.match.tree import LevelTree, Node

T = TypeVar("T")

#: What one level of a topic costs in a tree, about: a node, a dictionary and its share of the key.
LEVEL_BYTES = 320
#: Nodes that a walk visits between two pauses.
PAUSE = 256


def tree_bytes(topic: str) -> int:
    """What a topic costs in a tree at most, about; limits count this, not only the characters."""
    return (topic.count("/") + 1) * LEVEL_BYTES + 2 * len(topic)


class NameTree(LevelTree[T]):
    """Values stored under topic names, found by topic filters."""

    __slots__ = ()

    def clear(self) -> None:
        self._root = Node()
        self._size = 0

    def match(self, filter_: str) -> Iterator[T | None]:
        """The values of all names that a filter matches, and None now and then.

        Lazy, and safe while the tree changes: each node's children are copied when the walk reaches it, and a value
        is read when it is yielded.  A caller may therefore spread one walk over a long time; None after every ``PAUSE``
        nodes lets it stop a search that finds nothing.
        """
        levels = filter_.split("/")
        last = len(levels)
        visited = 0
        stack: list[tuple[Iterator[Node[T]], int]] = [(iter((self._root,)), 0)]
        while stack:
            nodes, depth = stack[-1]
            node = next(nodes, None)
            if node is None:
                stack.pop()
                continue
            visited += 1
            if visited % PAUSE == 0:
                yield None
            level = "" if depth == last else levels[depth]
            if node.value is not None and (depth == last or level == "#"):
                yield node.value
            children = node.children
            if depth == last or not children:
                continue
            if level in ("#", "+"):
                stack.append((iter(self._below(node)), depth + (level == "+")))
            else:
                child = children.get(level)
                if child is not None:
                    stack.append((iter((child,)), depth + 1))

    def _below(self, node: Node[T]) -> list[Node[T]]:
        """The children that a wildcard sees: [MQTT-4.7.2-1] a leading one does not see names that start with $."""
        children = node.children or {}
        if node is self._root:
            return [child for name, child in children.items() if not name.startswith("$")]
        return list(children.values())
