"""The policies that are nothing but an order: fifo, taxonomy, strict, heat, edf."""

from __future__ import annotations

from typing import TypeVar

from tieline.sched.levels import URGENT
from tieline.sched.policy import Ranked
from tieline.sched.ranking import Key
from tieline.sched.waiting import Flow

E = TypeVar("E")


class Fifo(Ranked[E]):
    """In the order of arrival: what every other broker does."""

    name = "fifo"

    def key(self, flow: Flow[E]) -> Key:
        """First come, first served."""
        return (flow.head.order,)


class Taxonomy(Ranked[E]):
    """By the importance that topic rules give to the content, first come first served inside it.

    The comparison of the heat paper: classes are fixed by the operator, nothing a publisher says moves a message.
    """

    name = "taxonomy"

    def key(self, flow: Flow[E]) -> Key:
        """Class by rule, then arrival."""
        return (-flow.head.taxon, flow.head.order)


class Strict(Ranked[E]):
    """Highest level first, first come first served inside a level, no floor."""

    name = "strict"

    def key(self, flow: Flow[E]) -> Key:
        """The more urgent level first, and first come, first served inside it."""
        return (-flow.level, flow.head.order)


class Heat(Ranked[E]):
    """The heat paper's order: urgent above all, then topics with more subscribers, then shallower ones."""

    name = "heat"

    def key(self, flow: Flow[E]) -> Key:
        """Urgent, heat, depth, arrival."""
        head = flow.head
        return (-(flow.level == URGENT), -head.heat, head.depth, head.order)


class Edf(Ranked[E]):
    """Earliest deadline first: arrival plus the class's deadline."""

    name = "edf"
    has_floor = True  # an old message's deadline comes before that of every newer one

    def key(self, flow: Flow[E]) -> Key:
        """The earliest deadline first, then whatever came first."""
        head = flow.head
        return (head.since + self.rules.classes[flow.level].deadline_s, head.order)
