"""An interest: the topics somebody wants messages of, and what the messages must say.

A subscription whose predicate is a union of several boxes is several interests.  Covering is pairwise: one interest
covers another if it alone does.  Whether a *set* of boxes covers a box is a co-NP complete question, and the answer
would only save a few forwarded subscriptions; pairwise covering never loses anything, it may only forward more.
"""

from __future__ import annotations

from dataclasses import dataclass

from tieline.match.box import Box
from tieline.match.cover.filters import canonical, covers, overlap


@dataclass(frozen=True, slots=True)
class Interest:
    """A topic filter, and either no condition or a box over the attributes of an event type.

    Event and box come together.  A box without a condition is not the same as no box: it wants no message that cannot
    be read as an event of its type.
    """

    filter: str
    event: str | None = None
    box: Box | None = None

    def __post_init__(self) -> None:
        if (self.event is None) != (self.box is None):
            raise ValueError("an interest in content names an event type and a box, another one neither")
        if self.box is not None and self.box.is_empty:
            raise ValueError("a box without a point is no interest")

    @property
    def canonical(self) -> Interest:
        """The one spelling of all interests in the same messages."""
        filter = canonical(self.filter)
        return self if filter == self.filter else Interest(filter, self.event, self.box)

    def covers(self, other: Interest) -> bool:
        """Whether everything the other one wants is wanted by this one."""
        if self.box is not None and (other.box is None or self.event != other.event or not self.box.covers(other.box)):
            return False
        return covers(self.filter, other.filter)

    def overlaps(self, other: Interest) -> bool:
        """Whether some message may be wanted by both.

        Of two event types it is not known whether a message can be read as both, so the filters alone decide.
        """
        if self.box is not None and other.box is not None and self.event == other.event:
            return self.box.meets(other.box) and overlap(self.filter, other.filter)
        return overlap(self.filter, other.filter)
