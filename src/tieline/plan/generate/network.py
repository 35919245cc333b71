"""A bare network: brokers with places and links with lengths, before anybody publishes or subscribes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tieline.plan.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Network:
    """Brokers and the links between them."""

    name: str
    ids: tuple[str, ...]
    #: One row (x, y) per broker.
    places: Floats
    #: One row (a, b) per link, a < b, each pair once.
    pairs: Ints
    #: Per link; NaN where the source of the network knows none.
    capacity: Floats
    #: Per link, in the unit of the places.
    length: Floats


def network(name: str, ids: tuple[str, ...], places: Floats, pairs: Ints, capacity: Floats | None = None) -> Network:
    """A network whose links are as long as their ends are apart; parallel links become one with the sum of capacity."""
    pairs = np.sort(pairs.reshape(-1, 2), axis=1)
    given = np.full(len(pairs), np.nan) if capacity is None else capacity
    own = pairs[:, 0] != pairs[:, 1]
    pairs, place = np.unique(pairs[own], axis=0, return_inverse=True)
    together = np.zeros(len(pairs))
    np.add.at(together, place.reshape(-1), given[own])
    length = np.linalg.norm(places[pairs[:, 0]] - places[pairs[:, 1]], axis=1)
    return Network(name=name, ids=ids, places=places, pairs=pairs, capacity=together, length=length)
