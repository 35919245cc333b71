"""Many conditions on one filter in a few thousand bytes: cells of one or two attributes, always a superset.

Theory of operation
-------------------
A condition that can only hold where certain attributes are numbers is a union of boxes over them.  The one or two that
most conditions compare are cut into a grid whose bounds are those of the conditions, and every cell that a box touches
is one bit of a compressed bitmap (:class:`~tieline.match.merge.digest.CellDigest`), on the finest grid that fits.
Whoever publishes asks for the bit of a message; whether anybody really wants it, the broker that has said the digest
knows.

The digest travels in the place of a condition, with names instead of event types: a comparison means the same under
any type.  What cannot be told by cells (texts, negations, conditions on other attributes alone) is left to be said in
another way.
"""

from __future__ import annotations

from base64 import b85decode, b85encode
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tieline.match.box import ANY, GREATEST, LEAST, Box
from tieline.match.merge.digest import BadDigest, CellDigest, Routing
from tieline.match.space import Space
from tieline.match.where import ExpressionError, Predicate, bind, parse
from tieline.match.where.evaluate import Before, Get
from tieline.match.where.terms import Changed, Delta, Not, OneOf, Range, Term, Value, leaves
from tieline.overlay.interests.entries import DIGEST, LONGEST_DIGEST

#: Bytes of a digest before it is put into text.
_MOST_BYTES: Final = 32_768
#: By the number of attributes, the bits of a place along each, the finest first.
_ORDERS: Final = {1: (16, 14, 12, 10, 8), 2: (10, 9, 8, 7, 6, 5, 4)}
_BETWEEN: Final = "\x02"


class _Attribute(NamedTuple):
    name: str
    kind: str = "number"


class _Names:
    """An event type of nothing but numbers, whose attributes are whatever conditions name."""

    def __init__(self, names: Sequence[str]) -> None:
        self.attributes = tuple(map(_Attribute, names))
        self.position = {name: place for place, name in enumerate(names)}

    def code(self, _name: str, literal: Value) -> float | None:
        """The number of a literal, which is one already."""
        return literal if isinstance(literal, float) else None


def is_digest(condition: str) -> bool:
    """Whether a digest stands in the place of a condition."""
    return condition.startswith(DIGEST)


class Cells(Predicate):
    """A digest as a condition: it holds in the cells that are wanted by somebody."""

    __slots__ = ("_names", "digest")

    def __init__(self, text: str, names: tuple[str, ...], digest: CellDigest) -> None:
        # no box says it exactly, so every message in which the first attribute is a number is asked about
        super().__init__(f"cells of {', '.join(names)}", Changed(names[0]))
        self._canonical = text
        self._names = names
        self.digest = digest

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes whose numbers choose a cell."""
        return self._names

    @property
    def watched(self) -> tuple[str, ...]:
        """Nothing: it compares with nothing that was delivered before."""
        return ()

    def prepare(self) -> None:
        """Cells need no preparation."""

    def holds(self, get: Get, before: Before = None) -> bool:
        """Whether the message lies in a cell that somebody wants."""
        point = []
        for name in self._names:
            value = get(name)
            if not isinstance(value, float | int) or isinstance(value, bool) or not LEAST <= value <= GREATEST:
                return False
            point.append(float(value))
        return self.digest.may_want(point)


def read_digest(text: str) -> Cells:
    """What stands in the place of a condition; raises BadDigest if it is none."""
    named, _, encoded = text[len(DIGEST) :].rpartition(_BETWEEN)
    names = tuple(named.split(_BETWEEN))
    try:
        data = b85decode(encoded)
    except ValueError:
        raise BadDigest("a digest that is no base 85") from None
    if not 0 < len(names) <= len(_ORDERS) or not all(names) or data[:1] != b"C":
        raise BadDigest("a digest of nothing, of too many attributes, or of something else than cells")
    digest = CellDigest.decode(data[1:])
    if digest.routing.places != tuple(range(len(names))):
        raise BadDigest("a digest whose cells are of other attributes than it names")
    return Cells(text, names, digest)


def _put(names: Sequence[str], digest: CellDigest) -> str:
    return DIGEST + _BETWEEN.join((*names, b85encode(digest.encode()).decode()))


def digest_of(conditions: Iterable[str], before: str = "") -> tuple[str, list[str]]:
    """A digest of conditions beside those of an earlier digest, and which of them it holds; empty if it holds none.

    An earlier digest keeps its grid, so that nothing of it has to be known but its cells.
    """
    predicates = {condition: predicate for condition in conditions if (predicate := _numeric(condition)) is not None}
    earlier = read_digest(before) if before else None
    names = earlier.names if earlier is not None else _routing(predicates.values())
    if not names:
        return "", []
    boxes: list[Box] = []
    held: list[str] = []
    event = _Names(names)
    for condition, predicate in predicates.items():
        found = bind(predicate, event).boxes
        if all(_is_bounded(box) for box in found):
            boxes += found
            held.append(condition)
    if not held:
        return "", []
    digest = _beside(earlier.digest, boxes) if earlier is not None else _finest(boxes, len(names))
    text = "" if digest is None else _put(names, digest)
    return (text, held) if 0 < len(text) <= LONGEST_DIGEST else ("", [])


def _numeric(condition: str) -> Predicate | None:
    """A condition that holds only where it compares numbers with numbers; None if it is another one."""
    try:
        predicate = parse(condition)
    except ExpressionError:
        return None
    if _negates(predicate.term):
        return None
    for leaf in leaves(predicate.term):
        if isinstance(leaf, Range):
            ends = [end.value for end in (leaf.low, leaf.high) if end is not None]
        elif isinstance(leaf, OneOf):
            ends = list(leaf.values)
        else:
            ends = []
        if not all(isinstance(end, float) for end in ends):
            return None
    return predicate


def _negates(term: Term) -> bool:
    if isinstance(term, Not):
        return True
    if isinstance(term, Range | OneOf | Changed | Delta):
        return False
    return any(map(_negates, term.terms))


def _routing(predicates: Iterable[Predicate]) -> tuple[str, ...]:
    """The attributes that most conditions compare: two if both are in at least half of them, or one."""
    count, named = 0, Counter[str]()
    for predicate in predicates:
        count += 1
        named.update(predicate.names)
    often = [name for name, times in named.most_common(2) if 2 * times >= count and name.isprintable()]
    return tuple(sorted(often))


def _is_bounded(box: Box) -> bool:
    """Whether all attributes have to be there; a missing one has no cell."""
    return all((low, high) != ANY for low, high in zip(box.lo, box.hi, strict=True))


def _finest(boxes: Sequence[Box], dimensions: int) -> CellDigest | None:
    """On the finest grid that fits."""
    bounds = []
    for axis in range(dimensions):
        ends = [end for box in boxes for end in (box.lo[axis], box.hi[axis]) if LEAST < end < GREATEST]
        low, high = min(ends, default=0.0), max(ends, default=0.0)
        # a grid has a width, and one that is wider than any number has none
        bounds.append((low, high) if low < high and high - low < GREATEST else (-1.0, 1.0))
    for order in _ORDERS[dimensions]:
        digest = CellDigest.of(boxes, Routing(Space(bounds, order), range(dimensions)))
        if digest.size <= _MOST_BYTES:
            return digest
    return None


def _beside(earlier: CellDigest, boxes: Sequence[Box]) -> CellDigest | None:
    """The cells of an earlier digest and those of more boxes, on its grid."""
    digest = earlier.joined(CellDigest.of(boxes, earlier.routing))
    return digest if digest.size <= _MOST_BYTES else None
