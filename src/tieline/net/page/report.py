"""The object that the page is drawn from: composed once a second while somebody looks, in plain values.

What it may hold is bounded: each of its lists has a greatest length, names that strangers have chosen are cut, and the
whole is shortened until it fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final  # Any: values of JSON

from msgspec.structs import asdict

from tieline.net.page.drops import drops
from tieline.net.page.happenings import Happenings
from tieline.net.page.neighbours import Neighbours
from tieline.net.page.observer import Observer
from tieline.net.page.people import TEXTS
from tieline.net.page.seen import BrokerSeen, ClientSeen, Finding, Seen, State
from tieline.net.page.verdicts import verdicts
from tieline.net.page.words import shortened
from tieline.version import __version__

if TYPE_CHECKING:
    from tieline.core.answers.survey import Survey
    from tieline.net.page.sampler import Sample
    from tieline.net.services import Running

#: The number of the contract: a page of another number has to be loaded anew.
CONTRACT: Final = 1
#: Findings, rules of one level and clients that are shown.
MOST_FINDINGS: Final = 20
MOST_RULES: Final = 6
MOST_CLIENTS: Final = 10


class Report:
    """Puts together what is known of one broker and its network."""

    def __init__(self, server: Running, neighbours: Neighbours) -> None:
        self._server = server
        self._neighbours = neighbours
        self._observer = Observer(server, neighbours)
        self._happenings = Happenings()

    def notice(self, time: float) -> None:
        """See, once a second, whether something has happened that explains what charts show."""
        server = self._server
        links = {} if server.net is None else {link.peer: bool(link.up) for link in server.net.links}
        epoch = 0
        if server.across is not None:
            epoch = server.across.plans.epoch
        self._happenings.notice(links, epoch, time)

    def make(self, sample: Sample, survey: Survey, now: float) -> dict[str, Any]:
        """Everything that the page shows, at this moment."""
        net = self._observer.net("page", now)
        seen, shown_links = self._observer.seen(sample, survey, net, now)
        views, findings = verdicts(seen)
        core, settings = self._server.core, self._server.settings
        own_state = self._own_state(sample, survey, now)
        return {
            "v": CONTRACT,
            "time": sample.time,
            "name": settings.name,
            "version": __version__,
            "uptime_s": seen.uptime_s,
            "listeners": self._server.urls,
            "kept": not core.journal.is_volatile,
            "logged": core.journal.recorded if settings.log.capture and not core.journal.is_volatile else None,
            "views": {name: asdict(verdict) for name, verdict in views.items()},
            "attention": [shown(finding) for finding in findings[:MOST_FINDINGS]],
            "attention_more": max(0, len(findings) - MOST_FINDINGS),
            "tiles": self._tiles(sample, survey, seen),
            "classes": self._classes(sample, seen),
            "policy": {
                "name": settings.priority.policy,
                "floor": settings.priority.floor,
                "congested_sessions": survey.congested_sessions,
            },
            "drops": drops(core.account, core.priorities.classes.names),
            "dropped_total": sum(core.account.drops.values()),
            "slowest": [_slow(client) for client in seen.slow[:MOST_CLIENTS]],
            "sessions": {
                "all": survey.sessions,
                "connected": survey.connected,
                "waiting": survey.waiting,
                "held": survey.held,
                "away": survey.away,
            },
            "conditions": {
                "total": core.routes.conditional,
                "read_per_s": sample.read_per_s,
                "unreadable_per_s": sample.unreadable_per_s,
            },
            "joined": net is not None,
            "brokers": [_broker(broker, own_state) for broker in seen.brokers],
            "links": shown_links,
            "network": self._network(net),
            "plan": self._plan(seen),
            "grid": self._observer.grid,
            "events": self._happenings.last(sample.time),
            "point": sample.point,
        }

    def brief(self, sample: Sample, survey: Survey, now: float) -> dict[str, Any]:
        """The same in few words, for another broker whose page shows this one."""
        net = self._observer.net("brief", now)
        seen, _ = self._observer.seen(sample, survey, None, now)
        return {
            "name": seen.name,
            "state": self._own_state(sample, survey, now),
            "per_s": sample.received_per_s,
            "clients": survey.connected,
            "lag_s": seen.lag_s,
            "slowest": [_slow(client) for client in seen.slow[: MOST_CLIENTS // 2]],
            "links": [] if net is None else [_own_link(link) for link in net["own"]],
        }

    def verdict(self, sample: Sample, survey: Survey, now: float) -> dict[str, Any]:
        """How the broker is, and what needs attention."""
        seen, _ = self._observer.seen(sample, survey, self._observer.net("verdict", now), now)
        views, findings = verdicts(seen)
        return {"verdict": asdict(views["overview"]), "attention": [shown(each) for each in findings[:MOST_FINDINGS]]}

    def _own_state(self, sample: Sample, survey: Survey, now: float) -> State:
        """How this broker is, whatever there is to say of others."""
        seen, _ = self._observer.seen(sample, survey, None, now)
        views, _ = verdicts(seen)
        states = {view.state for view in views.values()}
        return "bad" if "bad" in states else "warn" if "warn" in states else "ok"

    @staticmethod
    def _tiles(sample: Sample, survey: Survey, seen: Seen) -> dict[str, Any]:
        urgent = seen.classes[0]
        return {
            "urgent": {"p99_s": urgent.p99_s, "limit_s": urgent.limit_s, "oldest_s": urgent.oldest_s},
            "received_per_s": sample.received_per_s,
            "of_brokers_per_s": sample.of_brokers_per_s,
            "bytes_in_per_s": sample.bytes_in_per_s,
            "sent_per_s": sample.sent_per_s,
            "bytes_out_per_s": sample.bytes_out_per_s,
            "waiting_bytes": sample.waiting_bytes,
            "waiting_limit_bytes": seen.waiting_limit,
            "waiting_messages": sum(survey.waiting_by_level),
            "dropped_hour": sample.dropped_hour,
            "dropped_urgent_hour": sample.dropped_urgent_hour,
            "connected": survey.connected,
            "sessions": survey.sessions,
        }

    def _classes(self, sample: Sample, seen: Seen) -> list[dict[str, Any]]:
        rules = self._server.settings.class_
        drops = self._server.core.account.drops_by_level
        return [
            {
                **asdict(each),
                "event_classes": [rule.name for rule in rules if rule.level == each.level][:MOST_RULES],
                "received_per_s": sample.class_per_s[each.level],
                "p50_s": sample.p50_s[each.level],
                "dropped": drops[each.level].total(),
            }
            for each in seen.classes
        ]

    def _network(self, net: dict[str, Any] | None) -> dict[str, Any] | None:
        if net is None:
            return None
        return {
            "strategy": net["strategy"],
            "cluster": net["cluster"],
            "verdict": net["verdict"],
            "silent": self._neighbours.silent,
            "totals": net["totals"],
        }

    @staticmethod
    def _plan(seen: Seen) -> dict[str, Any] | None:
        plan = seen.plan
        if plan is None:
            return None
        in_force = {"epoch": plan.epoch, "name": plan.name, "topics": plan.topics} if plan.epoch else None
        planner = None
        if plan.planner_age_s is not None:
            planner = {"state": plan.planner, "verdict": plan.planner_said, "age_s": plan.planner_age_s}
        return {"in_force": in_force, "planned": plan.planned, "astray": plan.astray, "planner": planner}


def shown(finding: Finding) -> dict[str, Any]:
    """A finding as JSON."""
    found = asdict(finding)
    del found["weight"]
    return found


def _slow(client: ClientSeen) -> dict[str, Any]:
    return {
        "client": shortened(client.client),
        "at": client.at,
        "why": client.why,
        "text": TEXTS.get(client.why, "held"),
        "waiting": client.waiting,
        "waiting_bytes": client.waiting_bytes,
        "oldest_s": client.oldest_s,
        "behind": [*client.behind],
        "dropped": client.dropped,
    }


def _broker(broker: BrokerSeen, own_state: State) -> dict[str, Any]:
    state: str = own_state if broker.is_here else broker.state
    if not broker.is_reachable:
        state = "bad"
    elif broker.is_silent:
        state = "silent"
    return {
        "name": broker.name,
        "state": state,
        "per_s": broker.per_s,
        "clients": broker.clients,
        "lag_s": broker.lag_s,
        "age_s": broker.age_s,
        "is_here": broker.is_here,
        "is_reachable": broker.is_reachable,
        "at": None,
    }


def _own_link(link: dict[str, Any]) -> dict[str, Any]:
    kept = ("peer", "is_up", "since_s", "capacity", "round_trip_s", "why")
    numbers = ("level", "sent_bytes_per_s", "received_bytes_per_s", "waiting")
    classes = [{name: each[name] for name in numbers} for each in link["classes"]]
    return {name: link[name] for name in kept} | {"classes": classes}
