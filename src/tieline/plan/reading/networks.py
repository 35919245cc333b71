"""Bare networks that others describe: GraphML files, and topologies of the package ``topohub`` by name.

GraphML is that of the Internet Topology Zoo.  Nodes keep their ids.  Places come from the attributes ``Longitude`` and
``Latitude`` (or ``x`` and ``y``), capacity from ``LinkSpeedRaw`` or ``capacity`` where links have it.  Topologies are
named like ``topozoo/Abilene`` or ``gabriel/25/0``; their links have no capacity of their own.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np

from tieline.extras import needs
from tieline.plan.flaws import Flawed
from tieline.plan.generate.network import BrokerNetwork, network

_X: Final = ("Longitude", "x", "lon")
_Y: Final = ("Latitude", "y", "lat")
_CAPACITY: Final = ("LinkSpeedRaw", "capacity")


def read_graphml(path: Path) -> BrokerNetwork:
    """The network in a GraphML file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Flawed(f"{path}: {error}") from error
    return parse_graphml(text, name=path.stem)


def parse_graphml(text: str, *, name: str) -> BrokerNetwork:
    """The network that GraphML text describes."""
    if "<!ENTITY" in text or "<!DOCTYPE" in text:
        # entities can grow without bound when they are expanded, and GraphML needs none
        raise Flawed(f"{name}: a GraphML file with a document type is not read")
    try:
        root = ET.fromstring(text)  # noqa: S314 - document types are refused above
    except ET.ParseError as error:
        raise Flawed(f"{name}: this is not XML: {error}") from error
    keys = {key.get("id", ""): key.get("attr.name", "") for key in root.iter() if _is(key, "key")}
    graph = next((element for element in root.iter() if _is(element, "graph")), None)
    if graph is None:
        raise Flawed(f"{name}: there is no graph in this file")
    ids: list[str] = []
    places: list[tuple[float, float]] = []
    for node in graph:
        if _is(node, "node"):
            number = len(ids)
            ids.append(node.get("id") or f"n{number}")
            data = _data(node, keys)
            places.append(
                (_number(data, _X, f"node {number} ({ids[-1]})"), _number(data, _Y, f"node {number} ({ids[-1]})"))
            )
    place_of = {id_: number for number, id_ in enumerate(ids)}
    if len(place_of) < len(ids):
        raise Flawed(f"{name}: two nodes have the same id")
    pairs: list[tuple[int, int]] = []
    capacity: list[float] = []
    for number, edge in enumerate(element for element in graph if _is(element, "edge")):
        ends = (edge.get("source", ""), edge.get("target", ""))
        for end in ends:
            if end not in place_of:
                raise Flawed(f'{name}: link {number} ({ends[0]} - {ends[1]}): there is no node "{end}"')
        pairs.append((place_of[ends[0]], place_of[ends[1]]))
        capacity.append(_number(_data(edge, keys), _CAPACITY, f"link {number} ({ends[0]} - {ends[1]})"))
    return network(
        name, tuple(ids), spread_out(np.array(places, np.float64)), np.array(pairs, np.int64), np.array(capacity)
    )


def spread_out(
    places: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Places where unknown ones stand on a circle around the others."""
    places = places.reshape(-1, 2).copy()
    unknown = np.flatnonzero(np.isnan(places).any(axis=1))
    known = places[~np.isnan(places).any(axis=1)]
    centre = known.mean(axis=0) if len(known) else np.zeros(2)
    radius = float(np.abs(known - centre).max()) if len(known) > 1 else 1.0
    angle = 2 * np.pi * np.arange(len(unknown)) / max(1, len(unknown))
    places[unknown] = centre + (radius or 1.0) * np.column_stack([np.cos(angle), np.sin(angle)])
    return places


def _is(element: ET.Element, tag: str) -> bool:
    return element.tag.rpartition("}")[2] == tag


def _data(element: ET.Element, keys: Mapping[str, str]) -> dict[str, str]:
    return {keys.get(data.get("key", ""), ""): (data.text or "").strip() for data in element if _is(data, "data")}


def _number(data: Mapping[str, str], names: tuple[str, ...], where: str) -> float:
    for name in names:
        if data.get(name):
            try:
                return float(data[name])
            except ValueError as error:
                raise Flawed(f'{where}: {name} is "{data[name]}", not a number') from error
    return math.nan


def topology(key: str) -> BrokerNetwork:
    """The bare network of a topology; links have no capacity of their own."""
    with needs("plan"):
        import topohub
    try:
        with warnings.catch_warnings():
            # the package leaves the file open until it is collected
            warnings.simplefilter("ignore", ResourceWarning)
            found = topohub.get(key)
    except KeyError as error:
        raise Flawed(f'topohub has no topology "{key}"') from error
    numbers = {node["id"]: number for number, node in enumerate(found["nodes"])}
    names = [str(node.get("name") or node["id"]) for node in found["nodes"]]
    if len(set(names)) < len(names):
        names = [f"{name}.{number}" for number, name in enumerate(names)]
    places = np.array([node.get("pos") or (np.nan, np.nan) for node in found["nodes"]], np.float64)
    pairs = np.array([(numbers[edge["source"]], numbers[edge["target"]]) for edge in found["edges"]], np.int64)
    return network(key, tuple(names), spread_out(places), pairs)
