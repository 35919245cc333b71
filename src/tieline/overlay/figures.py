"""What one broker knows of the network: who is there, by which links and ways, what passes its own, and what waits.

Who is there and which links are up is what every broker says of itself by link state.  Everything that is counted is of
this broker's own links and streams: nobody tells the others how much passes elsewhere.  Nothing is computed before
somebody asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple  # Any: values of JSON

from tieline.core.ports import Prospect
from tieline.overlay.frames.frame import LEVELS
from tieline.overlay.links.links import Link
from tieline.overlay.membership import Membership

if TYPE_CHECKING:
    from tieline.overlay.node import Node

#: Links that are told one by one under their peers' names; what the others come to is told together.
MOST_LINKS: Final = 64
#: Links of the whole network in one answer; and ends of links that are looked at to say by which link brokers are
#: reached: where there are very many, it is said of some brokers alone.
MOST_SHOWN: Final = 1_024
_LOOKED_AT: Final = 200_000
#: The name of what those come to.
OTHERS: Final = "(others)"


def brokers(node: Node) -> list[dict[str, Any]]:
    """Every broker that is known here, this one first and then by name."""
    ways = _LOOKED_AT // (node.membership.ends + 1)
    membership, names = node.membership, node.directory.names
    owed: dict[int, int] = {}
    for (destination, _lane), stream in node.carrier.sender.outgoing.items():
        owed[destination] = owed.get(destination, 0) + len(stream.owing.unsettled)
    found = []
    for number in sorted(names, key=lambda number: (number != node.broker, names[number])):
        is_here = number == node.broker
        is_reachable = is_here or number in membership.reachable
        is_asked = is_reachable and not is_here and ways > 0
        ways -= is_asked
        peers = node.carrier.strategy.next_brokers(number, b"") if is_asked else ()
        whole = node.interests.whole(number)
        found.append(
            {
                "name": names[number],
                "is_here": is_here,
                "is_reachable": is_reachable,
                "via": [names[peer] for peer in peers],
                "wants": 0 if whole is None else len(whole.added),
                "owed": owed.get(number, 0),
                "owed_bytes": node.carrier.sender.owed_bytes.get(number, 0),
            }
        )
    return found


def links(node: Node) -> list[dict[str, Any]]:
    """Every link that some broker names, with its costs from both ends; it is up if both do.

    Of very many the first ones, and all of this broker's.
    """
    states, names = node.membership.states, node.directory.names
    pairs = {
        (min(broker, other, key=names.__getitem__), max(broker, other, key=names.__getitem__))
        for broker, state in states.items()
        for other in state.neighbours
        if other in names
    }
    found = []
    ordered = sorted(pairs, key=lambda pair: (names[pair[0]], names[pair[1]]))
    if len(ordered) > MOST_SHOWN:
        shown = set(sorted(ordered, key=lambda pair: node.broker not in pair)[:MOST_SHOWN])
        ordered = [pair for pair in ordered if pair in shown]
    for one, other in ordered:
        costs = [
            states[end].neighbours.get(far) if end in states else None for end, far in ((one, other), (other, one))
        ]
        found.append(
            {
                "ends": [names[one], names[other]],
                "costs": costs,
                "is_up": None not in costs,
                "is_own": node.broker in (one, other),
            }
        )
    return found


def own_links(node: Node, now: float) -> list[dict[str, Any]]:
    """The links that this broker has had since it began, by the names of the peers, those that are down included."""
    names = node.directory.names
    return [_own(names[peer], node.links[peer], now) for peer in sorted(node.links, key=names.__getitem__)]


def _own(name: str, link: Link, now: float) -> dict[str, Any]:
    meter, connection = link.meter, link.connection
    return {
        "peer": name,
        "is_up": link.is_up,
        "since_s": now - meter.changed_at if meter.changed_at else 0.0,
        "cost": None if connection is None else connection.cost,
        "round_trip_s": meter.round_trip_s,
        "least_round_trip_s": meter.least_round_trip_s,
        "bytes_out": meter.bytes_out,
        "bytes_in": meter.bytes_in,
        "waiting_bytes": sum(size for _, size in link.waiting),
        "classes": [
            {
                "level": level,
                "sent": meter.sent[level],
                "sent_bytes": meter.sent_bytes[level],
                "received": meter.received[level],
                "received_bytes": meter.received_bytes[level],
                "waiting": link.waiting[level][0],
                "waiting_bytes": link.waiting[level][1],
            }
            for level in range(LEVELS - 1, -1, -1)
        ],
        "unacknowledged": len(link) - sum(frames for frames, _ in link.waiting),
        "lost": dict(meter.lost),
        "why": meter.why,
    }


def totals(node: Node, useless: int) -> dict[str, int]:
    """What is under way here, and how much of what there was; ``useless`` is what nobody here wanted."""
    every, carrier = node.links.values(), node.carrier
    reachable, up = node.membership.reachable, sum(link.is_up for link in every)
    waiting = [pair for link in every for pair in link.waiting]
    return {
        "brokers/known": len(node.directory.names),
        "brokers/reachable": len(reachable) + 1,
        "links/up": up,
        "links/down": len(every) - up,
        "bytes/sent": sum(link.meter.bytes_out for link in every),
        "bytes/received": sum(link.meter.bytes_in for link in every),
        "waiting/frames": sum(frames for frames, _ in waiting),
        "waiting/bytes": sum(size for _, size in waiting),
        "unacknowledged/frames": sum(map(len, every)) - sum(frames for frames, _ in waiting),
        "parked/frames": carrier.parked,
        "held/parcels": sum(len(stream.held) for stream in carrier.taker.incoming.values()),
        "owed/parcels": carrier.sender.unfinished,
        "owed/bytes": sum(carrier.sender.owed_bytes.values()),
        "useless": useless,
    }


def counted(node: Node) -> dict[str, int]:
    """What happened between brokers, by name, as far as it did."""
    return {name: count for name, count in asdict(node.counts).items() if count}


def lost(node: Node) -> dict[str, int]:
    """How often links were lost, by the name of the reason."""
    found: dict[str, int] = {}
    for link in node.links.values():
        for why, times in link.meter.lost.items():
            found[why] = found.get(why, 0) + times
    return found


class LinkNumbers(NamedTuple):
    """What is shown of one link under its peer's name, or of several together."""

    peer: str
    up: int
    round_trip_s: float
    #: By level.
    sent_bytes: tuple[int, ...]
    received_bytes: tuple[int, ...]
    #: Messages, by level.
    received: tuple[int, ...]


def by_link(node: Node) -> list[LinkNumbers]:
    """The first links by name, and the others as one, so that there are never many names."""
    names = node.directory.names
    ordered = [(names[peer], node.links[peer]) for peer in sorted(node.links, key=names.__getitem__)]
    found = [_numbers(name, [link]) for name, link in ordered[:MOST_LINKS]]
    if ordered[MOST_LINKS:]:
        found.append(_numbers(OTHERS, [link for _, link in ordered[MOST_LINKS:]]))
    return found


def _numbers(name: str, several: Sequence[Link]) -> LinkNumbers:
    meters = [link.meter for link in several]
    return LinkNumbers(
        name,
        sum(link.is_up for link in several),
        max(meter.round_trip_s for meter in meters),
        tuple(sum(meter.sent_bytes[level] for meter in meters) for level in range(LEVELS)),
        tuple(sum(meter.received_bytes[level] for meter in meters) for level in range(LEVELS)),
        tuple(sum(meter.received[level] for meter in meters) for level in range(LEVELS)),
    )


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
    text = f"by the link to {way[0]}" + (f": {' → '.join(way)}" if way[1:] else "") + behind
    return Prospect("carried", text, (node.name, *way))
