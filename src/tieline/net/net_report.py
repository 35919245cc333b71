"""What a joined broker shows of itself and the network: to ``tieline net``, in ``$SYS`` and at ``/metrics``.

:mod:`tieline.overlay.figures` has what is known; here comes what only sockets know, and how much it is per second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final  # Any: values of JSON

from tieline.overlay import figures
from tieline.overlay.receivers.turns import region_of

if TYPE_CHECKING:
    from tieline.core.routing.classes import Classes
    from tieline.net.peers import Peers
    from tieline.overlay.joined import Joined
    from tieline.overlay.regions.outside import Outside

#: Whoever asks has rates since it asked last; so many of them are told apart.
_ASKERS: Final = 16
#: In names of topics these would mean something.
_SPECIAL: Final = str.maketrans({"%": "%25", "/": "%2F", "+": "%2B", "#": "%23"})


class NetReport:
    """The network as one broker knows it."""

    def __init__(self, peers: Peers[Joined], outside: Peers[Outside] | None = None) -> None:
        """``outside`` are the gateways of other regions, where this is one."""
        self._peers = peers
        self._outside = outside
        self._node = peers.joined.node
        #: By who asked: when, and what had passed each link by then, by peer and class.
        self._then: dict[str, tuple[float, dict[tuple[str, int], tuple[int, int]]]] = {}

    def answer(self, asker: str, now: float) -> dict[str, Any]:
        """Everything that is known; rates are since the same one asked last, or since the beginning."""
        node, core = self._node, self._peers.core
        own = figures.own_links(node, now)
        for link in own:
            connection = self._peers.up.get(link["peer"])
            link["address"] = "" if connection is None else connection.address
            link["dialled"] = connection is not None and connection.dialler is not None
            link["is_tls"] = connection is not None and connection.is_tls
            link["capacity"] = None if connection is None else self._peers.capacity(connection)
        self._add_rates(asker, own, core.priorities.classes, now)
        waiting = [
            dialler for dialler in self._peers.diallers if dialler.trouble and not self._peers.is_up(dialler.peer)
        ]
        turns = self._peers.joined.turns
        regions = {turns.names[number]: region for number, region in turns.regions.items()}
        if self._outside is not None:
            regions[node.name] = self._outside.joined.region
        brokers = figures.brokers(node)
        for broker in brokers:
            broker["gateway_of"] = regions.get(broker["name"], "")
        found = {
            "name": node.name,
            "cluster": self._peers.me.cluster,
            "strategy": node.carrier.strategy.name,
            "brokers": brokers,
            "links": figures.links(node),
            "own": own,
            "away": [{"url": str(each.url), "peer": each.peer, "trouble": each.trouble} for each in waiting],
            "totals": self.totals(),
            "counts": figures.counted(node),
        }
        if self._outside is not None:
            found["outside"] = self._beyond(self._outside)
        return {"verdict": verdict(found), **found}

    @staticmethod
    def _beyond(outside: Peers[Outside]) -> dict[str, Any]:
        """What a gateway knows of those of other regions."""
        node = outside.joined.node
        brokers = figures.brokers(node)
        for broker in brokers:
            broker["gateway_of"] = region_of(broker["name"])
        return {
            "name": node.name,
            "region": outside.joined.region,
            "brokers": brokers,
            "links": figures.links(node),
            "totals": figures.totals(node, 0),
            "counts": figures.counted(node),
        }

    def brief(self) -> dict[str, Any]:
        """What whoever plans has to know of this broker's own links, and no more: it may have to cross thin ones."""
        node, up = self._node, self._peers.up
        own = [
            {
                "peer": link["peer"],
                "is_up": link["is_up"],
                "least_round_trip_s": link["least_round_trip_s"],
                "bytes_out": link["bytes_out"],
                "waiting_bytes": link["waiting_bytes"],
                "capacity": self._peers.capacity(up[link["peer"]]) if link["peer"] in up else None,
            }
            for link in figures.own_links(node, 0.0)
        ]
        return {"name": node.name, "strategy": node.carrier.strategy.name, "own": own}

    def _add_rates(self, asker: str, own: list[dict[str, Any]], classes: Classes, now: float) -> None:
        passed: dict[tuple[str, int], tuple[int, int]] = {}
        then, before = self._then.pop(asker, (0.0, {}))
        for link in own:
            elapsed = max(now - then, 1e-3) if then else max(link["since_s"], 1e-3)
            for class_ in link["classes"]:
                key = link["peer"], class_["level"]
                passed[key] = class_["sent_bytes"], class_["received_bytes"]
                sent, received = before.get(key, (0, 0))
                class_["class"] = classes.names[class_["level"]]
                class_["sent_bytes_per_s"] = (class_["sent_bytes"] - sent) / elapsed
                class_["received_bytes_per_s"] = (class_["received_bytes"] - received) / elapsed
        if len(self._then) >= _ASKERS:
            del self._then[next(iter(self._then))]
        self._then[asker] = now, passed

    def totals(self) -> dict[str, int]:
        """The numbers that have no name of a link, a class or a reason."""
        grants = self._peers.joined.grants
        return {
            **figures.totals(self._node, self._peers.core.from_brokers.useless),
            "interests/spared": len(grants.sparing.spared),
            "interests/supplemented": grants.supplemented,
        }

    @property
    def lost(self) -> dict[str, int]:
        """How often links were lost, by reason."""
        return figures.lost(self._node)

    @property
    def counts(self) -> dict[str, int]:
        """What happened between brokers, by name."""
        return figures.counted(self._node)

    @property
    def links(self) -> list[figures.LinkNumbers]:
        """What is shown of each link."""
        return figures.by_link(self._node)

    def topics(self) -> dict[str, int]:
        """The same as topics below ``$SYS/broker/``."""
        found = dict(self.totals())
        found.update({f"count/{name}": count for name, count in self.counts.items()})
        found.update({f"lost/{why}": count for why, count in self.lost.items()})
        for link in self.links:
            base = f"link/{link.peer.translate(_SPECIAL)}"
            found[f"{base}/up"] = link.up
            found[f"{base}/round_trip_us"] = round(link.round_trip_s * 1e6)
            for level, (sent, received) in enumerate(zip(link.sent_bytes, link.received_bytes, strict=True)):
                found[f"{base}/class/{level}/bytes/sent"] = sent
                found[f"{base}/class/{level}/bytes/received"] = received
        return {f"tieline/net/{name}": number for name, number in found.items()}


