"""Hypothesis strategies for topic names and filters from so few levels that they meet often."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

_NAMES: Final = ("a", "b", "", "$a", "$SYS")

_levels: Final = st.lists(st.sampled_from(_NAMES), min_size=1, max_size=4)
_wild_levels: Final = st.lists(st.sampled_from((*_NAMES, "+", "+")), max_size=4)

#: Topic names: empty levels, and a ``$`` at the beginning and elsewhere, included.
names: Final = _levels.map("/".join).filter(bool)
#: Topic filters, one in two ending in ``#``.
filters: Final = (
    st.tuples(_wild_levels, st.booleans())
    .map(lambda made: "/".join([*made[0], "#"] if made[1] else made[0]))
    .filter(bool)
)
