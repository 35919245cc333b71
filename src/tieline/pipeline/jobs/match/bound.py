"""Subscriptions on one event type, made ready for many processes: boxes as arrays, conditions beside them.

Theory of operation
-------------------
What a condition needs is decided as in a broker (:mod:`tieline.match.conditions`), once, by the driver.  A
:class:`BoundSubscriptions` object is plain data, which Spark carries to the workers; they make indexes of it
(:mod:`tieline.pipeline.jobs.match.search`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pickle import dumps

import numpy as np
from numpy.typing import NDArray

from tieline.match.box import Box
from tieline.match.conditions import narrow
from tieline.match.cover.filters import covers, overlap
from tieline.match.events import Attribute, EventType
from tieline.match.where import Predicate
from tieline.pipeline.jobs.match.subscriptions import NoSubscription, Subscription

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FilterWants:
    """What all subscriptions with one topic filter want."""

    filter: str
    #: The numbers of those without a condition.
    everything: NDArray[np.int64]
    #: Those with boxes: their numbers, and the boxes ``lo[i]`` to ``hi[i]`` of the member ``owners[i]``.
    members: NDArray[np.int64]
    owners: NDArray[np.int64]
    lo: Floats
    hi: Floats
    #: Members whose boxes are not their whole condition, and the condition.
    unsure: Mapping[int, Predicate]
    #: By number: conditions that no box narrows.
    scanned: Mapping[int, Predicate]


@dataclass(frozen=True, slots=True, eq=False)
class BoundSubscriptions:
    """Everything that a worker needs to know about the subscriptions on one event type.

    They are compared by a digest: a worker that is given the same ones again need not look at a thousand boxes.
    """

    event: str
    attributes: tuple[Attribute, ...]
    #: By number: what the subscriptions are called.
    ids: tuple[str, ...]
    wanted: tuple[FilterWants, ...]
    #: By position of a category: the numbers of the values that conditions name.
    codes: Mapping[int, Mapping[str, float]]
    #: Whether an answer depends on earlier messages of the same topic.
    is_stateful: bool
    #: A topic of the type, if all filters match all of them, so that nobody has to look at topics; None otherwise.
    any_topic: str | None
    digest: bytes = b""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundSubscriptions) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def bind_all(
    subscriptions: Sequence[Subscription], event: EventType, *, only_declared: bool = False
) -> BoundSubscriptions:
    """Bind subscriptions to an event type; those that no topic of the type can meet are left out.

    ``only_declared`` refuses conditions on attributes that the type does not declare: tables do not keep them.
    """
    met = [(number, each) for number, each in enumerate(subscriptions) if overlap(each.filter, event.topic)]
    if only_declared:
        _refuse_undeclared([each for _number, each in met], event)
    by_filter: dict[str, list[tuple[int, Subscription]]] = {}
    for number, each in met:
        by_filter.setdefault(each.filter, []).append((number, each))
    wanted = tuple(_wanted(filter_, some, event) for filter_, some in by_filter.items())
    bound = BoundSubscriptions(
        event=event.name,
        attributes=event.attributes,
        ids=tuple(each.id for each in subscriptions),
        wanted=wanted,
        codes={
            position: event.named_values(each.name)
            for position, each in enumerate(event.attributes)
            if each.kind == "category"
        },
        is_stateful=any(each.is_stateful for _number, each in met),
        any_topic=_name(event.topic) if all(covers(each.filter, event.topic) for _number, each in met) else None,
    )
    return replace(bound, digest=blake2b(dumps(bound), digest_size=16).digest())


def within_reach(
    subscriptions: Iterable[Subscription], event: EventType
) -> tuple[list[Subscription], list[Subscription]]:
    """Those whose condition a table of this event type can decide, and those that it can never meet.

    A condition that asks for nothing that the type declares holds for no row of its table.  One that asks for some of
    what it declares and for more is among the first: whether it holds cannot be said of a table, so binding refuses it.
    """
    able: list[Subscription] = []
    unable: list[Subscription] = []
    for each in subscriptions:
        names = () if each.predicate is None else each.predicate.names
        is_beyond = bool(names) and event.position.keys().isdisjoint(names)
        (unable if is_beyond and overlap(each.filter, event.topic) else able).append(each)
    return able, unable


def _wanted(filter_: str, some: Iterable[tuple[int, Subscription]], event: EventType) -> FilterWants:
    dimensions = len(event.attributes)
    plain: list[int] = []
    members: list[int] = []
    owners: list[int] = []
    boxes: list[Box] = []
    unsure: dict[int, Predicate] = {}
    scanned: dict[int, Predicate] = {}
    for number, each in some:
        if each.predicate is None:
            plain.append(number)
            continue
        narrowed = narrow(each.predicate, event)
        if narrowed.boxes is None:
            scanned[number] = narrowed.condition
            continue
        if not narrowed.is_exact:
            unsure[len(members)] = narrowed.condition
        owners += [len(members)] * len(narrowed.boxes)
        boxes += narrowed.boxes
        members.append(number)
    return FilterWants(
        filter_,
        np.array(plain, np.int64),
        np.array(members, np.int64),
        np.array(owners, np.int64),
        np.array([box.lo for box in boxes], np.float64).reshape(len(boxes), dimensions),
        np.array([box.hi for box in boxes], np.float64).reshape(len(boxes), dimensions),
        unsure,
        scanned,
    )


def _name(filter_: str) -> str:
    """One of the topics that a filter matches."""
    return "/".join("x" if level in ("+", "#") else level for level in filter_.split("/"))


def _refuse_undeclared(subscriptions: Iterable[Subscription], event: EventType) -> None:
    for each in subscriptions:
        for name in () if each.predicate is None else each.predicate.names:
            if name not in event.position:
                raise NoSubscription(
                    f'"{each.id}" asks for {name}, which the event type {event.name} does not declare: tables hold '
                    "what is declared. Ask the log instead."
                )