def verdict(found: dict[str, Any]) -> str:
    """The one sentence that says how it is."""
    others = [broker for broker in found["brokers"] if not broker["is_here"]]
    missing = [broker["name"] for broker in others if not broker["is_reachable"]]
    down = [link for link in found["own"] if not link["is_up"]]
    parts = [f"{_several(len(others) - len(missing) + 1, 'broker')} joined" if others else "No other broker is known"]
    if missing:
        parts.append(f"{', '.join(missing)} cannot be reached")
    if down:
        latest = min(down, key=lambda link: float(link["since_s"]))
        why = f": {latest['why']}" if latest["why"] else ""
        parts.append(f"{_several(len(down), 'link')} down (to {latest['peer']} for {latest['since_s']:.0f} s{why})")
    # what a broker said last that is away is no news
    halves = [
        link
        for link in found["links"]
        if not link["is_up"] and not link["is_own"] and not {*missing}.intersection(link["ends"])
    ]
    if halves:
        parts.append(f"{_several(len(halves), 'link')} elsewhere that only one end names")
    known = {link["peer"] for link in down}
    silent = [each["url"] for each in found["away"] if each["peer"] not in known]
    if silent:
        parts.append(f"nobody answers at {', '.join(silent)}")
    return f"{', '.join(parts)}."


def _several(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
