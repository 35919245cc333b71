"""By which links a message for another broker would leave, and which way it would probably take, for those who ask."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from tieline.core.ports import Prospect
from tieline.overlay.membership import Membership

if TYPE_CHECKING:
    from tieline.overlay.node import Node


def shortest_way(membership: Membership, first: int, destination: int) -> list[int]:
    """The brokers on the shortest way that begins with this neighbour, as far as links are known here."""
    distances = membership.distances(destination)
    way = [first]
    while way[-1] != destination:
        best, least = 0, inf
        for other, cost in membership.links_of(way[-1]).items():
            distance = cost + distances.get(other, inf)
            if distance < least and other not in way:
                best, least = other, distance
        if not best:
            break
        way.append(best)
    return way


def prospect(node: Node, destination: int, *, is_assured: bool) -> Prospect:
    """What would become of a message for a broker: by which links it would leave, or why it would not."""
    names, sender = node.directory.names, node.carrier.sender
    owed = sender.owed_bytes.get(destination, 0)
    behind = f", behind {owed:,} bytes that are owed to it" if owed and is_assured else ""
    if is_assured and sender.owes_much(destination):
        return Prospect("waits", f"its publisher waits: {owed:,} bytes are owed to it already")
    peers = node.carrier.strategy.next_brokers(destination, b"")
    if not peers:
        if is_assured:
            return Prospect("waits", f"no way leads there now, and it is kept until one does{behind}")
        return Prospect("dropped", "no way leads there now, and QoS 0 is not kept")
    if len(peers) > 1:
        return Prospect("carried", f"a copy over each of {len(peers)} links{behind}")
    way = [names[broker] for broker in shortest_way(node.membership, peers[0], destination)]
    return Prospect("carried", f"by the link to {way[0]}" + (f": {' → '.join(way)}" if way[1:] else "") + behind)
