"""Every policy that can be configured, by its name; here are those that are nothing but an order.

The default, which also keeps a promise to the levels below, has a file of its own (:mod:`tieline.sched.feedback`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar  # Any: a policy orders whatever waits

from tieline.sched.feedback import Feedback
from tieline.sched.levels import URGENT, Rules
from tieline.sched.policy import Policy, Ranked
from tieline.sched.waiting import Flow, Key

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


POLICIES: Final[dict[str, Callable[[Rules | None], Policy[Any]]]] = {
    Edf.name: Edf,
    Feedback.name: Feedback,
    Fifo.name: Fifo,
    Heat.name: Heat,
    Strict.name: Strict,
    Taxonomy.name: Taxonomy,
}


def names() -> list[str]:
    """The policies, in alphabetical order."""
    return sorted(POLICIES)


def make(name: str, rules: Rules | None = None) -> Policy[Any]:
    """A policy by its name."""
    return POLICIES[name](rules)
