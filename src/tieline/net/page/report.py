"""The object that the page is drawn from: composed once a second while somebody looks, in plain values.

What it may hold is bounded: each of its lists has a greatest length, names that strangers have chosen are cut, and the
whole is shortened until it fits.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final  # Any: values of JSON

from tieline.conf.schema import bound
from tieline.core.account import NO_LEVEL, Drop
from tieline.net.page.attention import SILENT_S
from tieline.net.page.grid import grid
from tieline.net.page.happenings import Happenings
from tieline.net.page.neighbours import Neighbours, links
from tieline.net.page.people import TEXTS
from tieline.net.page.seen import BrokerSeen, ClassSeen, ClientSeen, Finding, PlanSeen, Seen, State
from tieline.net.page.verdicts import Verdict, verdicts
from tieline.net.page.words import shortened
from tieline.sched.levels import LEVELS
from tieline.version import __version__

if TYPE_CHECKING:
    from tieline.core.answers.survey import Survey
    from tieline.core.answers.why import Standing
    from tieline.net.page.sampler import Sample
    from tieline.net.services import Running

#: The number of the contract: a page of another number has to be loaded anew.
CONTRACT: Final = 1
#: Findings, kinds of drops, rules of one level and clients that are shown.
MOST_FINDINGS: Final = 20
MOST_DROPS: Final = 12
MOST_RULES: Final = 6
MOST_CLIENTS: Final = 10
#: What a planner said so long ago is no news: it is dead, or was stopped.
PLANNER_S: Final = 120.0
#: What would have helped against each kind of drop.
HELPS: Final = {
    Drop.QUEUE_FULL: "a faster reader, or QoS 1",
    Drop.MEMORY_FULL: "faster readers, or a larger `limits.queue_bytes_total`",
    Drop.EXPIRED: "nothing: its publisher asked for it",
    Drop.TOO_LARGE: "a client that takes larger packets",
    Drop.OFFLINE: "QoS 1, which is kept for who is away",
    Drop.SESSION_ENDED: "a longer session expiry",
    Drop.DENIED: "a rule that allows it: `tieline why CLIENT publish TOPIC`",
    Drop.REFUSED: "a faster reader: its publisher was told",
    Drop.RETAINED_FULL: "a larger `limits.retained_bytes`",
    Drop.NO_MEMBER: "a member of the shared group that is there",
    Drop.CLASS_TOO_LARGE: "smaller messages, or a larger `max_packet` of the class",
    Drop.REJECTED: "nothing here: the client refused it",
    Drop.UNCONFIRMED: "a longer session expiry",
    Drop.UNKNOWN_LEVEL: "a priority from 0 to 3",
    Drop.REPEATED: "nothing: it has arrived before",
    Drop.MALFORMED_ONCE: "`$once` as PRODUCER/NUMBER",
    Drop.LINK_FULL: "a wider link, a plan, or QoS 1",
    Drop.OUT_OF_TURN: "sending again what was refused, first",
}


class Report:
    """Puts together what is known of one broker and its network."""

    def __init__(self, server: Running, neighbours: Neighbours) -> None:
        self._server = server
        self._neighbours = neighbours
        self._grid = grid(server.settings.event)
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
        net = self._net("page", now)
        seen, shown_links = self._seen(sample, survey, net, now)
        views, findings = verdicts(seen)
        core, settings = self._server.core, self._server.settings
        own_state = _own_state(views["messages"], views["clients"])
        return {
            "v": CONTRACT,
            "time": sample.time,
            "name": settings.name,
            "version": __version__,
            "uptime_s": seen.uptime_s,
            "listeners": self._server.urls,
            "kept": not core.journal.is_volatile,
            "log_records": None,
            "lake_behind_s": None,
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
            "drops": self._drops(),
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
            "grid": self._grid,
            "events": self._happenings.last(sample.time),
            "point": sample.point,
        }

    def brief(self, sample: Sample, survey: Survey, now: float) -> dict[str, Any]:
        """The same in few words, for another broker whose page shows this one."""
        net = self._net("brief", now)
        seen, _ = self._seen(sample, survey, net, now)
        views, _ = verdicts(seen)
        return {
            "name": seen.name,
            "state": _own_state(views["messages"], views["clients"]),
            "per_s": sample.received_per_s,
            "clients": survey.connected,
            "lag_s": seen.lag_s,
            "slowest": [_slow(client) for client in seen.slow[: MOST_CLIENTS // 2] if client.at == seen.name],
            "links": [] if net is None else [_own_link(link) for link in net["own"]],
        }

    def verdict(self, sample: Sample, survey: Survey, now: float) -> dict[str, Any]:
        """How the broker is, and what needs attention."""
        seen, _ = self._seen(sample, survey, self._net("verdict", now), now)
        views, findings = verdicts(seen)
        return {"verdict": asdict(views["overview"]), "attention": [shown(each) for each in findings[:MOST_FINDINGS]]}

    # -- what is known

    def _net(self, asker: str, now: float) -> dict[str, Any] | None:
        return None if self._server.net is None else self._server.net.answer(asker, now)

    def _seen(
        self, sample: Sample, survey: Survey, net: dict[str, Any] | None, now: float
    ) -> tuple[Seen, list[dict[str, Any]]]:
        server = self._server
        core, settings = server.core, server.settings
        name = settings.name
        slow = [self._client(standing) for standing in survey.slowest]
        here = BrokerSeen(
            name=name,
            is_here=True,
            per_s=sample.received_per_s,
            clients=survey.connected,
            lag_s=server.vitals.lag_s,
        )
        told = [] if net is None else links(net, self._neighbours.briefs())
        limit = bound(settings.limits.queue_bytes_total)
        seen = Seen(
            name=name,
            uptime_s=now - server.started,
            classes=tuple(self._class(level, sample, survey) for level in range(LEVELS - 1, -1, -1)),
            slow=tuple(
                sorted(slow + ([] if net is None else self._neighbours.slow()), key=lambda each: -each.waiting_bytes)
            ),
            held=tuple(self._client(standing) for standing in survey.holding),
            sessions=survey.sessions,
            connected=survey.connected,
            away=survey.away,
            waiting=survey.waiting,
            held_count=survey.held,
            congested=survey.congested_sessions,
            waiting_bytes=sample.waiting_bytes,
            waiting_limit=None if settings.limits.queue_bytes_total == "none" else limit,
            dropped_hour=sample.dropped_hour,
            dropped_urgent_hour=sample.dropped_urgent_hour,
            lag_s=server.vitals.lag_s,
            store_trouble=core.journal.trouble,
            read_per_s=sample.read_per_s,
            unreadable_per_s=sample.unreadable_per_s,
            refused_logins=sample.refused_logins_minute,
            policy=settings.priority.policy,
            floor=settings.priority.floor,
            conditions=core.routes.conditional,
            brokers=(here,) if net is None else tuple(self._neighbours.brokers(net, here, now)),
            links=tuple(link for link, _ in told),
            strategy="" if net is None else net["strategy"],
            useless=_useless(net),
            plan=self._plan_seen(now),
            grid="" if self._grid is None else self._grid["filter"],
        )
        return seen, [shown_link for _, shown_link in told]

    def _class(self, level: int, sample: Sample, survey: Survey) -> ClassSeen:
        classes = self._server.core.priorities.classes
        return ClassSeen(
            level=level,
            name=classes.names[level],
            p99_s=sample.p99_s[level],
            oldest_s=survey.oldest_s[level],
            limit_s=classes.rules.classes[level].timeout_s,
            waiting=survey.waiting_by_level[level],
            congested=survey.congested[level],
        )

    def _client(self, standing: Standing) -> ClientSeen:
        names = self._server.core.priorities.classes.names
        return ClientSeen(
            client=standing.client,
            at=self._server.settings.name,
            why=standing.paused,
            waits_for=standing.waits_for,
            waiting=standing.queued + standing.spilled,
            waiting_bytes=standing.queued_bytes + standing.spilled_bytes,
            oldest_s=standing.oldest_s,
            behind=tuple(names.index(name) for name in standing.congested),
            dropped=standing.dropped,
        )

    def _plan_seen(self, now: float) -> PlanSeen | None:
        if self._server.across is None:
            return None
        said = self._server.across.plans.answer({"do": "plan"}, now)
        counts = said["counts"]
        planner = said["planner"]
        return PlanSeen(
            planner="" if planner is None or planner["age_s"] > PLANNER_S else planner["state"],
            planner_said="" if planner is None else planner["verdict"],
            planner_age_s=None if planner is None else planner["age_s"],
            epoch=said["epoch"],
            name=said["plan"],
            topics=said["topics"],
            planned=counts["planned"],
            astray=sum(count for what, count in counts.items() if what != "planned"),
        )

    # -- what is shown

    @staticmethod
    def _tiles(sample: Sample, survey: Survey, seen: Seen) -> dict[str, Any]:
        urgent = seen.classes[0]
        return {
            "urgent": {"p99_s": urgent.p99_s, "limit_s": urgent.limit_s, "oldest_s": urgent.oldest_s},
            "received_per_s": sample.received_per_s,
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

    def _drops(self) -> list[dict[str, Any]]:
        account = self._server.core.account
        names = (*self._server.core.priorities.classes.names, "")
        newest = {(drop.why, drop.level): drop.client for drop in account.last_drops}
        counted = [
            (count, why, level if level < LEVELS else NO_LEVEL)
            for level, drops in enumerate(account.drops_by_level)
            for why, count in drops.items()
        ]
        return [
            {
                "why": why.value,
                "class": names[level],
                "level": None if level == NO_LEVEL else level,
                "messages": count,
                "of": shortened(newest[why, level]) if newest.get((why, level)) else None,
                "helps": HELPS[why],
            }
            for count, why, level in sorted(counted, key=lambda each: -each[0])[:MOST_DROPS]
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
    elif broker.age_s is None or broker.age_s > SILENT_S:
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


def _own_state(*views: Verdict) -> State:
    states = {view.state for view in views}
    return "bad" if "bad" in states else "warn" if "warn" in states else "ok"


def _own_link(link: dict[str, Any]) -> dict[str, Any]:
    kept = ("peer", "is_up", "since_s", "capacity", "round_trip_s", "why")
    numbers = ("level", "sent_bytes_per_s", "received_bytes_per_s", "waiting")
    classes = [{name: each[name] for name in numbers} for each in link["classes"]]
    return {name: link[name] for name in kept} | {"classes": classes}


def _useless(net: dict[str, Any] | None) -> float | None:
    if net is None:
        return None
    came = sum(each["received"] for link in net["own"] for each in link["classes"])
    useless: int = net["totals"]["useless"]
    return useless / came if came else None
