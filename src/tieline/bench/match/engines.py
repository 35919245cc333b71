"""Everything that can say which boxes contain an event: our index in three kinds, and what one would use instead."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import pairwise, repeat
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast  # Any: rtree has no types

from tieline.match.index import AdaptiveIndex, Boxes
from tieline.match.where import parse

if TYPE_CHECKING:
    from tieline.bench.match.workload import Configuration, Floats
    from tieline.match.index.adaptive import Backend

#: rtree keeps what is unbounded as boxes of this size: it multiplies widths, and no event comes near.
_FAR = 1e9

Answers: TypeAlias = list[list[int]]
Match: TypeAlias = Callable[[Sequence[float]], Sequence[int]]


class Engine(ABC):
    """Boxes, and the question which of them contain an event."""

    name: ClassVar[str]
    #: The most subscriptions it is measured with; with more it takes too long.
    most: ClassVar[int] = 1_000_000
    #: How to get the library that it needs, if any.
    install: ClassVar[str] = ""
    library: ClassVar[str] = ""
    #: Events of a batch: as many as it answers together.
    portion: ClassVar[int] = 1
    #: What answers for one event; taken once, so that no other call stands between a clock and the answer.
    match: Match

    @classmethod
    def is_present(cls) -> bool:
        """Whether its library is installed."""
        return not cls.library or find_spec(cls.library) is not None

    @classmethod
    def takes(cls, configuration: Configuration) -> bool:
        """Whether it is measured in this configuration."""
        return configuration.subscriptions <= cls.most

    @abstractmethod
    def __init__(self, lo: Floats, hi: Floats) -> None:
        """Hold these boxes, which are known by their row."""

    def match_batch(self, rows: Floats) -> Answers:
        """The answers for many events; one by one, unless there is something better."""
        return [list(self.match(row)) for row in rows.tolist()]


class OurIndex(Engine):
    """Tieline's index, in one of its kinds."""

    backend: ClassVar[Backend]
    portion = 256

    def __init__(self, lo: Floats, hi: Floats) -> None:
        import numpy as np

        self.index = AdaptiveIndex.from_boxes(
            Boxes(np.arange(len(lo)), lo, hi), dimensions=lo.shape[1], backend=self.backend
        )
        self.match = self.index.match

    def match_batch(self, rows: Floats) -> Answers:
        offsets, ids = self.index.match_batch(cast("Sequence[Sequence[float]]", rows))
        return [ids[start:end] for start, end in pairwise(offsets)]


class Small(OurIndex):
    """Integers as bitmaps and remembered cells, for few boxes and without any library."""

    name = "small"
    backend = "small"
    most = 5_000


class Numpy(OurIndex):
    """The hierarchical bitmap in numpy."""

    name = "numpy"
    backend = "numpy"


class Numba(OurIndex):
    """The hierarchical bitmap, compiled."""

    name = "numba"
    backend = "numba"
    library = "numba"
    install = "pip install 'tieline[numba]'"


class Brute(Engine):
    """Every box is compared, attribute by attribute, all at once in numpy."""

    name = "brute force"

    def __init__(self, lo: Floats, hi: Floats) -> None:
        import numpy as np

        self._lo = [np.ascontiguousarray(column) for column in lo.T]
        self._hi = [np.ascontiguousarray(column) for column in hi.T]
        self.match = self._find

    def _find(self, row: Sequence[float]) -> Sequence[int]:
        found = (self._lo[0] <= row[0]) & (row[0] <= self._hi[0])
        for lo, hi, value in zip(self._lo[1:], self._hi[1:], row[1:], strict=True):
            found &= lo <= value
            found &= value <= hi
        return found.nonzero()[0].tolist()


class Rtree(Engine):
    """libspatialindex, through its Python package."""

    name = "rtree"
    library = "rtree"
    install = "pip install 'tieline[bench]'"
    most = 100_000

    def __init__(self, lo: Floats, hi: Floats) -> None:
        import numpy as np
        from rtree import index

        corners = np.hstack((lo.clip(-_FAR, _FAR), hi.clip(-_FAR, _FAR))).tolist()
        stream = ((number, tuple(box), None) for number, box in enumerate(corners))
        self._tree: Any = index.Index(stream, properties=index.Property(dimension=lo.shape[1]))
        self.match = self._find

    def _find(self, row: Sequence[float]) -> Sequence[int]:
        return list(self._tree.intersection((*row, *row)))

    def insert(self, number: int, lo: Sequence[float], hi: Sequence[float]) -> None:
        """Add one more box under this number."""
        self._tree.insert(number, (*lo, *hi))

    def delete(self, number: int, lo: Sequence[float], hi: Sequence[float]) -> None:
        """One less; it wants to know where the box is."""
        self._tree.delete(number, (*lo, *hi))


class Scan(Engine):
    """The conditions as they were written, evaluated one after the other: what there is without an index."""

    name = "predicates"
    most = 100_000
    #: Beyond these boxes, understanding the conditions takes longer than everything else: one configuration is enough.
    _MANY: ClassVar[int] = 5_000

    @classmethod
    def takes(cls, configuration: Configuration) -> bool:
        is_headline = (configuration.kind, configuration.attributes, configuration.selectivity) == ("U", 3, 0.001)
        return super().takes(configuration) and (configuration.subscriptions <= cls._MANY or is_headline)

    def __init__(self, lo: Floats, hi: Floats) -> None:
        self._names = [f"a{number}" for number in range(lo.shape[1])]
        self._predicates = [parse(text) for text in map(self._text, lo.tolist(), hi.tolist(), repeat(self._names))]
        self.match = self._find

    @staticmethod
    def _text(lo: list[float], hi: list[float], names: list[str]) -> str:
        terms = []
        for name, low, high in zip(names, lo, hi, strict=True):
            if low > -inf and high < inf:
                terms.append(f"{low!r}<={name}<={high!r}")
            elif low > -inf:
                terms.append(f"{name}>={low!r}")
            elif high < inf:
                terms.append(f"{name}<={high!r}")
        return " and ".join(terms)

    def _find(self, row: Sequence[float]) -> Sequence[int]:
        get: Callable[[str], float | None] = dict(zip(self._names, row, strict=True)).get
        return [number for number, predicate in enumerate(self._predicates) if predicate.holds(get)]


ENGINES: dict[str, type[Engine]] = {engine.name: engine for engine in (Small, Numpy, Numba, Brute, Rtree, Scan)}


def present_engines() -> list[str]:
    """Those that can be measured here."""
    return [name for name, engine in ENGINES.items() if engine.is_present()]


def absent_engines() -> dict[str, str]:
    """The others, and the commands that install them."""
    return {name: engine.install for name, engine in ENGINES.items() if not engine.is_present()}
