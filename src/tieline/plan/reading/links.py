"""Links between brokers and nothing else: a table, or the network file of ``tieline pipeline traffic``.

The table has the columns ``a``, ``b``, ``capacity``, ``cost`` and perhaps ``latency``; a capacity is a number, ``none``
or not said.  Either becomes a document of an instance without topics, so that the same rules hold and the same words
name what breaks them.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from tieline.plan.flaws import Flawed
from tieline.plan.instance import UNLIMITED, Instance
from tieline.plan.reading import document

_COLUMNS: Final = ("a", "b", "capacity", "cost")
_LATENCY: Final = "latency"


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """What the link between a client and its broker can carry, and costs."""

    capacity: float = UNLIMITED
    cost: float = 0.0


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
    """Links as an instance that holds nothing else; without brokers, these are what the links join."""
    if brokers is None:
        ends = (link.get(end) for link in links if isinstance(link, dict) for end in ("a", "b"))
        brokers = [{"id": end} for end in dict.fromkeys(end for end in ends if isinstance(end, str))]
    nodes = [{**broker, "roles": ["broker"]} if isinstance(broker, dict) else broker for broker in brokers]
    raw = {"format": document.FORMAT, "name": path.stem, "nodes": nodes, "links": links, "topics": [], **more}
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
