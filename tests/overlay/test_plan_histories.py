"""Histories by seed in which plans are installed and replaced while messages are under way, and brokers are at odds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from random import Random
from typing import Any, Final  # Any: what the kit makes a broker of

import pytest

from tests.kits.check_overlay import FAULTS_S, Kind, check_overlay
from tests.overlay.test_histories import FAULTY, _node
from tieline.core.timers import Timers
from tieline.overlay.node import Node
from tieline.overlay.strategies import STRATEGIES
from tieline.overlay.strategies.path import Path
from tieline.overlay.strategies.plan import Plan
from tieline.overlay.strategies.plan_tables import Own, PlanEntry, PlanTable, PlanTables

_TOPICS = (b"grid/a/v", b"grid/a/i", b"grid/b/v", b"site/1", b"alarm/fire")  # and one that no plan has
_REPLANS = 6
#: Within so many seconds all brokers have a plan, each at a time of its own, and go by it.
_APART_S = 0.5


#: The part of one broker in a plan.
Part = Callable[[Node, int], PlanTable]


class Replanned:
    """Makes brokers that are given six plans in a history, each of them when it happens to be."""

    def __init__(self, part: Part, early_s: float) -> None:
        """``early_s`` is how long before it was installed everywhere an origin may go by a plan."""
        self._part = part
        self._early_s = early_s
        self.nodes: list[Node] = []

    def __call__(self, *args: Any) -> Node:
        tables = PlanTables()
        node = _node(lambda membership, counts: Plan(membership, counts, tables), *args)
        name, _ends, _deliver, timers, incarnation, _life = args
        random = Random(f"{name} {incarnation}")
        node.carrier.sender.plan_of = lambda text: tables.find(text.split(b"|")[1], "")
        self._schedule(node, tables, timers, random)
        self.nodes.append(node)
        return node

    def _schedule(self, node: Node, tables: PlanTables, timers: Timers, random: Random) -> None:
        def begin(now: float) -> None:
            for epoch in range(1, _REPLANS + 1):
                at = now + FAULTS_S * epoch / (_REPLANS + 1) + random.uniform(0, _APART_S)
                timers.at(at, partial(self._install, node, tables, epoch))
                # origins go by it when all have it, or too early
                timers.at(at + _APART_S - random.uniform(0, self._early_s), partial(_use, tables, epoch))

        timers.soon(begin)

    def _install(self, node: Node, tables: PlanTables, epoch: int, now: float) -> None:
        tables.install(self._part(node, epoch))


def _use(tables: PlanTables, epoch: int, now: float) -> None:
    tables.use(epoch)


def tree(node: Node, epoch: int) -> PlanTable:
    """A tree by lot for each origin and topic, the same for all brokers that know of the same links."""
    names, membership = node.directory.names, node.membership
    links = sorted(sorted((names[one], names[other])) for _cost, one, other in membership.links())
    entries = []
    for origin, name in names.items():
        for topic in range(1, len(_TOPICS) + 1):
            random = Random(f"{epoch} {name} {topic}")
            before, rest = {name: name}, [*links]
            random.shuffle(rest)
            while fits := [pair for pair in rest if (pair[0] in before) != (pair[1] in before)]:
                one, other = fits[0] if fits[0][0] in before else reversed(fits[0])
                before[other] = one
            for destination in before:
                way = [destination]
                while way[-1] != name:
                    way.append(before[way[-1]])
                if node.name in way[1:]:
                    neighbour = way[way.index(node.name) - 1]
                    entries.append(PlanEntry(origin, topic, node.number_of(destination), node.number_of(neighbour)))
    return PlanTable(epoch, entries, _OWN)


def lot(node: Node, epoch: int) -> PlanTable:
    """For every topic and destination that is known some neighbour, or none, as the lot falls."""
    random = Random(f"{node.name} {epoch}")
    peers, brokers = [*node.links], [*node.directory.names]
    topics = range(1, len(_TOPICS) + 1)
    entries = [
        PlanEntry(origin, topic, destination, random.choice(peers))
        for origin in brokers
        for topic in topics
        for destination in brokers
        if peers and random.random() < 0.8
    ]
    return PlanTable(epoch, entries, _OWN)


_OWN: Final = [Own(number, name, None) for number, name in enumerate(_TOPICS, 1)]


def _check(make: Replanned, kind: Kind, seeds: Iterable[int], **more: Any) -> Counter[str]:
    """Histories under plans, and what their brokers have counted."""
    assert check_overlay(make, kind, seeds, **more) > 100
    return sum((Counter(asdict(node.counts)) for node in make.nodes), Counter())


@pytest.mark.parametrize("kind", Kind)
def test_nothing_is_lost_doubled_or_out_of_order_while_plans_change(kind: Kind) -> None:
    counts = _check(Replanned(tree, 0.0), kind, range(5))
    assert counts["planned"] > 100
    assert counts["plan_uncovered"] > 0
    if kind is Kind.CALM:
        assert not counts["plan_loops"] + counts["plan_unknown"] + counts["plan_links_down"]


@pytest.mark.parametrize("kind", FAULTY)
def test_nor_by_plans_that_make_no_sense_and_come_too_late(kind: Kind) -> None:
    counts = _check(Replanned(lot, 2 * _APART_S), kind, range(4))
    assert counts["plan_loops"] > 0


def test_what_cannot_go_by_the_plan_is_counted_by_its_reason() -> None:
    counts = _check(Replanned(tree, 2 * _APART_S), Kind.LINKS, range(6))
    assert counts["plan_links_down"] > 0
    assert counts["plan_unknown"] > 0


@pytest.mark.parametrize("kind", FAULTY)
def test_nor_where_strategies_change_as_well(kind: Kind) -> None:
    _check(Replanned(tree, 0.0), kind, range(2), switching=(*STRATEGIES.values(), Plan, Path))


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAULTY)
@pytest.mark.parametrize("part", [tree, lot])
def test_six_hundred_histories_with_six_plans_each(part: Part, kind: Kind) -> None:
    _check(Replanned(part, 2 * _APART_S), kind, range(600))
