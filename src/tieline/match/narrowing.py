"""How the messages that a condition asks for are found: by boxes alone, by boxes and an evaluation, or by evaluation.

Whoever keeps conditions in an index asks here: the broker (:mod:`tieline.match.conditions`) and the jobs that replay
subscriptions over tables.  The condition is the meaning; boxes only say where to look.
"""

from __future__ import annotations

from typing import NamedTuple

from tieline.match.box import Box, everything
from tieline.match.events import CodesExhausted, EventType
from tieline.match.where import Predicate, bind, understood


class Narrowed(NamedTuple):
    """A condition on the messages of one event type."""

    #: In the words of the event type: its timestamps, for one, are numbers.
    condition: Predicate
    #: Whatever is asked for lies in one of them; none at all if nothing can be.  None if no box would keep anything
    #: out, so that the condition is evaluated for every message.
    boxes: tuple[Box, ...] | None
    #: Whether everything in the boxes is asked for; otherwise the condition is evaluated for what lies in them.
    is_exact: bool


def narrow(predicate: Predicate, event: EventType) -> Narrowed:
    """What is known about a condition before any message comes."""
    try:
        bound = bind(predicate, event)
    except CodesExhausted:  # more categories are named than have numbers
        return Narrowed(understood(predicate, event), None, is_exact=False)
    dimensions = len(event.attributes)
    is_open = not bound.is_exact and bound.boxes == (everything(dimensions),)
    if not dimensions or is_open:
        return Narrowed(bound.predicate, None, is_exact=False)
    return Narrowed(bound.predicate, bound.boxes, bound.is_exact)
