"""Where nodes stand in a picture: at their own places if they have some, else where distances in the network suggest.

Theory of operation
-------------------
Without places, distances in hops from a few pivots give a first layout (pivot MDS, Brandes and Pich 2007), and moderate
networks are refined by majorising the stress, until distances in the picture follow distances in the network.  Either
way, nodes that would cover each other are pushed apart a little, which keeps the shape of the network.
"""

from __future__ import annotations

import numpy as np

from tieline.extras import needs
from tieline.plan.arrays import Flags, Floats, Ints
from tieline.plan.instance import Instance

#: Pivots of the first layout.
_PIVOTS = 40
#: Larger networks are not refined: that takes the distances of all pairs, again and again.
_REFINED = 700
_STEPS = 120
#: A client stands nearer to its broker than brokers to each other.
_CLIENT_HOP = 0.62
#: Nodes are pushed apart to this share of the distance that an even grid of them would have.
_APART = 0.55
#: Clients keep this share of the same distance from links that are not theirs; where a network is not too large.
_BESIDE = 0.3
_BESIDE_LINKS = 600


def places(instance: Instance) -> Floats:
    """One row (x, y) per node, in a unit that is the same for both."""
    if not instance.nodes:
        return np.zeros((0, 2))
    given = np.array([node.at or (np.nan, np.nan) for node in instance.nodes], np.float64)
    ends = _ends(instance)
    is_known: Flags = np.asarray(~np.isnan(given).any(axis=1))
    if is_known.any() and _can_be_told_apart(given[is_known]):
        found = _beside_neighbours(given, is_known, ends)
    else:
        found = _by_distance(instance, ends)
    is_client = np.array([not node.is_broker for node in instance.nodes])
    return _beside_links(_apart(_scaled(found)), ends, is_client)


def _ends(instance: Instance) -> Ints:
    number = {node.id: place for place, node in enumerate(instance.nodes)}
    return np.array([(number[link.a], number[link.b]) for link in instance.links], np.int64).reshape(-1, 2)


def _can_be_told_apart(known: Floats) -> bool:
    return len(known) < 2 or bool(np.ptp(known, axis=0).max() > 0)


def _beside_neighbours(given: Floats, is_known: Flags, ends: Ints) -> Floats:
    """Nodes without a place stand where the mean of their neighbours does; as often as the network is deep."""
    found = given.copy()
    known = is_known.copy()
    found[~known] = given[is_known].mean(axis=0)
    for _ in range(len(given)):
        total, count = np.zeros_like(found), np.zeros(len(found))
        for one, other in ((0, 1), (1, 0)):
            told = known[ends[:, one]]
            np.add.at(total, ends[told, other], found[ends[told, one]])
            np.add.at(count, ends[told, other], 1)
        news = ~known & (count > 0)
        if not news.any():
            break
        found[news] = total[news] / count[news][:, None]
        known |= news
    return found


def _by_distance(instance: Instance, ends: Ints) -> Floats:
    with needs("plan"):
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

    nodes = len(instance.nodes)
    is_broker = np.array([node.is_broker for node in instance.nodes])
    if not len(ends):
        angle = 2 * np.pi * np.arange(nodes) / nodes
        return np.column_stack([np.cos(angle), np.sin(angle)])
    hop = np.where(is_broker[ends].all(axis=1), 1.0, _CLIENT_HOP)
    graph = csr_array((hop, (ends[:, 0], ends[:, 1])), shape=(nodes, nodes))

    def distance(of: int | Ints) -> Floats:
        found: Floats = dijkstra(graph, directed=False, indices=of)
        # parts that nothing joins stand beside each other
        beyond = found[np.isfinite(found)].max(initial=0.0) + 2.0
        return np.where(np.isfinite(found), found, beyond)

    if nodes <= _REFINED:
        everything = distance(np.arange(nodes))
        return _refined(_projected(everything), everything)
    pivots = [int(np.bincount(ends.reshape(-1), minlength=nodes).argmax())]
    rows = [distance(pivots[0])]
    while len(pivots) < min(_PIVOTS, nodes):
        pivots.append(int(np.min(rows, axis=0).argmax()))
        rows.append(distance(pivots[-1]))
    return _projected(np.array(rows).T)


