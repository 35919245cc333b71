"""A tree of topic filters: which of them match a topic name.

Theory of operation
-------------------
One node per filter level; ``+`` and ``#`` are ordinary children that the walk tries beside the literal one.  A walk
visits the nodes whose path matches a prefix of the topic, so filters that share no prefix with the topic cost
nothing: the work does not grow with the number of filters that do not match.
"""

from __future__ import annotations

from typing import TypeVar

from tieline.match.tree import LevelTree, Node

T = TypeVar("T")


class FilterTree(LevelTree[T]):
    """Values stored under topic filters, found by topic names."""

    __slots__ = ("visited",)

    def __init__(self) -> None:
        super().__init__()
        #: Nodes that the last match visited.
        self.visited = 0

    def match(self, topic: str) -> list[T]:
        """The values of all filters that match a topic name."""
        found: list[T] = []
        levels = topic.split("/")
        nodes = [self._root]
        # [MQTT-4.7.2-1] a filter that starts with a wildcard does not match a topic that starts with $
        wild = not topic.startswith("$")
        self.visited = 1
        for level in levels:
            deeper: list[Node[T]] = []
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
