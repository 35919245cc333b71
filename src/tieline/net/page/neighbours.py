"""The network on the page: what this broker knows of it, and what the others have said of themselves lately.

Every broker knows who is there and which links are up; what passes a link is known at its ends alone.  So while
somebody looks, the others are asked for a *brief*, a short answer about themselves, and each brief stands until the
next one comes, with its age beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final  # Any: values of JSON

import msgspec
from msgspec import Meta

from tieline.net.page.seen import BrokerSeen, ClientSeen, LinkSeen, State
from tieline.sched.levels import LEVELS

#: Brokers, links and clients that are shown.
MOST: Final = 200
#: How often others are asked while somebody looks, in seconds, and for how long what they said is worth showing.
EVERY_S: Final = 5.0
STANDS_S: Final = 600.0
#: How long a broker that is asked may owe an answer, and for how long it counts that it was asked.
SILENT_S: Final = 15.0


_Text = Annotated[str, Meta(max_length=1_024)]
_Amount = Annotated[float, Meta(ge=0, le=1e18)]
_Count = Annotated[int, Meta(ge=0, le=1 << 60)]


class BriefClient(msgspec.Struct, frozen=True, kw_only=True):
    """A client that is behind, as its broker tells it."""

    client: _Text
    why: _Text
    waiting: _Count
    waiting_bytes: _Count
    oldest_s: _Amount
    behind: Annotated[tuple[Annotated[int, Meta(ge=0, lt=LEVELS)], ...], Meta(max_length=LEVELS)]
    dropped: _Count


class BriefClass(msgspec.Struct, frozen=True, kw_only=True):
    """What passes a link of one level."""

    level: Annotated[int, Meta(ge=0, lt=LEVELS)]
    sent_bytes_per_s: _Amount
    received_bytes_per_s: _Amount
    waiting: _Count


class BriefLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link, as one of its ends tells it."""

    peer: _Text
    is_up: bool
    since_s: _Amount
    capacity: _Amount | None
    round_trip_s: _Amount
    why: _Text
    classes: Annotated[tuple[BriefClass, ...], Meta(max_length=LEVELS)]


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker says of itself: of others' words nothing else is believed or kept."""

    state: State
    per_s: _Amount
    clients: _Count
    lag_s: _Amount
    slowest: Annotated[tuple[BriefClient, ...], Meta(max_length=10)]
    links: Annotated[tuple[BriefLink, ...], Meta(max_length=MOST)]


class Neighbours:
    """What other brokers have said of themselves."""

    def __init__(self) -> None:
        #: By broker: when, and what.
        self._briefs: dict[str, tuple[float, Brief]] = {}
        #: Those that did not answer the last time, or nothing that could be understood.
        self.silent: list[str] = []
        #: When that was: while nobody looks, nobody is asked, and who says nothing then is not silent.
        self._asked_at = float("-inf")

    def heard(self, answers: Mapping[str, object], silent: list[str], now: float) -> None:
        """Briefs have come, and some have not."""
        self.silent, self._asked_at = list(silent), now
        for name, answer in answers.items():
            try:
                self._briefs[name] = now, msgspec.convert(answer, Brief)
            except msgspec.ValidationError:
                self.silent.append(name)
        self._briefs = {name: known for name, known in self._briefs.items() if now - known[0] < STANDS_S}

    def briefs(self) -> dict[str, Brief]:
        """The last brief of each broker."""
        return {name: brief for name, (_, brief) in self._briefs.items()}

    def brokers(self, net: dict[str, Any], here: BrokerSeen, now: float) -> list[BrokerSeen]:
        """All brokers that are known, this one first; ``net`` is the answer of the report about the network."""
        found = [here]
        for broker in net["brokers"][:MOST]:
            if broker["is_here"]:
                continue
            name, is_reachable = broker["name"], broker["is_reachable"]
            known = self._briefs.get(name)
            if known is None:
                is_silent = self._owes(name, None, now)
                found.append(BrokerSeen(name=name, is_reachable=is_reachable, age_s=None, is_silent=is_silent))
                continue
            then, brief = known
            found.append(
                BrokerSeen(
                    name=name,
                    is_reachable=is_reachable,
                    age_s=now - then,
                    is_silent=self._owes(name, now - then, now),
                    per_s=brief.per_s,
                    clients=brief.clients,
                    lag_s=brief.lag_s,
                    state=brief.state,
                )
            )
        return found

    def _owes(self, name: str, age_s: float | None, now: float) -> bool:
        was_asked = now - self._asked_at <= SILENT_S and name in self.silent
        return was_asked and (age_s is None or age_s > SILENT_S)

    def slow(self) -> list[ClientSeen]:
        """Clients of other brokers that are behind, as those say."""
        return [
            ClientSeen(
                client=each.client,
                at=name,
                why=each.why,
                waiting=each.waiting,
                waiting_bytes=each.waiting_bytes,
                oldest_s=each.oldest_s,
                behind=each.behind,
                dropped=each.dropped,
            )
            for name, brief in self.briefs().items()
            for each in brief.slowest
        ]


def links(net: dict[str, Any], briefs: dict[str, Brief]) -> list[tuple[LinkSeen, dict[str, Any]]]:
    """All links that are known, those that are down first, then the fullest; beside each what its end has told."""
    told: dict[frozenset[str], tuple[str, dict[str, Any]]] = {}
    for name, brief in briefs.items():
        for each in brief.links:
            told.setdefault(frozenset((name, each.peer)), (name, msgspec.to_builtins(each)))
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
        capacity=link.get("capacity"),
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
