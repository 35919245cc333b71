"""SNDlib's native files: nodes with places, links with capacities and costs, demands.

A demand is one publisher and one subscriber.  All nodes of the file become brokers; the client ``pub:N`` at node N
publishes its demands, ``sub:N`` wants those that end there.  Links without a capacity of their own get the largest
module that the file offers, and no limit if there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tieline.plan.flaws import Flawed, checked
from tieline.plan.instance import UNLIMITED, Instance, Link, Node, Topic

_SECTION: Final = re.compile(r"^\s*([A-Z_]+)\s*\(\s*$")
_NODE: Final = re.compile(r"^(\S+)\s*\(\s*(\S+)\s+(\S+)\s*\)$")
_LINK: Final = re.compile(r"^(\S+)\s*\(\s*(\S+)\s+(\S+)\s*\)\s*(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*\(([^)]*)\)$")
_DEMAND: Final = re.compile(r"^(\S+)\s*\(\s*(\S+)\s+(\S+)\s*\)\s*(\S+)\s+(\S+)\s+(\S+)$")


def read(path: Path, *, unmet_cost: float | None = None) -> Instance:
    """The instance in a native SNDlib file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Flawed(f"{path}: {error}") from error
    return parse(text, name=path.stem, unmet_cost=unmet_cost)


def parse(text: str, *, name: str, unmet_cost: float | None = None) -> Instance:
    """The instance that native SNDlib text describes."""
    if "SNDlib native format" not in text.split("\n", 1)[0]:
        raise Flawed(f"{name}: the first line does not say that this is SNDlib's native format")
    nodes: dict[str, tuple[float, float]] = {}
    links: dict[frozenset[str], Link] = {}
    topics: list[Topic] = []
    for section, number, line in _lines(text):
        where = f"{name}, line {number}"
        if section == "NODES":
            node = _matched(_NODE, line, where)
            nodes[node[0]] = (_amount(node[1], where), _amount(node[2], where))
        elif section == "LINKS":
            link = _link(_matched(_LINK, line, where), nodes, where)
            pair = frozenset((link.a, link.b))
            if pair in links:
                # parallel links become one that carries both
                link = Link(
                    a=link.a,
                    b=link.b,
                    capacity=links[pair].capacity + link.capacity,
                    cost=min(links[pair].cost, link.cost),
                )
            if len(pair) == 2:
                links[pair] = link
        elif section == "DEMANDS":
            topics.append(_topic(_matched(_DEMAND, line, where), nodes, where))
    publishers = dict.fromkeys(topic.source for topic in topics)
    subscribers = dict.fromkeys(topic.subscribers[0] for topic in topics)
    clients = {**publishers, **subscribers}
    return checked(
        Instance(
            name=name,
            nodes=(
                *(Node(id=node, roles=("broker",), at=at) for node, at in nodes.items()),
                *(
                    Node(
                        id=client,
                        roles=("publisher",) if client in publishers else ("subscriber",),
                        at=nodes[client[4:]],
                    )
                    for client in clients
                ),
            ),
            links=(
                *links.values(),
                *(Link(a=client, b=client[4:], capacity=UNLIMITED, cost=0.0) for client in clients),
            ),
            topics=tuple(topics),
            unmet_cost=unmet_cost,
        )
    )


def _lines(text: str) -> Iterator[tuple[str, int, str]]:
    """The lines inside sections, with the section's name and the line's number."""
    section = ""
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.partition("#")[0].strip()
        if not line or line.startswith("?"):
            continue
        if not section:
            opened = _SECTION.match(line)
            if opened:
                section = opened[1]
        elif line == ")":
            section = ""
        else:
            yield section, number, line


def _matched(pattern: re.Pattern[str], line: str, where: str) -> tuple[str, ...]:
    found = pattern.match(line)
    if found is None:
        raise Flawed(f'{where}: "{line}" is not what this section holds')
    return found.groups()


def _link(fields: tuple[str, ...], nodes: dict[str, tuple[float, float]], where: str) -> Link:
    id_, a, b, installed, _, routing_cost, _, modules = fields
    for end in (a, b):
        if end not in nodes:
            raise Flawed(f'{where}: link {id_} ({a} - {b}): there is no node "{end}"')
    capacity = _amount(installed, where)
    sizes = [_amount(size, where) for size in modules.split()[0::2]]
    if capacity == 0.0:
        capacity = max(sizes, default=UNLIMITED)
    cost = _amount(routing_cost, where)
    if cost == 0.0:
        (ax, ay), (bx, by) = nodes[a], nodes[b]
        cost = round(((ax - bx) ** 2 + (ay - by) ** 2) ** 0.5, 3)
    return Link(a=a, b=b, capacity=capacity, cost=cost)


def _topic(fields: tuple[str, ...], nodes: dict[str, tuple[float, float]], where: str) -> Topic:
    id_, source, target, _, rate, _ = fields
    for end in (source, target):
        if end not in nodes:
            raise Flawed(f'{where}: demand {id_} ({source} - {target}): there is no node "{end}"')
    return Topic(id=id_, source=f"pub:{source}", rate=_amount(rate, where), subscribers=(f"sub:{target}",))


def _amount(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise Flawed(f'{where}: "{text}" is not a number') from error
