"""Terms: what an expression says, once it no longer matters how it was spelled.

Four kinds of leaf, each about one attribute, joined by ``Not``, ``And`` and ``Or``.  ``=``, ``!=``, ``in`` and
``not in`` are all a :class:`OneOf` or its negation; ``<`` and its like, and chains of two, are all a :class:`Range`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

#: What an attribute can be: numbers and times, categories, truth values.
Value: TypeAlias = float | str | bool


class End(NamedTuple):
    """One end of a range."""

    value: float | str
    is_open: bool


@dataclass(frozen=True, slots=True)
class Range:
    """``low < name <= high``, either end open or closed, or not there at all; both ends are of one kind."""

    name: str
    low: End | None
    high: End | None


@dataclass(frozen=True, slots=True)
class OneOf:
    """``name = value``, or ``name in (…)``: the values are all of one kind, no two the same, at least one."""

    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """``changed(name)``: not the value that was delivered last."""

    name: str


@dataclass(frozen=True, slots=True)
class Delta:
    """``delta(name) > distance``, or ``>=`` when closed: so far from the value that was delivered last."""

    name: str
    distance: float
    is_open: bool


@dataclass(frozen=True, slots=True)
class Not:
    """What is within does not hold."""

    term: Term


@dataclass(frozen=True, slots=True)
class And:
    """All of them hold; at least two, and none of them an ``And``."""

    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """One of them holds; at least two, and none of them an ``Or``."""

    terms: tuple[Term, ...]


Leaf: TypeAlias = Range | OneOf | Changed | Delta
Term: TypeAlias = Leaf | Not | And | Or


def negation(term: Term) -> Term:
    """The opposite of a term; the opposite of an opposite is the term itself, in Kleene's logic too."""
    return term.term if isinstance(term, Not) else Not(term)


def conjunction(terms: Sequence[Term]) -> Term:
    """All of these, without an ``And`` directly inside another."""
    flat = tuple(part for term in terms for part in (term.terms if isinstance(term, And) else (term,)))
    return flat[0] if len(flat) == 1 else And(flat)


def disjunction(terms: Sequence[Term]) -> Term:
    """One of these, without an ``Or`` directly inside another."""
    flat = tuple(part for term in terms for part in (term.terms if isinstance(term, Or) else (term,)))
    return flat[0] if len(flat) == 1 else Or(flat)


def leaves(term: Term) -> Iterator[Leaf]:
    """The leaves from left to right."""
    if isinstance(term, Not):
        yield from leaves(term.term)
    elif isinstance(term, And | Or):
        for part in term.terms:
            yield from leaves(part)
    else:
        yield term
