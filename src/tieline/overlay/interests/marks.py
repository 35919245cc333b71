"""What brokers say of themselves among what they want: entries that no client can ask for, and by which nobody routes.

A broker that has *declared* what may be published at it says so with one mark, and one for each filter of that.  Who
tells it no more than can be met by this says with a mark which declaration that went by.  Marks are told like groups:
nothing covers them, and nothing wider ever stands in their place.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from tieline.overlay.interests.entries import OF_ITSELF, Entry

_PUBLISHES: Final = f"{OF_ITSELF}publishes"
_KNOWS: Final = f"{OF_ITSELF}knows"
#: The share name of the former.
_ALL: Final = "all"


def is_mark(entry: Entry) -> bool:
    """Whether an entry says something of the broker itself, and wants nothing."""
    return bool(entry.share) and entry.filter.startswith(OF_ITSELF)


def declaration(filters: Iterable[str] | None) -> frozenset[Entry]:
    """The marks of a broker where only topics of these filters are published; none if everything may be."""
    if filters is None:
        return frozenset()
    return frozenset([Entry(_PUBLISHES, _ALL), *(Entry(f"{_PUBLISHES}/{filter_}", _ALL) for filter_ in filters)])


def declared(entries: Iterable[Entry]) -> frozenset[str] | None:
    """The filters that a broker has declared by its marks; None if everything may be published at it."""
    marks = [entry.filter for entry in entries if entry.share == _ALL and entry.filter.startswith(_PUBLISHES)]
    if _PUBLISHES not in marks:
        return None
    return frozenset(mark.removeprefix(f"{_PUBLISHES}/") for mark in marks if mark != _PUBLISHES)


def knowledge(broker: str, filters: frozenset[str] | None) -> Entry:
    """The mark of who goes by what a broker has declared, or by its having declared nothing."""
    text = "" if filters is None else "\0".join(("declared", *sorted(filters)))
    return Entry(f"{_KNOWS}/{_digest(text)}", _digest(broker))


def is_knowledge(entry: Entry) -> bool:
    """Whether a mark says by what somebody goes."""
    return bool(entry.share) and entry.filter.startswith(f"{_KNOWS}/")


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
