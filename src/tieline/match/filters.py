"""A tree of topic filters: which of them match a topic name.

Theory of operation
-------------------
One node per filter level; ``+`` and ``#`` are ordinary children that the walk tries beside the literal one.  A walk
visits the nodes whose path matches a prefix of the topic, so filters that share no prefix with the topic cost
nothing: the work does not grow with the number of filters that do not match.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class _Node(Generic[T]):
    __slots__ = ("children", "value")

    def __init__(self) -> None:
        #: None instead of an empty dictionary: most nodes are leaves, and there may be a million of them.
        self.children: dict[str, _Node[T]] | None = None
        self.value: T | None = None


class FilterTree(Generic[T]):
    """Values stored under topic filters, found by topic names."""

    __slots__ = ("_root", "_size", "visited")

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()
        #: The number of filters that hold a value.
        self._size = 0
        #: Nodes that the last match visited.
        self.visited = 0

    def __len__(self) -> int:
        return self._size

    def get(self, filter_: str) -> T | None:
        """The value stored under exactly this filter."""
        node: _Node[T] | None = self._root
        for level in filter_.split("/"):
            node = node.children.get(level) if node is not None and node.children else None
        return None if node is None else node.value

    def put(self, filter_: str, value: T) -> None:
        """Store a value under a filter, replacing the one that was there."""
        node = self._root
        for level in filter_.split("/"):
            if node.children is None:
                node.children = {}
            child = node.children.get(level)
            if child is None:
                child = node.children[level] = _Node()
            node = child
        if node.value is None:
            self._size += 1
        node.value = value

    def remove(self, filter_: str) -> None:
        """Forget a filter, and every node that only it needed."""
        levels = filter_.split("/")
        path = [self._root]
        for level in levels:
            children = path[-1].children
            child = children.get(level) if children else None
            if child is None:
                return
            path.append(child)
        if path[-1].value is None:
            return
        path[-1].value = None
        self._size -= 1
        for depth in range(len(levels), 0, -1):
            node, children = path[depth], path[depth - 1].children
            if node.children or node.value is not None or children is None:
                break
            del children[levels[depth - 1]]
            if not children:
                path[depth - 1].children = None

    def match(self, topic: str) -> list[T]:
        """The values of all filters that match a topic name."""
        found: list[T] = []
        levels = topic.split("/")
        nodes = [self._root]
        # [MQTT-4.7.2-1] a filter that starts with a wildcard does not match a topic that starts with $
        wild = not topic.startswith("$")
        self.visited = 1
        for level in levels:
            deeper: list[_Node[T]] = []
            for node in nodes:
                children = node.children
                if children is None:
                    continue
                if wild:
                    child = children.get("#")
                    if child is not None and child.value is not None:
                        found.append(child.value)
                    child = children.get("+")
                    if child is not None:
                        deeper.append(child)
                child = children.get(level)
                if child is not None:
                    deeper.append(child)
            if not deeper:
                return found
            nodes = deeper
            self.visited += len(nodes)
            wild = True
        for node in nodes:
            if node.value is not None:
                found.append(node.value)
            # "sport/#" also matches "sport": the multi-level wildcard includes the parent level
            child = node.children.get("#") if node.children else None
            if child is not None and child.value is not None:
                found.append(child.value)
        return found
