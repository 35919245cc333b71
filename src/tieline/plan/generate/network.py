"""Bare networks, before anybody publishes or subscribes; among them geometric meshes, whose brokers stand at random.

A broker of a mesh is joined to those nearby, and all of them are connected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from tieline.extras import needs
from tieline.plan.arrays import Floats, Ints

#: So few brokers have no proper triangulation: every pair are neighbours.
_ALL_PAIRS = 4


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BrokerNetwork:
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


def network(
    name: str, ids: tuple[str, ...], places: Floats, pairs: Ints, capacity: Floats | None = None
) -> BrokerNetwork:
    """A network whose links are as long as their ends are apart; parallel links become one with the sum of capacity."""
    pairs = np.sort(pairs.reshape(-1, 2), axis=1)
    given = np.full(len(pairs), np.nan) if capacity is None else capacity
    own = pairs[:, 0] != pairs[:, 1]
    pairs, place = np.unique(pairs[own], axis=0, return_inverse=True)
    together = np.zeros(len(pairs))
    np.add.at(together, place.reshape(-1), given[own])
    length = np.linalg.norm(places[pairs[:, 0]] - places[pairs[:, 1]], axis=1)
    return BrokerNetwork(name=name, ids=ids, places=places, pairs=pairs, capacity=together, length=length)


def geometric(brokers: int, links: int, rng: Generator, *, name: str) -> BrokerNetwork:
    """A mesh of so many brokers and links: a shortest spanning tree, neighbours at random, the nearest others.

    Neighbours are those of a triangulation.  Taken at random they leave fewer bridges than taken by length.
    """
    if brokers < 1:
        raise ValueError(f"a mesh of {brokers} brokers: at least one is needed")
    if not brokers - 1 <= links <= brokers * (brokers - 1) // 2:
        raise ValueError(f"{links} links cannot join {brokers} brokers in pairs so that all are connected")
    places = rng.random((brokers, 2))
    pairs = _neighbours(places)
    rank = rng.permutation(len(pairs)).astype(np.float64)
    if links > len(pairs):
        pairs, rank = _with_others(places, pairs, links)
    length = np.linalg.norm(places[pairs[:, 0]] - places[pairs[:, 1]], axis=1)
    order = np.lexsort((rank, ~_spanning(brokers, pairs, length)))
    return network(name, tuple(f"b{number}" for number in range(brokers)), places, pairs[order[:links]])


def _neighbours(places: Floats) -> Ints:
    """Pairs of brokers that share a side of a triangle; all pairs of very few brokers."""
    if len(places) <= _ALL_PAIRS:
        return np.column_stack(np.triu_indices(len(places), 1)).astype(np.int64)
    with needs("plan"):
        from scipy.spatial import Delaunay

    corners = Delaunay(places).simplices.astype(np.int64)
    sides = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    return np.unique(np.sort(sides, axis=1), axis=0)


def _with_others(places: Floats, pairs: Ints, links: int) -> tuple[Ints, Floats]:
    """At least so many pairs, and their ranks: neighbours before others, others by their distance."""
    with needs("plan"):
        from scipy.spatial import cKDTree

    brokers = len(places)
    known = pairs @ (brokers, 1)
    tree = cKDTree(places)
    # brokers are spread over a square of side 1: about so far away is what is needed
    reach = 2 * np.sqrt(links / np.pi) / brokers
    while True:
        near = tree.query_pairs(reach, output_type="ndarray").astype(np.int64)
        codes = np.union1d(near @ (brokers, 1), known)
        if len(codes) >= links:
            break
        reach *= 1.5
    everything = np.column_stack([codes // brokers, codes % brokers])
    length = np.linalg.norm(places[everything[:, 0]] - places[everything[:, 1]], axis=1)
    return everything, np.where(np.isin(codes, known), -1.0, length)


def _spanning(brokers: int, pairs: Ints, length: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which pairs are in the shortest tree that joins all brokers."""
    with needs("plan"):
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import minimum_spanning_tree

    in_tree = np.zeros(len(pairs), np.bool_)
    if not len(pairs):
        return in_tree
    # entries hold places in the list of pairs, found again in the tree; the weights are their ranks, which are distinct
    rank = np.empty(len(pairs))
    order = np.argsort(length, kind="stable")
    rank[order] = np.arange(1, len(pairs) + 1)
    tree = minimum_spanning_tree(coo_array((rank, (pairs[:, 0], pairs[:, 1])), shape=(brokers, brokers)).tocsr())
    in_tree[order[tree.data.astype(np.int64) - 1]] = True
    return in_tree
