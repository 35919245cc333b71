"""GraphML files, such as those of the Internet Topology Zoo: a bare network of brokers.

Nodes keep their ids.  Places come from the attributes ``Longitude`` and ``Latitude`` (or ``x`` and ``y``), capacity
from ``LinkSpeedRaw`` or ``capacity`` where links have it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np

from tieline.plan.flaws import Flawed
from tieline.plan.generate.network import Network, network

_X: Final = ("Longitude", "x", "lon")
_Y: Final = ("Latitude", "y", "lat")
_CAPACITY: Final = ("LinkSpeedRaw", "capacity")


def read(path: Path) -> Network:
    """The network in a GraphML file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Flawed(f"{path}: {error}") from error
    return parse(text, name=path.stem)


def parse(text: str, *, name: str) -> Network:
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
