"""A predicate meets an event type: its boxes over the attributes that the type declares.

A literal becomes the number by which the index knows it.  What no box can express (attributes that are not declared,
``changed`` and ``delta``, too many boxes) leaves a superset, and the predicate decides about each message in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from tieline.match.box import ANY, Box, everything
from tieline.match.where.normal import Region, cover
from tieline.match.where.predicate import Predicate
from tieline.match.where.terms import (
    PRESENT,
    And,
    Changed,
    Delta,
    End,
    Interval,
    Leaf,
    Not,
    OneOf,
    Or,
    Range,
    Term,
    Value,
    closed,
    complement,
    conjunction,
    disjunction,
    leaves,
    negation,
)

_NUMERIC: Final = ("number", "integer", "timestamp")


class Declared(Protocol):
    """An attribute, as far as expressions care."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...


class Event(Protocol):
    """An event type, as far as expressions care."""

    @property
    def attributes(self) -> Sequence[Declared]: ...
    @property
    def position(self) -> Mapping[str, int]: ...
    def code(self, name: str, literal: Value) -> float | None:
        """The number of a value; None when the attribute never has it."""


class Bound(NamedTuple):
    """A predicate over the attributes of an event type."""

    #: Over the attributes in the order of the type; none at all when no message can match.
    boxes: tuple[Box, ...]
    #: Whether every point of the boxes is asked for; otherwise ``predicate`` decides about those inside.
    is_exact: bool
    #: The predicate as this type understands it: its times are numbers.
    predicate: Predicate


def bind(predicate: Predicate, event: Event) -> Bound:
    """What a predicate asks of messages of one type.

    Raises whatever ``event.code`` raises for a category of which too many values are named already.
    """
    timed = understood(predicate, event)

    def regions(leaf: Leaf, is_negated: bool) -> list[Region]:
        return _regions(leaf, is_negated, event)

    found = cover(timed.term, regions)
    return Bound(
        boxes=tuple(region.box for region in found), is_exact=all(region.is_exact for region in found), predicate=timed
    )


def understood(predicate: Predicate, event: Event) -> Predicate:
    """A predicate as a type understands it: its times are numbers; the predicate itself if it names none."""
    term = _timed(predicate.term, event)
    return predicate if term is predicate.term else Predicate(predicate.text, term)


def _regions(leaf: Leaf, is_negated: bool, event: Event) -> list[Region]:
    """Where a leaf, or its negation, is true."""
    dimensions = len(event.attributes)
    position = event.position.get(leaf.name)
    if position is None:
        return [Region(everything(dimensions), is_exact=False)]
    kind = event.attributes[position].kind
    is_exact = not isinstance(leaf, Changed | Delta)
    return [
        Region(_slab(dimensions, position, interval), is_exact)
        for interval in _intervals(leaf, is_negated, kind, event)
    ]


def _intervals(leaf: Leaf, is_negated: bool, kind: str, event: Event) -> list[Interval]:
    """The values of its attribute for which a leaf is true; none for what can never be compared."""
    if isinstance(leaf, Changed):
        return [PRESENT]
    if isinstance(leaf, Delta):
        return [PRESENT] if kind in _NUMERIC else []
    if isinstance(leaf, Range):
        interval = closed(leaf) if kind in _NUMERIC else None
        if interval is None:
            return []
        inside = [interval] if interval[0] <= interval[1] else []
    elif _is_of_kind(leaf.values[0], kind):
        codes = {float(value) if kind in _NUMERIC else event.code(leaf.name, value) for value in leaf.values}
        inside = [(code, code) for code in sorted(code for code in codes if code is not None)]
    else:
        return []
    return complement(inside) if is_negated else inside


def _is_of_kind(value: Value, kind: str) -> bool:
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "category":
        return isinstance(value, str)
    return isinstance(value, float)


def _slab(dimensions: int, position: int, interval: Interval) -> Box:
    """The box with a condition on one attribute only."""
    before, behind = position, dimensions - position - 1
    return Box(
        (ANY[0],) * before + (interval[0],) + (ANY[0],) * behind,
        (ANY[1],) * before + (interval[1],) + (ANY[1],) * behind,
    )


# --- times ------------------------------------------------------------------------------------------------------------


def _timed(term: Term, event: Event) -> Term:
    """A term in which the texts that an attribute of times is compared with are numbers; the term itself if none is."""
    times = {attribute.name for attribute in event.attributes if attribute.kind == "timestamp"}
    if not any(leaf.name in times for leaf in leaves(term)):
        return term
    return _with_times(term, times, event)


def _with_times(term: Term, times: set[str], event: Event) -> Term:
    match term:
        case Not(within):
            return negation(_with_times(within, times, event))
        case And(terms):
            return conjunction([_with_times(part, times, event) for part in terms])
        case Or(terms):
            return disjunction([_with_times(part, times, event) for part in terms])
        case Range(name, low, high) if name in times:
            return Range(name, _end(name, low, event), _end(name, high, event))
        case OneOf(name, values) if name in times:
            return _moments(name, values, event)
        case _:
            return term


def _end(name: str, end: End | None, event: Event) -> End | None:
    if end is None:
        return None
    code = event.code(name, end.value)
    return end if code is None else End(code, end.is_open)


def _moments(name: str, values: tuple[Value, ...], event: Event) -> Term:
    """Texts that are no times stay as they are, apart: to them no time compares."""
    codes = {value: event.code(name, value) for value in values}
    moments = tuple(dict.fromkeys(code for code in codes.values() if code is not None))
    others = tuple(value for value, code in codes.items() if code is None)
    return disjunction([OneOf(name, part) for part in (moments, others) if part])
