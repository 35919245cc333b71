"""Filters with ``%u`` and ``%c`` in them: what they come to for one user and one client id.

Theory of operation
-------------------
A name stands inside one level.  One that holds a wildcard or a separator would reach further than the rule's author
wrote (mosquitto had to learn this: CVE-2017-7650), so it is never filled in.  What happens instead errs on the safe
side: a filter that allows matches nothing, and one that denies matches every name in that place.  Nor does a name make
a filter begin with ``$`` that did not: ``%c/#`` does not allow ``$SYS/#`` to a client of that name.
"""

from __future__ import annotations

import re
from typing import Final

_PLACEHOLDER: Final = re.compile(r"%[uc]")
#: What must not be in a name that is filled in: it would be more than one literal level.
_DANGEROUS: Final = frozenset("+#/\0")


def is_pattern(filter_: str) -> bool:
    """Whether a filter depends on who asks."""
    return _PLACEHOLDER.search(filter_) is not None


def narrow(filter_: str, user: str | None, client_id: str) -> str | None:
    """The filter as it allows: None when it comes to nothing."""
    filled = _filled(filter_, user, client_id)
    # topics that begin with $ are the broker's own, and are reached only by who writes the sign into a rule
    return None if filled is not None and filled[:1] == "$" != filter_[:1] else filled


def _filled(filter_: str, user: str | None, client_id: str) -> str | None:
    """A filter, or one level of it, with its names; None when one of them cannot be filled in."""
    if filter_ == "%c":
        return client_id if _is_plain(client_id) else None
    names = {"%u": user, "%c": client_id}
    if any(not _is_plain(names[found]) for found in _PLACEHOLDER.findall(filter_)):
        return None
    # in one pass: a name that looks like a placeholder is not filled in again
    return _PLACEHOLDER.sub(lambda found: names[found.group()] or "", filter_)


def wide(filter_: str, user: str | None, client_id: str) -> str:
    """The filter as it denies: a level whose name cannot be filled in stands for all."""
    return "/".join(_filled(level, user, client_id) or ("+" if level else "") for level in filter_.split("/"))


class Pattern:
    """A filter with placeholders, compared with topics: level by level, without being written out for each client."""

    __slots__ = ("_is_wild", "_names", "general")

    def __init__(self, filter_: str) -> None:
        levels = filter_.split("/")
        #: The levels in which a name stands, and what stands there.
        self._names = tuple((place, level) for place, level in enumerate(levels) if is_pattern(level))
        #: The filter in which any name may stand there: what it does not match, no client's filter matches.
        self.general = "/".join("+" if is_pattern(level) else level for level in levels)
        self._is_wild = filter_[:1] in ("+", "#")

    def matches(self, topic: list[str], user: str | None, client_id: str, *, is_allowed: bool) -> bool:
        """Whether the filter as it acts for one client matches a topic, by its levels, that the general one matches."""
        is_hidden = topic[0][:1] == "$"
        if is_hidden and self._is_wild:
            return False
        for place, level in self._names:
            if is_allowed and is_hidden and not place:
                # as for a filter that is written out: no name makes it one that begins with $
                return False
            name = _filled(level, user, client_id)
            if name is None:
                # one that allows comes to nothing; one that denies stands for all, as a wildcard does
                if is_allowed or (is_hidden and not place):
                    return False
            elif name != topic[place]:
                return False
        return True


def _is_plain(name: str | None) -> bool:
    return bool(name) and _DANGEROUS.isdisjoint(name or "")
