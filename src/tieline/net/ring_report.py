"""What a broker on a ring shows of itself and of the few others that it knows: to ``tieline net``, in ``$SYS``, at
``/metrics``.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any  # Any: values of JSON

if TYPE_CHECKING:
    from tieline.net.ring_neighbours import RingNeighbours
    from tieline.overlay.ring.messages import Peer

#: Digits of a place that are shown.
_DIGITS = 16


class RingReport:
    """The ring as one broker knows it."""

    def __init__(self, neighbours: RingNeighbours) -> None:
        self._neighbours = neighbours

    def answer(self) -> dict[str, Any]:
        """Everything that is known."""
        member = self._neighbours.member
        node = member.node
        found: dict[str, Any] = {
            "name": member.name,
            "mode": "ring",
            "cluster": self._neighbours.inside.me.cluster,
            "address": member.links.address,
            "is_joined": member.is_joined,
            "is_closed": node is not None and node.upkeep.is_closed,
            "place": "" if node is None else _place(node.me.identifier),
            "before": None,
            "behind": [],
            "fingers": [],
            "watchers": 0,
            "connected": self._neighbours.up,
            "totals": self.totals(),
            "counts": self.counts,
        }
        if node is not None:
            table = node.table
            found["before"] = None if table.predecessor is None else self._shown(table.predecessor)
            found["behind"] = [self._shown(peer) for peer in table.successors]
            found["fingers"] = [
                {
                    **self._shown(finger.peer),
                    "is_certain": table.is_certain(finger),
                    "brokers": None if finger.told.members is None else len(finger.told.members),
                    "told_bytes": finger.told.size,
                }
                for finger in table
            ]
            found["watchers"] = len(node.growth.watchers)
        return {"verdict": verdict(found), **found}

    def _shown(self, peer: Peer) -> dict[str, Any]:
        links = self._neighbours.member.links
        far = links.far.get(peer.identifier)
        return {
            "name": links.name_of(peer.identifier),
            "address": peer.link,
            "place": _place(peer.identifier),
            "is_up": far is not None and bool(far.handle),
            "waiting": 0 if far is None else len(far.waiting),
            "unacknowledged": 0 if far is None else len(far.written),
        }

    def totals(self) -> dict[str, int]:
        """What is so now, and what came in vain."""
        member = self._neighbours.member
        node, links = member.node, member.links
        return {
            "joined": int(member.is_joined),
            "fingers": 0 if node is None else len(node.table),
            "watchers": 0 if node is None else len(node.growth.watchers),
            "subscriptions": member.granting.subscriptions,
            "links/up": len(self._neighbours.up),
            "waiting/messages": sum(len(far.waiting) for far in links.far.values()),
            "unacknowledged/messages": sum(len(far.written) for far in links.far.values()),
            "owed/batches": 0 if node is None else node.promises.unfinished,
            "owed/bytes": 0 if node is None else node.promises.owed_bytes,
            "bytes/sent": links.counts.bytes_out,
            "bytes/received": links.counts.bytes_in,
            "publications/sent": links.counts.publications_out,
            "publications/bytes": links.counts.publication_bytes,
            "publications/received": 0 if node is None else node.counts.visits,
            "publications/hops": 0 if node is None else node.counts.hops,
            "useless": self._neighbours.inside.core.from_brokers.useless,
        }

    @property
    def counts(self) -> dict[str, int]:
        """What happened, by name."""
        member = self._neighbours.member
        own = {} if member.node is None else asdict(member.node.counts)
        found = {
            **own,
            **{f"link_{name}": count for name, count in asdict(member.links.counts).items()},
            "acknowledged_late": member.granting.late,
            "kept_here": member.everybody.kept_here,
            "sent": member.everybody.sent,
            "bad_parcels": member.arriving.bad_parcels,
            "retained_elsewhere": member.arriving.retained_elsewhere,
        }
        return {name: count for name, count in found.items() if count}

    def topics(self) -> dict[str, int]:
        """The same as topics below ``$SYS/broker/``."""
        found = self.totals() | {f"count/{name}": count for name, count in self.counts.items()}
        return {f"tieline/ring/{name}": number for name, number in found.items()}


def _place(identifier: int) -> str:
    return f"{identifier:0{_DIGITS}x}"


def verdict(found: dict[str, Any]) -> str:
    """The one sentence that says how it is."""
    if not found["is_joined"]:
        return "The ring is not found yet: what clients publish with QoS 1 and 2 waits."
    if not found["fingers"]:
        return "On the ring, and alone on it as far as it knows."
    down = sum(not finger["is_up"] for finger in found["fingers"])
    missing = f", {down} of them not connected now" if down else ""
    open_ = "" if found["is_closed"] else "; who stands behind it is being found out"
    count = len(found["fingers"])
    return f"On the ring, with {count} other{'s' if count > 1 else ''} that it goes by{missing}{open_}."
