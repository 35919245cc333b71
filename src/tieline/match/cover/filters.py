"""Topic filters compared as sets of topic names: which covers which, which overlap.

Theory of operation
-------------------
Filters are well-formed and bare, without ``$share/name/``.  Two of MQTT's rules make different filters match the same
names.  A ``#`` stands for no level too, so ``+/#`` is ``#``; and no name is empty, so the parent that ``/#`` would
include does not exist, and ``/+/#`` is ``/#``.  :func:`canonical` spells both as the longer one.  After that, a filter
that ends in ``#`` wants exactly the names with at least as many levels as stand before the ``#``, and every question is
answered level by level: a ``+`` covers every level, a literal only itself, because there are always more names than
the literals that somebody wrote down.  Two filters match the same names exactly if their canonical forms are equal.
"""

from __future__ import annotations

from typing import Final

#: Filters whose shortest name is longer than the levels in front of their ``#``, and what says so.
_LONGER: Final = {"#": "+/#", "/#": "/+/#"}


def canonical(filter: str) -> str:
    """The one spelling of all filters that match the same names."""
    return _LONGER.get(filter, filter)


def covers(one: str, other: str) -> bool:
    """Whether the first filter matches every name that the second one matches."""
    if _is_hidden(one, other):
        return False
    wide, is_wide_open = _levels(one)
    narrow, is_narrow_open = _levels(other)
    if len(wide) != len(narrow) and not (is_wide_open and len(wide) < len(narrow)):
        return False
    if is_narrow_open and not is_wide_open:
        return False
    return all(level in ("+", below) for level, below in zip(wide, narrow, strict=False))


def overlap(one: str, other: str) -> bool:
    """Whether some name is matched by both filters."""
    if _is_hidden(one, other) or _is_hidden(other, one):
        return False
    first, is_first_open = _levels(one)
    second, is_second_open = _levels(other)
    if not (
        len(first) == len(second)
        or (is_first_open and len(first) < len(second))
        or (is_second_open and len(second) < len(first))
    ):
        return False
    return all(a == b or "+" in (a, b) for a, b in zip(first, second, strict=False))


def _is_hidden(wild: str, filter: str) -> bool:
    """Whether the names of a filter all begin with $, which a leading wildcard does not see [MQTT-4.7.2-1]."""
    return filter[:1] == "$" and wild[:1] in ("+", "#")


def _levels(filter: str) -> tuple[list[str], bool]:
    """The levels in front of a ``#``, and whether there is one; names have at least that many levels."""
    levels = canonical(filter).split("/")
    if levels[-1] == "#":
        levels.pop()
        return levels, True
    return levels, False
