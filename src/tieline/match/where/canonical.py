"""Terms as text again: one spelling for all spellings of a term, and it parses back to that term."""

from __future__ import annotations

from typing import assert_never

from tieline.match.where.lexer import is_plain
from tieline.match.where.terms import And, Changed, Delta, Not, OneOf, Or, Range, Term, Value


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
