"""Trees of topic levels: of filters, which of them match a name; and of names, which of them match a filter.

Theory of operation
-------------------
One node per level, values where a topic or filter ends.  Storing, finding and forgetting exactly what was stored is the
same for both; they differ in what they match.

In a tree of filters ``+`` and ``#`` are ordinary children that the walk tries beside the literal one.  A walk visits
the nodes whose path matches a prefix of the topic, so filters that share no prefix with the topic cost nothing: the
work does not grow with the number of filters that do not match.

A tree of names is its mirror.  Retained messages are looked up in it when somebody subscribes, and remembered routes
are found in it when a subscription changes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class TreeNode(Generic[T]):
    """One level of names, with what stands there and the levels below."""

    __slots__ = ("children", "value")

    def __init__(self) -> None:
        #: None instead of an empty dictionary: most nodes are leaves, and there may be a million of them.
        self.children: dict[str, TreeNode[T]] | None = None
        self.value: T | None = None


class LevelTree(Generic[T]):
    """Values stored under strings of levels."""

    __slots__ = ("_root", "_size")

    def __init__(self) -> None:
        self._root: TreeNode[T] = TreeNode()
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
                child = node.children[level] = TreeNode()
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
            deeper: list[TreeNode[T]] = []
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
        self._root = TreeNode()
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
        stack: list[tuple[Iterator[TreeNode[T]], int]] = [(iter((self._root,)), 0)]
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

    def _below(self, node: TreeNode[T]) -> list[TreeNode[T]]:
        """The children that a wildcard sees: [MQTT-4.7.2-1] a leading one does not see names that start with $."""
        children = node.children or {}
        if node is self._root:
            return [child for name, child in children.items() if not name.startswith("$")]
        return list(children.values())
