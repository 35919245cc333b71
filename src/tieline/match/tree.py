"""A tree of topic levels: one node per level, values where a topic or filter ends.

What :mod:`tieline.match.filters` and :mod:`tieline.match.names` have in common: storing, finding and forgetting exactly
what was stored.  They differ in what they match.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Node(Generic[T]):
    """One level of names, with what stands there and the levels below."""

    __slots__ = ("children", "value")

    def __init__(self) -> None:
        #: None instead of an empty dictionary: most nodes are leaves, and there may be a million of them.
        self.children: dict[str, Node[T]] | None = None
        self.value: T | None = None


class LevelTree(Generic[T]):
    """Values stored under strings of levels."""

    __slots__ = ("_root", "_size")

    def __init__(self) -> None:
        self._root: Node[T] = Node()
        #: The number of strings that hold a value.
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def get(self, levels: str) -> T | None:
        """The value stored under exactly this string."""
        node = self._root
        for level in levels.split("/"):
            child = node.children.get(level) if node.children else None
            if child is None:
                return None
            node = child
        return node.value

    def put(self, levels: str, value: T) -> None:
        """Store a value, replacing the one that was there."""
        node = self._root
        for level in levels.split("/"):
            if node.children is None:
                node.children = {}
            child = node.children.get(level)
            if child is None:
                child = node.children[level] = Node()
            node = child
        if node.value is None:
            self._size += 1
        node.value = value

    def remove(self, levels: str) -> T | None:
        """Forget a string, and every node that only it needed; its value."""
        names = levels.split("/")
        path = [self._root]
        for name in names:
            children = path[-1].children
            child = children.get(name) if children else None
            if child is None:
                return None
            path.append(child)
        value = path[-1].value
        if value is None:
            return None
        path[-1].value = None
        self._size -= 1
        for depth in range(len(names), 0, -1):
            node, children = path[depth], path[depth - 1].children
            if node.children or node.value is not None or children is None:
                break
            del children[names[depth - 1]]
            if not children:
                path[depth - 1].children = None
        return value
