"""The network on the page: what this broker knows of it, and what the others have said of themselves lately.

Every broker knows who is there and which links are up; what passes a link is known at its ends alone.  So while
somebody looks, the others are asked for a *brief*, a short answer about themselves, and each brief stands until the
next one comes, with its age beside it.
"""

from __future__ import annotations

from typing import Any, Final  # Any: values of JSON

from tieline.net.page.seen import BrokerSeen, ClientSeen, LinkSeen, State

#: Brokers, links and clients that are shown.
MOST: Final = 200
#: How often others are asked while somebody looks, in seconds, and for how long what they said is worth showing.
EVERY_S: Final = 5.0
STANDS_S: Final = 600.0


class Neighbours:
    """What other brokers have said of themselves."""

    def __init__(self) -> None:
        #: By broker: when, and what.
        self._briefs: dict[str, tuple[float, dict[str, Any]]] = {}
        #: Those that did not answer the last time.
        self.silent: list[str] = []

    def heard(self, answers: dict[str, dict[str, Any]], silent: list[str], now: float) -> None:
        """Briefs have come, and some have not."""
        for name, brief in answers.items():
            if "error" not in brief:
                self._briefs[name] = now, brief
        self._briefs = {name: known for name, known in self._briefs.items() if now - known[0] < STANDS_S}
        self.silent = silent

    def briefs(self) -> dict[str, dict[str, Any]]:
        """The last brief of each broker."""
        return {name: brief for name, (_, brief) in self._briefs.items()}

    def brokers(self, net: dict[str, Any], here: BrokerSeen, now: float) -> list[BrokerSeen]:
        """All brokers that are known, this one first; ``net`` is the answer of the report about the network."""
        found = [here]
        for broker in net["brokers"][:MOST]:
            if broker["is_here"]:
                continue
            then, brief = self._briefs.get(broker["name"], (None, {}))
            found.append(
                BrokerSeen(
                    name=broker["name"],
                    is_reachable=broker["is_reachable"],
                    age_s=None if then is None else now - then,
                    per_s=_number(brief.get("per_s")),
                    clients=None if brief.get("clients") is None else int(brief["clients"]),
                    lag_s=_number(brief.get("lag_s")),
                    state=_state(brief.get("state")),
                )
            )
        return found

    def slow(self) -> list[ClientSeen]:
        """Clients of other brokers that are behind, as those say."""
        return [_client(name, each) for name, brief in self.briefs().items() for each in brief.get("slowest", ())]


def links(net: dict[str, Any], briefs: dict[str, dict[str, Any]]) -> list[tuple[LinkSeen, dict[str, Any]]]:
    """All links that are known, those that are down first, then the fullest; beside each what its end has told."""
    told: dict[frozenset[str], tuple[str, dict[str, Any]]] = {}
    for name, brief in briefs.items():
        for link in brief.get("links", ()):
            told.setdefault(frozenset((name, link["peer"])), (name, link))
    here = net["name"]
    for link in net["own"]:
        told[frozenset((here, link["peer"]))] = here, link
    found = []
    for pair in net["links"]:
        teller, link = told.pop(frozenset(pair["ends"]), ("", {}))
        found.append(_link(tuple(pair["ends"]), teller, link, is_up=pair["is_up"]))
    # a link that neither end names any more is down, as long as this broker remembers it
    found += [_link((here, link["peer"]), here, link, is_up=False) for teller, link in told.values() if teller == here]
    return sorted(found, key=lambda each: (each[0].is_up, -(each[0].used or 0.0)))[:MOST]


def _link(ends: tuple[str, ...], teller: str, link: dict[str, Any], *, is_up: bool) -> tuple[LinkSeen, dict[str, Any]]:
    first, second = ends
    classes = link.get("classes", ())
    sent = 8 * sum(each["sent_bytes_per_s"] for each in classes)
    received = 8 * sum(each["received_bytes_per_s"] for each in classes)
    to_second, to_first = (sent, received) if teller == first else (received, sent)
    seen = LinkSeen(
        ends=(first, second),
        is_up=is_up,
        since_s=link.get("since_s"),
        why=str(link.get("why", "")),
        bits_per_s=max(sent, received) if link else None,
        capacity=_number(link.get("capacity")),
        waiting=sum(each["waiting"] for each in classes) if link else None,
    )
    return seen, {
        "ends": [first, second],
        "state": "up" if is_up else "down",
        "down_s": None if is_up else link.get("since_s"),
        "up_s": link.get("since_s") if is_up else None,
        "used": seen.used,
        "bps": sent + received if link else None,
        "capacity_bps": seen.capacity,
        "to_bps": [to_first, to_second] if link else None,
        "round_trip_s": link.get("round_trip_s") or None,
        "round_trip_p99_s": None,
        "useless": None,
        "waiting": seen.waiting,
        "why": seen.why,
        "told_by": teller,
        "classes": [
            {
                "level": each["level"],
                "bps": 8 * (each["sent_bytes_per_s"] + each["received_bytes_per_s"]),
                "p99_s": None,
                "waiting": each["waiting"],
            }
            for each in classes
        ],
    }


def _client(at: str, each: dict[str, Any]) -> ClientSeen:
    return ClientSeen(
        client=str(each["client"]),
        at=at,
        why=str(each["why"]),
        waiting=int(each["waiting"]),
        waiting_bytes=int(each["waiting_bytes"]),
        oldest_s=float(each["oldest_s"]),
        behind=tuple(each["behind"]),
        dropped=int(each["dropped"]),
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _state(value: object) -> State:
    return "bad" if value == "bad" else "warn" if value == "warn" else "ok"
