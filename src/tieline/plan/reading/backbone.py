"""The links between brokers that run: no broker knows what a link could carry, so a file or a topology says it.

Every format that instances come in will do, and two that hold links alone (:mod:`tieline.plan.reading.links`).  Clients
and demands of a file are not those of the brokers, and are left where they are.  Its nodes bear the brokers' names, and
no others: a name that is written otherwise here than there would be a link that no plan uses.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import msgspec

from tieline.plan.flaws import Flawed
from tieline.plan.generate.network import Network
from tieline.plan.instance import UNLIMITED, Instance, Link, Node
from tieline.plan.reading import sndlib
from tieline.plan.reading.links import Access, read_network, read_table
from tieline.plan.reading.load import TOPOLOGY, bare_network

#: GraphML files and topologies know no costs: a way costs as much as it has links.
_HOP: Final = 1.0


class Backbone(msgspec.Struct, frozen=True, kw_only=True):
    """Brokers, the links between them, and how clients are attached."""

    brokers: tuple[Node, ...]
    links: tuple[Link, ...] = ()
    access: Access = Access()
    unmet_cost: float | None = None


def unlinked(names: Collection[str]) -> Backbone:
    """Brokers about whose links nobody has said anything."""
    return Backbone(brokers=tuple(Node(id=name, roles=("broker",)) for name in names))


def backbone(source: str, names: Sequence[str], *, capacity: float = UNLIMITED) -> Backbone:
    """The links that a file or topology has between brokers of these names; ``capacity`` where it says none."""
    found, access = _read(source, capacity)
    brokers = {node.id: node for node in found.nodes if node.is_broker}
    links = tuple(link for link in found.links if link.a in brokers and link.b in brokers)
    _check(source, names, brokers, links)
    return Backbone(
        # what a node of the file publishes or wants is not what the broker's clients do
        brokers=tuple(msgspec.structs.replace(brokers[name], roles=("broker",)) for name in names),
        links=links,
        access=access,
        unmet_cost=found.unmet_cost,
    )


def _read(source: str, capacity: float) -> tuple[Instance, Access]:
    bare = bare_network(source)
    if bare is not None:
        return _counting_hops(bare, capacity), Access()
    path = Path(source)
    if path.suffix == ".csv":
        return read_table(path, capacity=capacity), Access()
    if path.suffix == ".json":
        return read_network(path)
    if path.suffix == ".txt":
        return sndlib.read(path), Access()
    raise Flawed(
        f"{source}: a name that ends in .csv, .json, .graphml or .txt (SNDlib), or begins with {TOPOLOGY}, is expected"
    )


def _counting_hops(bare: Network, capacity: float) -> Instance:
    return Instance(
        name=bare.name,
        nodes=tuple(
            Node(id=id_, roles=("broker",), at=(float(x), float(y)))
            for id_, (x, y) in zip(bare.ids, bare.places, strict=True)
        ),
        links=tuple(
            Link(a=bare.ids[a], b=bare.ids[b], capacity=capacity if math.isnan(room) else float(room), cost=_HOP)
            for (a, b), room in zip(bare.pairs, bare.capacity, strict=True)
        ),
        topics=(),
    )


def _check(source: str, names: Sequence[str], brokers: Collection[str], links: Sequence[Link]) -> None:
    known, given = set(names), ", ".join(names)
    for number, link in enumerate(links):
        for end in (link.a, link.b):
            if end not in known:
                raise Flawed(f'{source}: link {number} ({link.a} - {link.b}): "{end}" is none of the brokers {given}')
    for number, name in enumerate(brokers):
        if name not in known:
            raise Flawed(f"{source}: node {number} ({name}): it is none of the brokers {given}")
    linked = {end for link in links for end in (link.a, link.b)}
    for name in names:
        if name not in linked and (len(names) > 1 or name not in brokers):
            raise Flawed(f'{source}: no link leads to the broker "{name}"')
