"""A covering forest: which of the interests behind this broker one upstream link has to know.

Theory of operation
-------------------
Every interest is either *forwarded*, then it is a root, or it hangs below one that covers it; so upstream always wants
everything that somebody here wants.  Equal interests are one, held by several ids: upstream is told once, and hears
nothing when all but one of them leave.

A new interest looks for a root that covers it.  If there is none it becomes a root.  In *optimal* mode it then takes
the place of the roots that it covers: the roots are exactly the maximal interests.  In *suboptimal* mode (the rules
(1)-(3) of RPCP) nothing that was forwarded is withdrawn because something larger comes later, which costs table space
upstream and saves messages.

When the last holder of an interest that was not forwarded leaves, upstream never knew it and is not told; what hung
below it moves up.  When a root leaves, what hung directly below it is reconsidered, oldest first, with all that hangs
below that: it goes under another root, or is forwarded itself.  Forwarding precedes cancelling in every set of changes,
so that upstream never wants less than it should, not even in between; and each forwarded interest is cancelled exactly
once, so that nothing is left upstream for ever.

Covering is pairwise (see :mod:`tieline.match.cover.interests`).  The order of work: filters that cover a filter are
found in a tree of levels, boxes that cover a box under one of them by an index; nothing compares all pairs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final, Literal, NamedTuple

from tieline.match.cover.boxes import IndexFactory
from tieline.match.cover.interests import Interest, Roots

Mode = Literal["optimal", "suboptimal"]


class Changes(NamedTuple):
    """What to tell upstream: first everything to forward, then everything to cancel."""

    forward: tuple[Interest, ...] = ()
    cancel: tuple[Interest, ...] = ()


#: Upstream need not hear of it.
NOTHING: Final = Changes()


class _Tree:
    """One interest, with those below it."""

    __slots__ = ("age", "children", "holders", "interest", "parent")

    def __init__(self, interest: Interest, age: int) -> None:
        #: As the first holder spelt it, and as upstream knows it.
        self.interest = interest
        #: Counts up over the life of the forest: less is older.
        self.age = age
        #: How many ids hold the interest; never none.
        self.holders = 1
        #: One that covers this one; None if this one is forwarded.
        self.parent: _Tree | None = None
        #: All and only those whose parent this is, by age.
        self.children: dict[int, _Tree] = {}

    def hang(self, child: _Tree) -> None:
        """Put another tree below this one."""
        child.parent = self
        self.children[child.age] = child


class Forest:
    """The interests behind one upstream link, by id."""

    def __init__(self, mode: Mode = "optimal", make_index: IndexFactory | None = None) -> None:
        self.mode: Final = mode
        self._births = 0
        self._interests: dict[Hashable, Interest] = {}
        #: One tree per interest that is held, under its canonical spelling.
        self._trees: dict[Interest, _Tree] = {}
        #: The forwarded ones, found by covering.
        self._roots: Roots[_Tree] = Roots(make_index, is_withdrawing=mode == "optimal")

    def __len__(self) -> int:
        """How many ids hold an interest."""
        return len(self._interests)

    def __repr__(self) -> str:
        return f"<Forest {self.mode}: {len(self)} held, {len(self._trees)} distinct, {len(self._roots)} forwarded>"

    @property
    def distinct(self) -> int:
        """How many different interests are held."""
        return len(self._trees)

    @property
    def forwarded(self) -> Iterator[Interest]:
        """What upstream knows, all changes applied."""
        return (tree.interest for tree in self._roots)

    def add(self, id: Hashable, interest: Interest) -> Changes:
        """Hold an interest; of an id that held another one before, instead of that."""
        before = self._interests.get(id)
        if before == interest:
            return NOTHING
        grown = self._take(interest)
        shrunk = self._drop(before) if before is not None else NOTHING
        self._interests[id] = interest
        # What the new interest withdrew it still covers, so nothing is both forwarded and cancelled.
        return Changes(grown.forward + shrunk.forward, grown.cancel + shrunk.cancel)

    def remove(self, id: Hashable) -> Changes:
        """Let an interest go; KeyError if the id holds none."""
        return self._drop(self._interests.pop(id))

    def _take(self, interest: Interest) -> Changes:
        tree = self._trees.get(interest.canonical)
        if tree is not None:
            tree.holders += 1
            return NOTHING
        self._births += 1
        tree = _Tree(interest, self._births)
        # Boxes of one type that differ in their attributes cannot be compared: refused, before anything has changed.
        is_forwarded, withdrawn = self._plant(tree)
        self._trees[interest.canonical] = tree
        return Changes((interest,) if is_forwarded else (), tuple(old.interest for old in withdrawn))

    def _drop(self, interest: Interest) -> Changes:
        tree = self._trees[interest.canonical]
        tree.holders -= 1
        if tree.holders:
            return NOTHING
        del self._trees[interest.canonical]
        if tree.parent is not None:
            del tree.parent.children[tree.age]
            for child in tree.children.values():
                tree.parent.hang(child)
            return NOTHING
        self._roots.remove(tree.age, tree.interest)
        exposed: dict[int, Interest] = {}
        for orphan in sorted(tree.children.values(), key=lambda orphan: orphan.age):
            is_forwarded, withdrawn = self._plant(orphan)
            if is_forwarded:
                exposed[orphan.age] = orphan.interest
            for old in withdrawn:
                # Only an older orphan can give way: what was forwarded before is not covered by what the root covered.
                del exposed[old.age]
        return Changes(tuple(exposed.values()), (tree.interest,))

    def _plant(self, tree: _Tree) -> tuple[bool, list[_Tree]]:
        """Put a tree below a root or among them: whether it became one, and the roots that gave way to it."""
        coverer = self._roots.coverer(tree.interest)
        if coverer is not None:
            coverer.hang(tree)
            return False, []
        withdrawn = self._roots.covered(tree.interest) if self.mode == "optimal" else []
        for old in withdrawn:
            self._roots.remove(old.age, old.interest)
            tree.hang(old)
        tree.parent = None
        self._roots.add(tree.age, tree.interest, tree)
        return True, withdrawn

    def check(self) -> None:
        """Assert everything that always holds; compares all roots with each other, so for tests."""
        assert sum(tree.holders for tree in self._trees.values()) == len(self._interests)
        assert all(interest.canonical in self._trees for interest in self._interests.values())
        roots = [tree for tree in self._trees.values() if tree.parent is None]
        assert {tree.age for tree in roots} == {tree.age for tree in self._roots}
        seen = 0
        stack = list(roots)
        while stack:
            tree = stack.pop()
            seen += 1
            for child in tree.children.values():
                assert child.parent is tree
                assert tree.interest.covers(child.interest)
                stack.append(child)
        assert seen == len(self._trees), "a tree hangs below itself, or below one that has left"
        if self.mode == "optimal":
            for root in roots:
                assert not any(other is not root and other.interest.covers(root.interest) for other in roots)
