"""Answers that must not be longer than something: their longest lists are halved until they fit, and they say so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any  # Any: values of JSON

import msgspec


def fitting(found: dict[str, Any], lists: Sequence[str], longest: int) -> bytes | None:
    """An answer as JSON of at most so many bytes, its lists shortened (``is_cut``); None if that is not enough."""
    data = msgspec.json.encode(found)
    while len(data) > longest:
        name = max(lists, key=lambda each: len(found.get(each, ())) if isinstance(found.get(each), list) else 0)
        kept = found.get(name)
        if not isinstance(kept, list) or not kept:
            return None
        found = {**found, name: kept[: len(kept) // 2], "is_cut": True}
        data = msgspec.json.encode(found)
    return data
