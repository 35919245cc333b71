"""What is known of one broker at one moment, and of others where it is joined: made for verdicts, in plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final  # Any: values of JSON

from tieline.conf.quantities import bound
from tieline.net.page.grid import grid
from tieline.net.page.neighbours import Neighbours, links
from tieline.net.page.plan import figures
from tieline.net.page.seen import BrokerSeen, ClassSeen, ClientSeen, PlanSeen, Seen
from tieline.sched.levels import LEVELS

if TYPE_CHECKING:
    from tieline.core.answers.survey import Survey
    from tieline.core.answers.why import Standing
    from tieline.net.page.sampler import Sample
    from tieline.net.services import Running

#: What a planner said so long ago is no news: it is dead, or was stopped.
PLANNER_S: Final = 120.0


class Observer:
    """Looks at one broker and at what it knows of the others."""

    def __init__(self, server: Running, neighbours: Neighbours) -> None:
        self._server = server
        self._neighbours = neighbours
        #: What the page has to subscribe to for the grid; None where no event type has voltage and frequency.
        self.grid = grid(server.settings.event)

    def net(self, asker: str, now: float) -> dict[str, Any] | None:
        """What is known of the network; None where this broker is alone.  Rates are since the same one asked last."""
        return None if self._server.net is None else self._server.net.answer(asker, now)

    def seen(
        self, sample: Sample, survey: Survey, net: dict[str, Any] | None, now: float
    ) -> tuple[Seen, list[dict[str, Any]]]:
        """Everything that verdicts are about, and all links as they are shown; without ``net``, of this broker."""
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
            grid="" if self.grid is None else self.grid["filter"],
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
            figures=figures(said),
        )


def _useless(net: dict[str, Any] | None) -> float | None:
    if net is None:
        return None
    came = sum(each["received"] for link in net["own"] for each in link["classes"])
    useless: int = net["totals"]["useless"]
    return useless / came if came else None
