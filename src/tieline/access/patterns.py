"""Filters with ``%u`` and ``%c`` in them: what they come to for one user and one client id.

Theory of operation
-------------------
A name stands inside one level.  One that holds a wildcard or a separator would reach further than the rule's author
wrote (mosquitto had to learn this: CVE-2017-7650), so it is never filled in.  What happens instead errs on the safe
side: a filter that allows matches nothing, and one that denies matches every name in that place.
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


def has_client_id(filter_: str) -> bool:
    """Whether a filter depends on the client id."""
    return "%c" in filter_


def narrow(filter_: str, user: str | None, client_id: str) -> str | None:
    """The filter as it allows: None when it comes to nothing."""
    names = {"%u": user, "%c": client_id}
    if any(not _is_plain(names[found]) for found in _PLACEHOLDER.findall(filter_)):
        return None
    # in one pass: a name that looks like a placeholder is not filled in again
    return _PLACEHOLDER.sub(lambda found: names[found.group()] or "", filter_)


def wide(filter_: str, user: str | None, client_id: str) -> str:
    """The filter as it denies: a level whose name cannot be filled in stands for all."""
    return "/".join(narrow(level, user, client_id) or ("+" if level else "") for level in filter_.split("/"))


def _is_plain(name: str | None) -> bool:
    return bool(name) and _DANGEROUS.isdisjoint(name or "")