def _projected(distance: Floats) -> Floats:
    """The two directions in which distances from the pivots (columns) differ most."""
    squared = distance**2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1, keepdims=True) + squared.mean()
    u, size, _ = np.linalg.svd(centred, full_matrices=False)
    flat = np.zeros((len(distance), 2))
    flat[:, : min(2, len(size))] = u[:, :2] * np.sqrt(size[:2])
    # the sign of a singular vector is arbitrary, a picture is not
    for axis in range(2):
        if flat[np.abs(flat[:, axis]).argmax(), axis] < 0:
            flat[:, axis] *= -1
    return flat


def _refined(start: Floats, distance: Floats) -> Floats:
    """Places of less stress: the squared difference of distances, the near ones weighing more."""
    nodes = len(start)
    if nodes < 3:
        return start if np.ptp(start) > 0 else np.column_stack([np.arange(nodes, dtype=np.float64), np.zeros(nodes)])
    weight = 1.0 / np.maximum(distance, 1e-9) ** 2
    np.fill_diagonal(weight, 0.0)
    inverse = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight)
    # nodes on one spot would stay there, since nothing tells them where to go
    angle = 2.399963 * np.arange(nodes)
    at = start + 0.05 * np.column_stack([np.cos(angle), np.sin(angle)])
    for _ in range(_STEPS):
        apart = np.maximum(np.linalg.norm(at[:, None] - at[None], axis=2), 1e-9)
        pull = -weight * distance / apart
        np.fill_diagonal(pull, 0.0)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        at = inverse @ (pull @ at)
    return at


def _scaled(at: Floats) -> Floats:
    """The same, in a box whose longer side is 1."""
    at = at - at.min(axis=0)
    span = float(at.max())
    return at / span if span > 0 else at


def _beside_links(at: Floats, ends: Ints, is_client: Flags) -> Floats:
    """Clients that stand on a link between others step aside."""
    clients = np.flatnonzero(is_client)
    if not len(clients) or not 0 < len(ends) <= _BESIDE_LINKS:
        return at
    at = at.copy()
    least = _BESIDE * _grid(at)
    foreign = (clients[:, None] != ends[:, 0]) & (clients[:, None] != ends[:, 1])
    for _ in range(25):
        start, along = at[ends[:, 0]], at[ends[:, 1]] - at[ends[:, 0]]
        length = np.maximum((along**2).sum(axis=1), 1e-12)
        share = np.clip(((at[clients][:, None] - start) * along).sum(axis=2) / length, 0.0, 1.0)
        gap = at[clients][:, None] - (start + share[:, :, None] * along)
        distance = np.linalg.norm(gap, axis=2)
        near = foreign & (distance < least) & (share > 0.02) & (share < 0.98)
        if not near.any():
            break
        side = np.stack([-along[:, 1], along[:, 0]], axis=1) / np.sqrt(length)[:, None]
        # who stands exactly on a link goes to its left
        way = np.where((distance > 1e-9)[:, :, None], gap / np.maximum(distance, 1e-12)[:, :, None], side)
        push = np.where(near, 0.5 * (least - distance), 0.0)
        at[clients] += (push[:, :, None] * way).sum(axis=1)
    return at


def _grid(at: Floats) -> float:
    """How far apart the nodes would be on an even grid of the same size."""
    width, height = np.maximum(np.ptp(at, axis=0), 0.2)
    return float(np.sqrt(width * height / len(at)))


def _apart(at: Floats) -> Floats:
    """Nodes that are too near to each other are pushed apart, both by the same amount."""
    if len(at) < 2:
        return at
    with needs("plan"):
        from scipy.spatial import cKDTree

    least = _APART * _grid(at)
    angle = 2.399963 * np.arange(len(at))
    # nodes on one spot leave it in different directions
    at = at + 1e-3 * least * np.column_stack([np.cos(angle), np.sin(angle)])
    for _ in range(60):
        pairs = cKDTree(at).query_pairs(least, output_type="ndarray")
        if not len(pairs):
            break
        gap = at[pairs[:, 0]] - at[pairs[:, 1]]
        length = np.maximum(np.linalg.norm(gap, axis=1, keepdims=True), 1e-12)
        push = 0.5 * (least - length) * gap / length * 0.6
        np.add.at(at, pairs[:, 0], push)
        np.add.at(at, pairs[:, 1], -push)
    return at
