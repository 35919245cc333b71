"""Terms as functions: compiled once, called for every reading that has to be decided exactly.

Theory of operation
-------------------
Kleene's logic: a comparison with a value that is missing, not finite, or of another kind than what it is compared with
is neither true nor false, and neither is its negation.  Only "true" counts in the end.  So ``not`` is pushed down to
the leaves while compiling, where the negation of a leaf is "there is a value of this kind, and the leaf is not true of
it", and everything above is the plain ``and`` and ``or`` of two values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeGuard, assert_never

from tieline.match.box import GREATEST, LEAST
from tieline.match.where.terms import And, Changed, Delta, Not, OneOf, Or, Range, Term, Value, closed

#: How an attribute of the message at hand is read; None when it is not there.
Get: TypeAlias = Callable[[str], Value | None]
#: The watched attributes of what was delivered last; None when nothing was.
Before: TypeAlias = Mapping[str, Value | None] | None
Test: TypeAlias = Callable[[Get, Before], bool]

#: And not bool, which Python counts among them.
_NUMBERS: Final = (float, int)


def compiled(term: Term, *, is_negated: bool = False) -> Test:
    """The function that says whether a term, or its negation, is true."""
    match term:
        case Not(within):
            return compiled(within, is_negated=not is_negated)
        case And(terms):
            tests = tuple(compiled(part, is_negated=is_negated) for part in terms)
            return _any(tests) if is_negated else _all(tests)
        case Or(terms):
            tests = tuple(compiled(part, is_negated=is_negated) for part in terms)
            return _all(tests) if is_negated else _any(tests)
        case Range():
            return _range(term, is_negated)
        case OneOf():
            return _one_of(term, is_negated)
        case Changed(name):
            return _changed(name, is_negated)
        case Delta():
            return _delta(term, is_negated)
        case _:
            assert_never(term)


def _all(tests: tuple[Test, ...]) -> Test:
    def test(get: Get, before: Before) -> bool:
        for part in tests:  # noqa: SIM110 - all() of a generator takes twice as long
            if not part(get, before):
                return False
        return True

    return test


def _any(tests: tuple[Test, ...]) -> Test:
    def test(get: Get, before: Before) -> bool:
        for part in tests:  # noqa: SIM110 - as above
            if part(get, before):
                return True
        return False

    return test


def _never(_get: Get, _before: Before) -> bool:
    return False


def _range(term: Range, is_negated: bool) -> Test:
    interval = closed(term)
    if interval is None:
        # Texts are not ordered; a time is compared once it is known to be one, and a number by then.
        return _never
    name = term.name
    low, high = interval

    def inside(get: Get, _before: Before) -> bool:
        value = get(name)
        return isinstance(value, _NUMBERS) and low <= value <= high and type(value) is not bool

    def outside(get: Get, _before: Before) -> bool:
        value = get(name)
        return _is_number(value) and not low <= value <= high

    return outside if is_negated else inside


def _one_of(term: OneOf, is_negated: bool) -> Test:
    name = term.name
    values = frozenset(term.values)
    is_alike = _LIKE[type(term.values[0])]

    def inside(get: Get, _before: Before) -> bool:
        value = get(name)
        return value in values and is_alike(value)

    def outside(get: Get, _before: Before) -> bool:
        value = get(name)
        return is_alike(value) and value not in values

    return outside if is_negated else inside


def _changed(name: str, is_negated: bool) -> Test:
    def test(get: Get, before: Before) -> bool:
        value = get(name)
        if not _is_present(value):
            return False
        old = None if before is None else before.get(name)
        # A truth value that became 1 changed, though Python calls them equal.
        is_same = value == old and isinstance(value, bool) is isinstance(old, bool)
        return is_same is is_negated

    return test


def _delta(term: Delta, is_negated: bool) -> Test:
    name, distance, is_open = term.name, term.distance, term.is_open

    def test(get: Get, before: Before) -> bool:
        value = get(name)
        if not _is_number(value):
            return False
        old = None if before is None else before.get(name)
        if not _is_number(old):
            return not is_negated
        moved = abs(value - old)
        return (moved > distance or (moved == distance and not is_open)) is not is_negated

    return test


def _is_number(value: Value | None) -> TypeGuard[float]:
    """Whether there is a finite number; NaN and the infinities count as missing."""
    return isinstance(value, _NUMBERS) and LEAST <= value <= GREATEST and type(value) is not bool


def _is_text(value: Value | None) -> bool:
    return isinstance(value, str)


def _is_truth(value: Value | None) -> bool:
    return isinstance(value, bool)


def _is_present(value: Value | None) -> bool:
    return isinstance(value, str | bool) or _is_number(value)


_LIKE: Final = {float: _is_number, str: _is_text, bool: _is_truth}
