"""An index that becomes another kind of index as it grows and shrinks.

Theory of operation
-------------------
Thousands of boxes are found fastest by Python integers, more by a bitmap in numpy, and much faster by the same bitmap
and compiled code.  Moving to another kind, and putting a worn bitmap in order, are the same thing: a :class:`Rebuild`
out of a copy of all boxes, which somebody else may run in a thread while this index goes on answering.  What changes
meanwhile is noted, and made up for when the new index takes over:

    if index.wants_rebuild():
        job = index.begin_rebuild()
        ...                     # job.run(), in any thread
        index.adopt(job)

An index that nobody rebuilds is exact all the same.  Only from far too many integers does it move on by itself.

:meth:`Rebuild.run` makes an index anew beside the one that is in use and touches nothing that anybody else can see, so
it may run in any thread; most of it is spent in numpy and in compilers, which let other threads run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, Literal, TypeAlias

from tieline.compiling import is_compiled
from tieline.match.box import Box
from tieline.match.index.protocol import NO_BOXES, Boxes, Rebuildable
from tieline.match.index.small import SmallIndex

Backend = Literal["small", "numpy", "numba"]


class Rebuild:
    """An index that will be made: from which boxes, and of which kind."""

    def __init__(self, boxes: Callable[[], Boxes], dimensions: int, backend: Backend) -> None:
        self._boxes = boxes
        self._dimensions = dimensions
        #: The kind of index; after :meth:`run` that which there is, if the one asked for was not to be had.
        self.backend = backend
        #: The index, after :meth:`run`.
        self.index: Rebuildable | None = None

    def run(self) -> None:
        """Make it; takes up to some seconds for a million boxes, or for a compiler."""
        if self.backend == "numba":
            try:
                from tieline.match.index import compiled

                compiled.warm()
            except ImportError:  # installed, but not for this version of Python or numpy
                self.backend = "numpy"
        self.index = make(self.backend, self._dimensions, self._boxes())


def make(backend: Backend, dimensions: int, boxes: Boxes) -> Rebuildable:
    """An index of one kind, with these boxes."""
    if backend == "small":
        return SmallIndex.from_boxes(boxes, dimensions)
    if backend == "numpy":
        from tieline.match.index.vectors import VectorIndex

        return VectorIndex(dimensions, boxes)
    from tieline.match.index.compiled import CompiledIndex

    return CompiledIndex(dimensions, boxes)


@cache
def has_numba() -> bool:
    """Whether there is a compiler, and it is wanted; importing it would take long."""
    return is_compiled()


#: Boxes up to which integers stay, down to which a bitmap does not become integers again, and beyond which integers are
#: so slow that moving at once, for some tens of milliseconds, is better than waiting for somebody to do it.
SMALL_TO: Final = 5_000
LARGE_FROM: Final = 2_500
SMALL_NEVER: Final = 20_000


Choice: TypeAlias = Backend | Literal["auto"]


class AdaptiveIndex:
    """Boxes in whatever suits their number, or in the kind of index that is asked for."""

    def __init__(self, dimensions: int, *, backend: Choice = "auto") -> None:
        self.dimensions = dimensions
        self._is_free = backend == "auto"
        #: The kind of index at present.
        self.backend: Backend = "small" if backend == "auto" else backend
        self._index: Rebuildable = make(self.backend, dimensions, NO_BOXES)
        #: What to use for many boxes.
        self._large: Backend = "numba" if has_numba() else "numpy"
        #: How many boxes there were when a rebuild failed; 0 if none did.
        self._failed_at = 0
        #: The rebuild that will be adopted.
        self._job: Rebuild | None = None
        #: What changed since it began: an id and a box of it, or None where it was removed.
        self._changes: list[tuple[int, Box | None]] = []

    @classmethod
    def from_boxes(cls, boxes: Boxes, dimensions: int, *, backend: Choice = "auto") -> AdaptiveIndex:
        """An index that holds these boxes, in what suits them at once, even if that has to be compiled first."""
        index = cls(dimensions, backend=backend)
        kind = index._suited(len(boxes.ids))
        index._job = Rebuild(lambda: boxes, dimensions, kind)
        index._job.run()
        index.adopt(index._job)
        return index

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        return f"<AdaptiveIndex {len(self)} boxes, {self.dimensions} dimensions, {self.backend}>"

    # -- the index at present

    def add(self, id: int, box: Box) -> None:
        self._index.add(id, box)
        if self._job is not None:
            self._note(id, box)
        elif self._is_free and self.backend == "small" and len(self._index) > SMALL_NEVER:
            self._move()

    def remove(self, id: int) -> None:
        self._index.remove(id)
        if self._job is not None:
            self._note(id, None)

    def match(self, row: Sequence[float]) -> list[int]:
        return self._index.match(row)

    def match_batch(self, rows: Sequence[Sequence[float]]) -> tuple[list[int], list[int]]:
        return self._index.match_batch(rows)

    def coverers(self, box: Box) -> list[int]:
        return self._index.coverers(box)

    def memory(self) -> int:
        return self._index.memory()

    # -- the next one

    def wants_rebuild(self) -> bool:
        """Whether another index would be better, and none is being made."""
        if self._job is not None or self._failed_at // 2 < len(self) < 2 * self._failed_at:
            return False
        return self._suited(len(self)) != self.backend or self._index.is_worn

    def begin_rebuild(self) -> Rebuild:
        """Begin to make another index; if one was begun before, it will not be adopted any more."""
        self._job = Rebuild(self._index.snapshot(), self.dimensions, self._suited(len(self)))
        self._changes.clear()
        return self._job

    def adopt(self, job: Rebuild) -> bool:
        """Let a rebuild that has run take over, with everything that changed meanwhile; False if it is not wanted."""
        if job is not self._job:
            return False
        index = job.index
        if index is None:
            raise ValueError("a rebuild has to run before it is adopted")
        for id, box in self._changes:
            if box is None:
                index.remove(id)
            else:
                index.add(id, box)
        if job.backend == "numpy":
            self._large = "numpy"  # what was asked for, or what there was instead
        self._index, self.backend = index, job.backend
        self.abandon(job)
        return True

    def give_up(self, job: Rebuild) -> None:
        """A rebuild failed; the next one would too, until there are many more boxes, or many less."""
        self._failed_at = len(self)
        self.abandon(job)

    def abandon(self, job: Rebuild) -> None:
        """Forget about a rebuild."""
        if job is self._job:
            self._job = None
            self._changes.clear()

    def _suited(self, size: int) -> Backend:
        """The kind of index for so many boxes."""
        if not self._is_free:
            return self.backend
        is_small = size <= SMALL_TO if self.backend == "small" else size < LARGE_FROM
        return "small" if is_small else self._large

    def _note(self, id: int, box: Box | None) -> None:
        """Remember a change for the index that is being made, unless it takes too long to be of use."""
        self._changes.append((id, box))
        if len(self._changes) > max(SMALL_NEVER, len(self._index)) and self._job is not None:
            self.abandon(self._job)

    def _move(self) -> None:
        """Leave the integers now, without waiting for a compiler."""
        self._index, self.backend = make("numpy", self.dimensions, self._index.snapshot()()), "numpy"
