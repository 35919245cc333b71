"""What the ring paper compares conditions with: topics, and constraints that are sent one after the other.

As its section IV-A has it: the publication goes to everybody in the topic's group; those who match what they have been
sent inform the publisher, which sends the next constraint to them alone, and so on.  So each constraint costs an answer
and a message for everybody who has matched all earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from tieline.overlay.ring.events import Event, RingSubscription


def messages(
    subscriptions: Sequence[Sequence[RingSubscription]], event: Event, constraints: int, publisher: int
) -> int:
    """How many messages a publication takes with so many constraints; everybody who wants anything is in the group."""
    group = [asked for number, asked in enumerate(subscriptions) if asked and number != publisher]
    found = len(group)
    for constraint in range(constraints):
        matched = sum(_matches(asked, event, constraint) for asked in group)
        found += 2 * matched
    return found


def _matches(subscriptions: Sequence[RingSubscription], event: Event, constraints: int) -> bool:
    """Whether somebody who asks for all this matches the first constraints of an event."""
    point = event.point[:constraints]
    return any(
        one.box is None
        or all(low <= value <= high for low, value, high in zip(one.box.lo, point, one.box.hi, strict=False))
        for one in subscriptions
    )
