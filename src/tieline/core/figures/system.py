"""The broker about itself: ``$SYS`` topics, under mosquitto's names where mosquitto has them.

https://mosquitto.org/man/mosquitto-8.html lists those; ``$SYS/broker/tieline/…`` holds what only this broker knows.
Values are retained, and published again only when they have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Reversible
from json import dumps
from math import ceil, exp

from tieline.conf.schema import Settings
from tieline.core.account import NO_LEVEL, Account, Drop, Dropped
from tieline.core.durable.journal import Journal
from tieline.core.figures.traffic import report
from tieline.core.holdings import Holdings
from tieline.core.inbound.connections import Connections
from tieline.core.inbound.producers import Producers
from tieline.core.inbound.sessions import Sessions
from tieline.core.message import Message
from tieline.core.outbound.deliver import Delivery
from tieline.core.outbound.retained import Retained
from tieline.core.outbound.spills import Spills
from tieline.core.routing.heat_source import HeatSource
from tieline.core.routing.priorities import Priorities
from tieline.core.routing.routes import Routes
from tieline.core.timers import Timers
from tieline.match.change import ChangeMemory
from tieline.version import __version__

#: Averages over this many minutes, as mosquitto names them.
_SPANS = {"1min": 60.0, "5min": 300.0, "15min": 900.0}


class System:
    """Publishes the broker's counters at a fixed interval."""

    def __init__(  # all whose numbers are told
        self,
        settings: Settings,
        sessions: Sessions,
        connections: Connections,
        routes: Routes,
        priorities: Priorities,
        references: ChangeMemory,
        producers: Producers,
        delivery: Delivery,
        spills: Spills,
        retained: Retained,
        heat_source: HeatSource,
        holdings: Holdings,
        journal: Journal,
        account: Account,
        timers: Timers,
        now: float,
    ) -> None:
        self.settings = settings
        self._sessions = sessions
        self._connections = connections
        self._routes = routes
        self._priorities = priorities
        self._references = references
        self._producers = producers
        self._delivery = delivery
        self._spills = spills
        self._retained = retained
        self._heat_source = heat_source
        self._holdings = holdings
        self._journal = journal
        self._account = account
        self._timers = timers
        self._start = now
        self._last = now
        self._interval = settings.mqtt.sys_interval_s
        #: Numbers that only the shell knows, by topic below ``$SYS/broker/``.
        self.beside: Callable[[], Mapping[str, int]] = dict
        #: What was published last, by topic.
        self._published: dict[str, str] = {}
        #: The counters behind the load averages at the last report, and the averages, by mosquitto's name.
        self._counted: dict[str, int] = {}
        self._loads: dict[str, float] = {}
        if self._interval:
            timers.at(now, self._report)

    def values(self, now: float) -> dict[str, str]:
        """Every value as it is now, by topic; published or not."""
        numbers = self._counts() | self._reasons()
        numbers.update(self.beside())
        values = {f"$SYS/broker/{name}": str(number) for name, number in numbers.items()}
        values |= self._of_classes(now) | self._of_drops()
        values["$SYS/broker/version"] = f"tieline version {__version__}"
        values["$SYS/broker/uptime"] = f"{int(now - self._start)} seconds"
        values["$SYS/broker/tieline/name"] = self.settings.name
        given = self._heat_source
        values["$SYS/broker/tieline/heat/source"] = given.name
        values["$SYS/broker/tieline/heat/entries"] = str(len(given.table or ()))
        values["$SYS/broker/tieline/heat/left"] = str(ceil(given.left_s(now)))
        for name, load in self._loads.items():
            values[f"$SYS/broker/load/{name}"] = f"{load:.2f}"
        return values

    def _counts(self) -> dict[str, int]:
        """How much there is of what, and how much there was."""
        account, routes, references = self._account, self._routes, self._references
        sessions = self._sessions.by_id.values()
        connected = sum(session.connection is not None for session in sessions)
        waiting = sum(len(session.queue) + len(session.inflight) for session in sessions)
        return {
            "clients/total": len(sessions),
            "clients/connected": connected,
            "clients/active": connected,
            "clients/disconnected": len(sessions) - connected,
            "clients/inactive": len(sessions) - connected,
            "clients/expired": account.sessions_expired,
            "clients/maximum": account.sessions_most,
            "connections/socket/count": len(self._connections.all),
            "messages/received": account.packets_in,
            "messages/sent": account.packets_out + account.publishes_out,
            "messages/stored": waiting + len(self._retained),
            "store/messages/count": waiting + len(self._retained),
            "store/messages/bytes": self._delivery.pool.bytes + self._retained.bytes,
            "publish/messages/received": account.publishes_in,
            "publish/messages/sent": account.publishes_out,
            "publish/messages/dropped": sum(account.drops.values()),
            "bytes/received": account.bytes_in,
            "bytes/sent": account.bytes_out,
            "retained messages/count": len(self._retained),
            "subscriptions/count": routes.count,
            "shared_subscriptions/count": routes.shared,
            "tieline/content/subscriptions": routes.conditional,
            "tieline/content/sifted": account.examinations,
            "tieline/content/unreadable": account.unreadable,
            "tieline/content/references": references.kept,
            "tieline/content/forgotten/topics": references.forgotten_alone,
            "tieline/content/forgotten/total": references.forgotten_together,
            "tieline/producers/count": len(self._producers),
            "tieline/producers/forgotten": self._producers.forgotten,
            "tieline/queued/bytes": self._delivery.pool.bytes,
            "tieline/spilled/messages": self._spills.messages,
            "tieline/spilled/bytes": self._spills.bytes,
            "tieline/spilled/sessions": len(self._spills.sessions),
            "tieline/spilled/total": self._spills.spilled,
            **{f"tieline/memory/{kind}": size for kind, size in self._holdings.by_kind().items()},
            "tieline/memory/total": self._holdings.total,
            "tieline/store/commits": self._journal.commits,
            "tieline/store/waiting": self._journal.waiting,
            "tieline/routes/known": len(routes.known),
            "tieline/routes/resets": routes.resets,
        }

    def _reasons(self) -> dict[str, int]:
        """How often something was dropped, closed, refused, held or lowered, by name."""
        account, claims = self._account, self._priorities.claims
        numbers: dict[str, int] = {f"tieline/dropped/{why}": count for why, count in account.drops.items()}
        numbers.update({f"tieline/closed/{why}": count for why, count in account.closed.items()})
        numbers.update({f"tieline/ended/{why}": count for why, count in account.sessions_ended.items()})
        numbers.update({f"tieline/refused/{why}": count for why, count in account.refusals.items()})
        numbers.update({f"tieline/held/{why}": count for why, count in account.holds.items()})
        numbers["tieline/claims/lowered"] = claims.lowered
        numbers["tieline/claims/throttled"] = claims.throttled
        numbers["tieline/claims/unknown"] = account.unknown_levels
        return numbers

    def _of_classes(self, now: float) -> dict[str, str]:
        values: dict[str, str] = {}
        account = self._account
        for traffic in report(self._sessions.by_id.values(), self._priorities.classes, account, now):
            base = f"$SYS/broker/tieline/class/{traffic.level}"
            values[f"{base}/name"] = traffic.name
            values[f"{base}/received"] = str(traffic.received)
            values[f"{base}/congested"] = str(traffic.congested)
            for why, count in account.drops_by_level[traffic.level].items():
                values[f"{base}/dropped/{why}"] = str(count)
            values[f"{base}/wait/p50"] = f"{traffic.wait_p50_s:.3f}"
            values[f"{base}/wait/p99"] = f"{traffic.wait_p99_s:.3f}"
            values[f"{base}/wait/oldest"] = f"{traffic.oldest_s:.3f}"
        return values

    def _of_drops(self) -> dict[str, str]:
        values: dict[str, str] = {}
        names = self._priorities.classes.names
        for drop in _last_of_each(self._account.last_drops):
            # a drop names a topic: whoever may read $SYS may not therefore know of every other
            topic = f"$SYS/broker/tieline/last_drop/{drop.why}"
            self._routes.named[topic] = drop.topic
            values[topic] = dumps(
                {
                    "class": names[drop.level] if drop.level != NO_LEVEL else "",
                    "client": drop.client,
                    "topic": drop.topic,
                    "messages": drop.messages,
                    "queued": drop.queued,
                    "age_s": round(drop.age_s, 3),
                }
            )
        return values

    def _report(self, now: float) -> None:
        self._average(now)
        for topic, value in self.values(now).items():
            if self._published.get(topic) == value:
                continue
            self._published[topic] = value
            self.publish(topic, value, now)
        self._timers.at(now + self._interval, self._report)

    def publish(self, topic: str, value: str, now: float) -> None:
        """Say one thing about the broker now, retained if the broker retains, to whoever may read it."""
        level = self._priorities.default_level
        message = Message(topic.encode(), value.encode(), retain=True, level=level, at=now)
        if self.settings.mqtt.retain_available:
            self._retained.put(topic, message, now)
        route = self._routes.find(topic, message.topic)
        if route.has_receivers:
            self._delivery.deliver(message, route, now)

    def _average(self, now: float) -> None:
        """Move the load averages on: exponential, per minute, as mosquitto computes them."""
        account = self._account
        counted = {
            "messages/received": account.packets_in,
            "messages/sent": account.packets_out + account.publishes_out,
            "publish/received": account.publishes_in,
            "publish/sent": account.publishes_out,
            "publish/dropped": sum(account.drops.values()),
            "bytes/received": account.bytes_in,
            "bytes/sent": account.bytes_out,
            "sockets": account.connections,
            "connections": account.connections,
        }
        elapsed = now - self._last
        if elapsed > 0:
            for name, count in counted.items():
                per_minute = (count - self._counted.get(name, 0)) * 60.0 / elapsed
                for span, seconds in _SPANS.items():
                    key = f"{name}/{span}"
                    old = self._loads.get(key, 0.0)
                    self._loads[key] = per_minute + exp(-elapsed / seconds) * (old - per_minute)
        self._counted = counted
        self._last = now


def _last_of_each(drops: Reversible[Dropped]) -> Iterable[Dropped]:
    """The newest record of each name."""
    found: dict[Drop, Dropped] = {}
    for drop in reversed(drops):
        found.setdefault(drop.why, drop)
    return found.values()
