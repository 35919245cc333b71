"""Making an index anew beside the one that is in use: the same boxes in better order, or in another kind of index.

:meth:`Rebuild.run` touches nothing that anybody else can see, so it may run in any thread; most of it is spent in numpy
and in compilers, which let other threads run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Literal

from tieline.extras import is_installed
from tieline.match.index.protocol import Boxes, Rebuildable
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
    """Whether numba is installed; importing it would take long."""
    return is_installed("numba")
