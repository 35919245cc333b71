"""Where a reader stands in the logs of several brokers, as Spark keeps it in its checkpoint, and how far it may go.

Spark stores an offset as JSON and compares texts, so the same place is always written the same way: brokers in the
order of their names.  Beside the offsets stands when each broker's store was made, because offsets of another store
mean other records::

    {"edge": 48031, "south": 120, "$created": {"edge": 1731650000.5, "south": 1731650411.25}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

CREATED: Final = "$created"


class Place(NamedTuple):
    """An offset of one broker's log."""

    offset: int
    created: float


#: A place for each broker, by its name.
Places = dict[str, Place]


def encode(places: Mapping[str, Place]) -> dict[str, Any]:
    """As Spark keeps it."""
    names = sorted(places)
    return {**{name: places[name].offset for name in names}, CREATED: {name: places[name].created for name in names}}


def decode(kept: Mapping[str, Any]) -> Places:
    """What Spark kept."""
    return {name: Place(offset, kept[CREATED][name]) for name, offset in kept.items() if name != CREATED}


def shards(kept: Mapping[str, Any] | str | None) -> dict[str, int]:
    """Offsets by broker from what a query's progress reports as ``startOffset``, ``endOffset`` or ``latestOffset``."""
    said = json.loads(kept) if isinstance(kept, str) else kept
    return {name: offset for name, offset in (said or {}).items() if name != CREATED}


def spread(waiting: Mapping[str, int], limit: int) -> dict[str, int]:
    """Share a limit among brokers, evenly; what one cannot use goes to the others.

    No broker gets more than waits there, and none gets less than another unless it has less.  What does not divide goes
    to those with the longest queues, so that a limit below the number of brokers starves nobody.
    """
    shares = dict.fromkeys(waiting, 0)
    hungry = sorted((name for name, count in waiting.items() if count > 0), key=lambda name: (-waiting[name], name))
    while limit > 0 and hungry:
        # less than one for each: the first ones get it
        each, takers = (limit // len(hungry), hungry) if limit >= len(hungry) else (1, hungry[:limit])
        for name in takers:
            more = min(each, waiting[name] - shares[name])
            shares[name] += more
            limit -= more
        hungry = [name for name in hungry if shares[name] < waiting[name]]
    return shares
