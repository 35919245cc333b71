"""Predicates: an expression that was understood, ready to be asked about messages.

Its canonical text is one spelling for all spellings of a term, and parses back to that term.
"""

from __future__ import annotations

from typing import assert_never

from tieline.match.where.evaluate import Before, Get, Test, compiled
from tieline.match.where.lexer import is_plain
from tieline.match.where.parser import MAX_LENGTH, read
from tieline.match.where.terms import And, Changed, Delta, Not, OneOf, Or, Range, Term, Value, leaves


def canonical(term: Term) -> str:
    """A term in words, with no more parentheses than it needs."""
    match term:
        case Or(terms):
            return " or ".join(canonical(part) for part in terms)
        case And(terms):
            return " and ".join(f"({canonical(part)})" if isinstance(part, Or) else canonical(part) for part in terms)
        case Not(OneOf(name, values)):
            return _membership(name, values, equal="!=", member="not in")
        case Not(And() | Or() as within):
            return f"not ({canonical(within)})"
        case Not(within):
            return f"not {canonical(within)}"
        case OneOf(name, values):
            return _membership(name, values, equal="=", member="in")
        case Range():
            return _range(term)
        case Changed(name):
            return f"changed({_name(name)})"
        case Delta(name, distance, is_open):
            return f"delta({_name(name)}) {'>' if is_open else '>='} {_value(distance)}"
        case _:
            assert_never(term)


def _membership(name: str, values: tuple[Value, ...], *, equal: str, member: str) -> str:
    if len(values) == 1:
        return f"{_name(name)} {equal} {_value(values[0])}"
    return f"{_name(name)} {member} ({', '.join(map(_value, values))})"


def _range(term: Range) -> str:
    name = _name(term.name)
    if term.low is None and term.high is not None:
        return f"{name} {'<' if term.high.is_open else '<='} {_value(term.high.value)}"
    assert term.low is not None, "a range has an end"
    if term.high is None:
        return f"{name} {'>' if term.low.is_open else '>='} {_value(term.low.value)}"
    left, right = ("<" if end.is_open else "<=" for end in (term.low, term.high))
    return f"{_value(term.low.value)} {left} {name} {right} {_value(term.high.value)}"


def _name(name: str) -> str:
    return name if is_plain(name) else f"`{name.replace('`', '``')}`"


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value.replace(chr(34), chr(34) * 2)}"'
    return repr(value).removesuffix(".0")


def parse(text: str) -> Predicate:
    """Understand an expression, or raise an :class:`ExpressionError`."""
    return Predicate(text, read(text))


class Predicate:
    """What an expression asks of a message.

    Everything but the term is worked out when it is asked for: most predicates become boxes and are never called.
    """

    __slots__ = ("_canonical", "_comparisons", "_test", "term", "text")

    def __init__(self, text: str, term: Term) -> None:
        #: The expression as it was given.
        self.text = text
        self.term = term
        self._canonical: str | None = None
        self._test: Test | None = None
        self._comparisons = 0

    @property
    def canonical(self) -> str:
        """The expression in one of its spellings, which parses back to an equal predicate.

        Where that spelling would be too long to be parsed, it is the one that was given.
        """
        if self._canonical is None:
            text = canonical(self.term)
            self._canonical = text if len(text) <= MAX_LENGTH else self.text
        return self._canonical

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes it names, in the order in which they appear."""
        return tuple(dict.fromkeys(leaf.name for leaf in leaves(self.term)))

    @property
    def watched(self) -> tuple[str, ...]:
        """The attributes inside ``changed()`` and ``delta()``, whose last delivered values it compares with."""
        return tuple(dict.fromkeys(leaf.name for leaf in leaves(self.term) if isinstance(leaf, Changed | Delta)))

    @property
    def comparisons(self) -> int:
        """How many comparisons it is made of."""
        if not self._comparisons:
            self._comparisons = sum(1 for _ in leaves(self.term))
        return self._comparisons

    def prepare(self) -> None:
        """Do now what the first question would have to wait for."""
        if self._test is None:
            self._test = compiled(self.term)

    def holds(self, get: Get, before: Before = None) -> bool:
        """Whether a message is asked for: ``get`` reads its attributes, ``before`` has what was delivered last.

        Without a ``before`` nothing was delivered yet, and whatever is watched counts as changed.
        """
        test = self._test
        if test is None:
            test = self._test = compiled(self.term)
        return test(get, before)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Predicate) and self.canonical == other.canonical

    def __hash__(self) -> int:
        return hash(self.canonical)

    def __repr__(self) -> str:
        return f"Predicate({self.text!r})"
