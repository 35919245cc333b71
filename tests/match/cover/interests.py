"""Hypothesis strategies for interests that often cover each other, and what is sampled to compare them."""

from __future__ import annotations

import itertools
from typing import Final

from hypothesis import strategies as st

from tests.match.topics import filters
from tieline.match.box import ANY, GREATEST, LEAST, MISSING, Box, above, below
from tieline.match.cover.interests import Interest
from tieline.wire.topics import matches

#: Every topic name of up to three levels made of these; "other" is the level that no filter of the tests names.
NAMES: Final = [
    "/".join(levels)
    for depth in (1, 2, 3)
    for levels in itertools.product(("a", "b", "", "$a", "$SYS", "other"), repeat=depth)
    if levels != ("",)
]

#: Every topic filter of up to three levels made of these.
FILTERS: Final = [
    "/".join(levels)
    for depth in (1, 2, 3)
    for levels in itertools.product(("a", "", "$a", "+", "#"), repeat=depth)
    if "#" not in levels[:-1] and levels != ("",)
]

_ENDS: Final = (0.0, 1.0, 2.0, 3.0)
_ends: Final = st.sampled_from(_ENDS)
_intervals: Final = st.one_of(
    st.tuples(_ends, _ends).map(lambda ends: (min(ends), max(ends))),
    st.tuples(_ends, _ends).map(lambda ends: (min(ends), above(max(ends)))),
    st.sampled_from((ANY, ANY, (LEAST, 1.0), (LEAST, below(1.0)), (2.0, GREATEST))),
)


def boxes(dimensions: int) -> st.SearchStrategy[Box]:
    """Boxes whose ends often coincide, or nearly."""
    return st.lists(_intervals, min_size=dimensions, max_size=dimensions).map(
        lambda sides: Box(tuple(lo for lo, _ in sides), tuple(hi for _, hi in sides))
    )


def _interests(filters: st.SearchStrategy[str]) -> st.SearchStrategy[Interest]:
    return st.one_of(
        st.builds(Interest, filters),
        st.builds(Interest, filters, st.just("one"), boxes(1)),
        st.builds(Interest, filters, st.just("two"), boxes(2)),
        st.builds(Interest, filters, st.just("two"), boxes(2)),
    )


#: Interests of every kind, under filters of every kind.
interests: Final = _interests(filters)
#: Interests under so few filters that most of them are compared by their boxes.
crowded: Final = _interests(st.sampled_from(("a/b", "a/+", "a/#", "#", "+/#", "$SYS/#")))

#: Interests most of which cover each other, many deep.
nested: Final = st.builds(
    lambda filter, radius, shift: Interest(filter, "one", Box((shift - radius,), (shift + radius,))),
    st.sampled_from(("a/b", "a/b", "a/+")),
    st.integers(0, 6).map(float),
    st.sampled_from((0.0, 0.0, 1.0)),
)

#: Values on and beside every end that a box can have, the ends of all numbers, and none.
_VALUES: Final = (LEAST, *_ENDS, *(above(end) for end in _ENDS), below(1.0), GREATEST, MISSING)
#: What a payload is read as: a type and a row, or None and nothing where it cannot be read.
_READINGS: Final[list[tuple[str | None, tuple[float, ...]]]] = [
    (None, ()),
    *(("one", (value,)) for value in _VALUES),
    *(("two", values) for values in itertools.product(_VALUES, repeat=2)),
]
#: Messages: a topic and a reading.
MESSAGES: Final = [
    (name, event, row)
    for name in ("a", "a/b", "a/", "a/other", "b/a", "other", "$SYS/a", "/", "a/b/a")
    for event, row in _READINGS
]


def wants(interest: Interest, message: tuple[str, str | None, tuple[float, ...]]) -> bool:
    """Whether a message is of interest, from the definition."""
    topic, event, row = message
    if not matches(interest.filter, topic):
        return False
    return interest.box is None or (interest.event == event and interest.box.contains(row))
