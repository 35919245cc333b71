"""The links between brokers that run: no broker knows what a link could carry, so a file or a topology says it.

Every format that instances come in will do, and two that hold links alone: a table, and the network file of ``tieline
pipeline traffic``.  The table has the columns ``a``, ``b``, ``capacity``, ``cost`` and perhaps ``latency``; a capacity
is a number, ``none`` or not said.  Either becomes a document of an instance without topics, so that the same rules hold
and the same words name what breaks them.

Clients and demands of a file are not those of the brokers, and are left where they are.  Its nodes bear the brokers'
names, and no others: a name that is written otherwise here than there would be a link that no plan uses.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal  # Any: values of JSON

import msgspec

from tieline.instance_document import FORMAT
from tieline.plan.flaws import Flawed
from tieline.plan.generate.network import BrokerNetwork
from tieline.plan.instance import UNLIMITED, Instance, Link, Node
from tieline.plan.reading import document, sndlib
from tieline.plan.reading.load import TOPOLOGY, bare_network

_COLUMNS: Final = ("a", "b", "capacity", "cost")
_LATENCY: Final = "latency"
#: GraphML files and topologies know no costs: a way costs as much as it has links.
_HOP: Final = 1.0


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """What the link between a client and its broker can carry, and costs."""

    capacity: float = UNLIMITED
    cost: float = 0.0


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


def _counting_hops(bare: BrokerNetwork, capacity: float) -> Instance:
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


def read_table(path: Path, *, capacity: float) -> Instance:
    """The links of a CSV file; ``capacity`` is that of links whose own is not said."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            links = list(_rows(csv.DictReader(file, skipinitialspace=True), path, capacity))
    except OSError as error:
        raise Flawed(f"{path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise Flawed(f"{path}: this is no table: {error}") from error
    return _alone(path, links)


def read_network(path: Path) -> tuple[Instance, Access]:
    """The brokers and links of a JSON file: an instance, of which the rest is not looked at, or a network file."""
    try:
        raw = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise Flawed(f"{path}: {error.strerror or error}") from error
    except msgspec.DecodeError as error:
        raise Flawed(f"{path}: this is not JSON: {error}") from error
    if not isinstance(raw, dict) or not isinstance(raw.get("links"), list):
        raise Flawed(f'{path}: this is no network: it has no list "links"')
    if "format" in raw:
        return document.read(path), Access()
    try:
        access = msgspec.convert(raw.pop("access", {}), _Access)
    except msgspec.ValidationError as error:
        raise Flawed(f"{path}: access: {error}") from error
    # where clients are is said for traffic of the past; brokers that run know it
    raw.pop("clients", None)
    brokers, links = raw.pop("brokers", None), raw.pop("links")
    capacity = UNLIMITED if access.capacity == "none" else access.capacity
    return _alone(path, links, brokers, **raw), Access(capacity=capacity, cost=access.cost)


class _Access(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    capacity: float | Literal["none"] = "none"
    cost: float = 0.0


def _alone(path: Path, links: list[Any], brokers: list[Any] | None = None, **more: Any) -> Instance:
    """Links as an instance that holds nothing else; without brokers, these are what the links join.

    Whatever a file held is passed on as it is: the reader of documents names what is wrong with it.
    """
    if brokers is None:
        ends = (link.get(end) for link in links if isinstance(link, dict) for end in ("a", "b"))
        brokers = [{"id": end} for end in dict.fromkeys(end for end in ends if isinstance(end, str))]
    nodes = [{**broker, "roles": ["broker"]} if isinstance(broker, dict) else broker for broker in brokers]
    raw = {"format": FORMAT, "name": path.stem, "nodes": nodes, "links": links, "topics": [], **more}
    try:
        return document.understood(raw)
    except Flawed as flaw:
        raise Flawed(f"{path}: {flaw}") from None


def _rows(table: csv.DictReader[str], path: Path, capacity: float) -> Iterator[dict[str, Any]]:
    """The lines of a table, as a document has them."""
    missing = [name for name in _COLUMNS if name not in (table.fieldnames or ())]
    if missing:
        raise Flawed(f'{path}: the first line has no column "{missing[0]}"; expected: {", ".join(_COLUMNS)}')
    for row in table:
        where = f"{path}, line {table.line_num}"
        if None in row or None in row.values():
            raise Flawed(f"{where}: it does not have as many columns as the first line")
        cells = {name: text.strip() for name, text in row.items()}
        link: dict[str, Any] = {"a": cells["a"], "b": cells["b"], "cost": _number(cells, "cost", where)}
        if cells["capacity"] == "none" or (not cells["capacity"] and math.isinf(capacity)):
            link["capacity"] = "none"
        else:
            link["capacity"] = _number(cells, "capacity", where) if cells["capacity"] else capacity
        if cells.get(_LATENCY):
            link[_LATENCY] = _number(cells, _LATENCY, where)
        yield link


def _number(cells: dict[str, str], column: str, where: str) -> float:
    try:
        return float(cells[column])
    except ValueError:
        raise Flawed(
            f'{where} ({cells["a"]} - {cells["b"]}): {column} is "{cells[column]}", which is no number'
        ) from None
