"""What ``tieline bench plan`` runs: the paper's sizes, large networks, re-planning, bounds, brokers among themselves.

``cases.py`` says how much is measured and in which order, ``measures.py`` and ``bounds.py`` do it; ``suite.py`` says
what the numbers mean, are to reach, and look like.
"""

from __future__ import annotations

from typing import Final

#: The parts of the benchmark; whoever asks for their names does not need what they measure.
PARTS: Final = {
    "sizes": "the paper's sizes: proven optimality, beside the naive model on the same solver",
    "found": "other instances of the two largest of these sizes: when the best plan that is known was there",
    "networks": "larger meshes: the proven gap after a given time",
    "first": "a very large mesh: the time to the first plan that keeps every limit",
    "replan": "a link fails: re-planning from the old plan, beside a cold start",
    "bounds": "small instances at random: whether every bound is one",
    "distributed": "brokers among themselves: distance to the central plan, messages",
}
