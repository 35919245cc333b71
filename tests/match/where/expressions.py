"""Random expressions as trees, their text in random spelling, and what they mean: a second, naive reading of the rules.

A tree is a tuple: ``("<", name, value)`` and the other comparisons, ``("range", low, operator, name, operator, high)``,
``("in", name, values)``, ``("changed", name)``, ``("delta", name, operator, distance)``, ``("not", tree)``, and
``("and", trees)`` and ``("or", trees)``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st

from tieline.match.box import GREATEST, LEAST
from tieline.match.where.terms import Value

Tree = tuple[Any, ...]

#: So few of each that comparisons often meet what they ask for; the odd ones are where floats have their edges.
NAMES: Final = ("v", "n", "s", "b", "t", "odd name", "not")
NUMBERS: Final = (0.0, -0.0, 1.0, -1.0, 1.5, 2.0, 3.0, 5e-324, -5e-324, 1e308, GREATEST, LEAST)
TEXTS: Final = ("on", "off", "", "it's", 'a "b"', "Ünit", "1", "true", "not", "2026-01-01T00:00:00Z")
_COMPARISONS: Final = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}

names: Final = st.sampled_from(NAMES)
numbers: Final = st.sampled_from(NUMBERS)
texts: Final = st.sampled_from(TEXTS)
#: What messages carry: nothing, numbers that are none, and every kind of value under every name.
carried: Final = st.one_of(st.none(), st.sampled_from((math.nan, math.inf, -math.inf)), numbers, texts, st.booleans())
readings: Final = st.fixed_dictionaries(dict.fromkeys(NAMES, carried))

_ordering: Final = st.sampled_from(("<", "<=", ">", ">="))
_stateless: Final = st.one_of(
    st.tuples(_ordering, names, st.one_of(numbers, texts)),
    st.tuples(st.sampled_from(("=", "!=")), names, st.one_of(numbers, texts, st.booleans())),
    st.tuples(
        st.just("in"),
        names,
        st.one_of(*(st.lists(kind, min_size=1, max_size=4).map(tuple) for kind in (numbers, texts, st.booleans()))),
    ),
    *(
        st.tuples(st.just("range"), ends, st.sampled_from(pair), names, st.sampled_from(pair), ends)
        for ends in (numbers, texts)
        for pair in (("<", "<="), (">", ">="))
    ),
)
_stateful: Final = st.one_of(
    st.tuples(st.just("changed"), names),
    st.tuples(st.just("delta"), names, st.sampled_from((">", ">=")), numbers.map(abs)),
)


def _joined(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.tuples(st.just("not"), inner), st.tuples(st.just("and"), several), st.tuples(st.just("or"), several)
    )


trees: Final = st.recursive(st.one_of(_stateless, _stateful), _joined, max_leaves=8)
stateless_trees: Final = st.recursive(_stateless, _joined, max_leaves=8)


# --- what they mean ---------------------------------------------------------------------------------------------------


def oracle(tree: Tree, now: Mapping[str, Value | None], before: Mapping[str, Value | None] | None) -> bool | None:
    """Kleene's three values, by the book: true, false, or None for neither."""
    head = tree[0]
    if head == "not":
        inner = oracle(tree[1], now, before)
        return None if inner is None else not inner
    if head in ("and", "or"):
        parts = [oracle(part, now, before) for part in tree[1]]
        decisive = head == "or"
        return decisive if decisive in parts else None if None in parts else not decisive
    if head == "range":
        _, low, left, name, right, high = tree
        return oracle(("and", ((_MIRRORED[left], name, low), (right, name, high))), now, before)
    if head == "in":
        return oracle(("or", tuple(("=", tree[1], value) for value in tree[2])), now, before)
    value: Any = now[tree[1]]
    old: Any = None if before is None else before[tree[1]]
    if head == "changed":
        return None if _kind(value) is None else _kind(value) != _kind(old) or value != old
    if head == "delta":
        if _kind(value) != "number":
            return None
        return _kind(old) != "number" or bool(_COMPARISONS[tree[2]](abs(value - old), tree[3]))
    wanted = tree[2]
    if _kind(value) != _kind(wanted) or (_kind(value) != "number" and head not in ("=", "!=")):
        return None
    return bool(_COMPARISONS[head](value, wanted))


_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _kind(value: Value | None) -> str | None:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, float):
        return "number" if math.isfinite(value) else None
    return None if value is None else "text"


# --- how they are written ---------------------------------------------------------------------------------------------


@st.composite
def spelled(draw: st.DrawFn, tree: Tree) -> str:
    """A text that says what a tree says."""
    return _Pen(draw).write(tree)


class _Pen:
    """Chooses a spelling wherever there is a choice."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def _one_of(self, *spellings: str) -> str:
        return self._draw(st.sampled_from(spellings))

    def _case(self, word: str) -> str:
        return self._one_of(word, word.upper(), word.capitalize())

    def _blank(self) -> str:
        return self._one_of("", " ", "\t ")

    def write(self, tree: Tree) -> str:
        head = tree[0]
        if head == "not":
            return self._one_of("! ", "!", f"{self._case('not')} ") + self._grouped(tree[1], "and", "or")
        if head in ("and", "or"):
            signs = ("&", " && ") if head == "and" else ("|", " || ")
            needy = ("or",) if head == "and" else ()
            return self._one_of(*signs, f" {self._case(head)} ").join(self._grouped(part, *needy) for part in tree[1])
        return self._leaf(tree)

    def _grouped(self, tree: Tree, *needy: str) -> str:
        """In parentheses where they are needed, and now and then without need."""
        if tree[0] in needy or self._draw(st.booleans()):
            return f"({self._blank()}{self.write(tree)}{self._blank()})"
        return self.write(tree)

    def _leaf(self, tree: Tree) -> str:
        head, b = tree[0], self._blank()
        if head == "changed":
            return f"{self._case(head)}{b}({self._name(tree[1])})"
        if head == "delta":
            return f"{self._case(head)}({b}{self._name(tree[1])}){b}{tree[2]}{b}{self._value(tree[3])}"
        if head == "range":
            _, low, left, name, right, high = tree
            return f"{self._value(low)}{b}{left}{b}{self._name(name)}{right}{b}{self._value(high)}"
        if head == "in":
            values = f"{b},{b}".join(self._value(value, bare=True) for value in tree[2])
            return f"{self._name(tree[1])} {self._case('in')}{b}({values})"
        if self._draw(st.booleans()) and head in _MIRRORED:
            return f"{self._value(tree[2])}{b}{_MIRRORED[head]}{b}{self._name(tree[1])}"
        sign = self._one_of(*{"=": ("=", "=="), "!=": ("!=", "<>")}.get(head, (head,)))
        return f"{self._name(tree[1])}{b}{sign}{b}{self._value(tree[2], bare=head in ('=', '!='))}"

    def _name(self, name: str) -> str:
        return name if len(name) == 1 and self._draw(st.booleans()) else f"`{name}`"

    def _value(self, value: Value, *, bare: bool = False) -> str:
        if isinstance(value, bool):
            return self._case(str(value).lower())
        if isinstance(value, float):
            return self._one_of(repr(value), f"{value:+.17e}", f"{value:.17E}")
        if bare and value in ("on", "off", "Ünit"):
            return value
        quote = self._one_of("'", '"')
        return quote + value.replace(quote, quote * 2) + quote
