"""What the paper leaves for later, planned exactly: rates that may rise, several sources, clients that are attached.

*Rates*: each topic may send half as much again, any number of topics at once or a few; a plan has room for that, and is
then tried with rates at random.  *Sources*: every second topic can come from another publisher, too.  *Attachment*:
each client sees its three nearest brokers and may use one of them; the plan chooses, or distance does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from tieline.bench.papers.frame import drawing, verdicts
from tieline.bench.papers.frame.declaration import Claim, Panel, Request, Tables
from tieline.bench.papers.frame.table import Cell, Table
from tieline.plan.flaws import checked
from tieline.plan.generate.testset import paper
from tieline.plan.instance import Instance, Link, Node
from tieline.plan.plan import Plan
from tieline.plan.solve import solve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE: Final = "case3"
#: So many topics may rise at once; all is written as their number.
ROBUST: Final = (0, 1, 2, 6)
RISE: Final = 0.5
TIGHTNESS: Final = 1.2
#: Where another broker is to make a difference, something has to be unmet without it.
SCARCE: Final = 0.6
_TRIED: Final = 500
_CHANCE: Final = 0.3
_SEEN: Final = 3
ATTACHED: Final = ("nearest broker", "by the plan", "any number of brokers")


def measure(request: Request) -> list[Table]:
    """All three, on the same instances."""
    robust: list[tuple[Cell, ...]] = []
    sources: list[tuple[Cell, ...]] = []
    attached: list[tuple[Cell, ...]] = []
    request.state("size", _SIZE)
    request.state("tightness", TIGHTNESS, note="rates, sources")
    request.state("tightness", SCARCE, note="attachment")
    request.state("rates may rise by", f"{RISE:.0%}")
    request.state("tries with rates at random", _TRIED, note=f"each rate has risen with a chance of {_CHANCE:g}")
    request.state("brokers that a client sees", _SEEN)
    for seed in request.seeds(quick=3, full=8):
        bare = paper(_SIZE, seed=seed, tightness=TIGHTNESS)
        scarce = paper(_SIZE, seed=seed, tightness=SCARCE)
        for most in ROBUST:
            request.step(f"rates, at most {most} topics rise, seed {seed}")
            instance = _rising(bare, most)
            plan = solve(instance)
            robust.append((most, seed, plan.unmet, plan.cost, _overloaded(bare, plan, seed)))
        for count in (1, 2):
            request.step(f"{count} sources, seed {seed}")
            plan = solve(_replicated(bare, seed) if count > 1 else bare, model="f1d")
            sources.append((count, seed, plan.unmet, plan.cost))
        for how in ATTACHED:
            request.step(f"clients at {how}, seed {seed}")
            plan = solve(_attached(scarce, how), model="f1d")
            attached.append((how, seed, plan.unmet, plan.cost))
    return [
        Table("robust", {"rising": "topics that may rise at once", "seed": "seed", "unmet": "requests unmet",
                         "cost": "cost", "overloaded": "share of tries in which a link is overloaded"}, robust),
        Table("sources", {"sources": "sources of every second topic", "seed": "seed", "unmet": "requests unmet",
                          "cost": "cost"}, sources),
        Table("attachment", {"clients": "who chooses a client's broker", "seed": "seed", "unmet": "requests unmet",
                             "cost": "cost"}, attached),
    ]  # fmt: skip


def _rising(instance: Instance, most: int) -> Instance:
    topics = tuple(msgspec.structs.replace(topic, rate_max=(1 + RISE) * topic.rate) for topic in instance.topics)
    return checked(msgspec.structs.replace(instance, topics=topics, deviations=most))


def _overloaded(instance: Instance, plan: Plan, seed: int) -> float:
    """The share of random rates, each topic risen or not, at which some link has more than its capacity."""
    rng = np.random.default_rng([seed, 11])
    users: defaultdict[frozenset[str], set[int]] = defaultdict(set)
    number = {topic.key: place for place, topic in enumerate(instance.topics)}
    for route in plan.routes:
        for hop in route.links:
            users[frozenset((hop.tail, hop.head))].add(number[route.topic, route.source])
    rates = np.array([topic.rate for topic in instance.topics])
    risen = rates * (1 + RISE * (rng.random((_TRIED, len(rates))) < _CHANCE))
    over = np.zeros(_TRIED, np.bool_)
    for link in instance.links:
        mine = sorted(users.get(frozenset((link.a, link.b)), ()))
        over |= risen[:, mine].sum(axis=1) > link.capacity * (1 + 1e-9)
    return float(over.mean())


def _replicated(instance: Instance, seed: int) -> Instance:
    """Every second topic may come from another publisher as well."""
    rng = np.random.default_rng([seed, 12])
    publishers = [node.id for node in instance.nodes if "publisher" in node.roles]
    topics = []
    for place, topic in enumerate(instance.topics):
        others = [name for name in publishers if name != topic.source and name not in topic.subscribers]
        chosen = (str(rng.choice(others)),) if place % 2 == 0 else ()
        topics.append(msgspec.structs.replace(topic, more_sources=chosen))
    return checked(msgspec.structs.replace(instance, topics=tuple(topics)))


def _attached(instance: Instance, how: str) -> Instance:
    """Clients that see their nearest brokers, at costs that grow with the distance as those of their own links do."""
    nodes = {node.id: node for node in instance.nodes}
    brokers = [node for node in instance.nodes if node.is_broker]
    links = [link for link in instance.links if nodes[link.a].is_broker and nodes[link.b].is_broker]
    for node in instance.nodes:
        if node.is_broker:
            continue
        mine = next(link for link in instance.links if node.id in (link.a, link.b))
        own = nodes[mine.b if mine.a == node.id else mine.a]
        scale = mine.cost / max(_apart(node, own), 1e-9)
        near = sorted(brokers, key=partial(_apart, node))
        for broker in near[: 1 if how == ATTACHED[0] else _SEEN]:
            cost = max(1.0, float(round(scale * _apart(node, broker))))
            links.append(Link(a=node.id, b=broker.id, capacity=mine.capacity, cost=cost))
    limit = 1 if how == ATTACHED[1] else None
    limited = tuple(
        node if node.is_broker else msgspec.structs.replace(node, max_connections=limit) for node in nodes.values()
    )
    return checked(msgspec.structs.replace(instance, nodes=limited, links=tuple(links)))


def _apart(one: Node, other: Node) -> float:
    assert one.at is not None
    assert other.at is not None
    return float(np.hypot(one.at[0] - other.at[0], one.at[1] - other.at[1]))


def panels(tables: Tables) -> dict[str, Panel]:
    """What each costs, and what it gives."""

    def overload(axis: Axes) -> None:
        drawing.lines(axis, tables["robust"], x="rising", y="overloaded", colours={"": "ours"}, scale=100)
        axis.set_xticks(ROBUST, [*map(str, ROBUST[:-1]), "all"])
        axis.set_ylim(bottom=0)
        drawing.labels(axis, x="topics that may rise at once", y="tries with an overloaded link, %")

    def price(axis: Axes) -> None:
        drawing.lines(axis, tables["robust"], x="rising", y="unmet", colours={"": "baseline"})
        axis.set_xticks(ROBUST, [*map(str, ROBUST[:-1]), "all"])
        axis.set_ylim(bottom=0)
        drawing.labels(axis, x="topics that may rise at once", y="requests unmet")

    def attachment(axis: Axes) -> None:
        drawing.bars(axis, tables["attachment"], x="clients", y="unmet", colours={"": "ours"})
        drawing.labels(axis, y="requests unmet")

    def sources(axis: Axes) -> None:
        drawing.bars(axis, tables["sources"], x="sources", y="cost", colours={"": "ours"})
        drawing.labels(axis, x="sources of every second topic", y="cost of the plan")

    return {
        "Rates that rise: how safe": overload,
        "Rates that rise: at which price": price,
        "Who attaches clients": attachment,
        "Several sources": sources,
    }


def claims(tables: Tables) -> Iterator[Claim]:
    """The paper claims nothing of these; what ours are worth is held against plans without them."""
    robust, sources, attached = tables["robust"], tables["sources"], tables["attachment"]
    safe = robust.where(rising=ROBUST[-1]).column("overloaded")
    yield Claim(
        where="(ours) rates",
        paper_says="(ours) A plan with room for all rates at once is overloaded by none.",
        we_measure=f"{verdicts.percent(safe)} of {_TRIED} tries; without room "
        f"{verdicts.percent(robust.where(rising=0).column('overloaded'))}",
        judgement=verdicts.below(0.0, safe),
        why="the checker would have refused it",
    )
    yield Claim(
        where="(ours) rates",
        paper_says="(ours) The more topics may rise at once, the fewer tries overload a link.",
        we_measure=", ".join(f"{verdicts.percent(part)} at {count}" for count, part in zip(
            ROBUST, robust.by("rising", "overloaded"), strict=True)),
        judgement=verdicts.falls(robust.by("rising", "overloaded")),
        why="where a plan has room by chance, more room changes nothing",
    )  # fmt: skip
    none, one = (attached.where(clients=how).column("unmet") for how in ATTACHED[:2])
    yield Claim(
        where="(ours) attachment",
        paper_says="(ours) A plan that attaches clients serves at least as many as clients that take the nearest "
        "broker.",
        we_measure=f"unmet {verdicts.figures(one)} and {verdicts.figures(none)}",
        judgement=verdicts.always(sum(a <= b for a, b in zip(one, none, strict=True)), len(one)),
        why="the nearest broker is among those that the plan may choose",
    )
    single, double = (
        list(zip(*(sources.where(sources=count).column(name) for name in ("unmet", "cost")), strict=True))
        for count in (1, 2)
    )
    yield Claim(
        where="(ours) sources",
        paper_says="(ours) With a second source of every other topic plans leave no more unmet, or as many at no more "
        "cost.",
        we_measure=f"unmet {verdicts.figures([one[0] for one in double])} and "
        f"{verdicts.figures([one[0] for one in single])}, at a cost of {verdicts.figures([one[1] for one in double])} "
        f"and {verdicts.figures([one[1] for one in single])}",
        judgement=verdicts.always(sum(a <= b for a, b in zip(double, single, strict=True)), len(single)),
        why="the first source is still there",
    )
