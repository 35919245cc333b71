"""Predicates: an expression that was understood, ready to be asked about messages."""

from __future__ import annotations

from tieline.match.where.canonical import canonical
from tieline.match.where.evaluate import Before, Get, Test, compiled
from tieline.match.where.parser import MAX_LENGTH, read
from tieline.match.where.terms import Changed, Delta, Term, leaves


def parse(text: str) -> Predicate:
    """Understand an expression, or raise an :class:`ExpressionError`."""
    return Predicate(text, read(text))


class Predicate:
    """What an expression asks of a message.

    Everything but the term is worked out when it is asked for: most predicates become boxes and are never called.
    """

    __slots__ = ("_canonical", "_test", "term", "text")

    def __init__(self, text: str, term: Term) -> None:
        #: The expression as it was given.
        self.text = text
        self.term = term
        self._canonical: str | None = None
        self._test: Test | None = None

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
