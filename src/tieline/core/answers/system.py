"""The broker about itself: ``$SYS`` topics, under mosquitto's names where mosquitto has them.

https://mosquitto.org/man/mosquitto-8.html lists those; ``$SYS/broker/tieline/…`` holds what only this broker knows.
Values are retained, and published again only when they have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Reversible
from json import dumps
from math import ceil, exp
from typing import TYPE_CHECKING

from tieline.core.account import NO_LEVEL, Drop, Dropped
from tieline.core.answers.traffic import report
from tieline.core.message import Message
from tieline.core.outbound.deliver import deliver
from tieline.version import __version__

if TYPE_CHECKING:
    from tieline.core.broker import Broker

#: Averages over this many minutes, as mosquitto names them.
_SPANS = {"1min": 60.0, "5min": 300.0, "15min": 900.0}


class System:
    """Publishes the broker's counters at a fixed interval."""

    def __init__(self, broker: Broker, now: float) -> None:
        self._broker = broker
        self._start = now
        self._last = now
        self._interval = broker.settings.mqtt.sys_interval_s
        #: Numbers that only the shell knows, by topic below ``$SYS/broker/``.
        self.beside: Callable[[], Mapping[str, int]] = dict
        #: What was published last, by topic.
        self._published: dict[str, str] = {}
        #: The counters behind the load averages at the last report, and the averages, by mosquitto's name.
        self._counted: dict[str, int] = {}
        self._loads: dict[str, float] = {}
        if self._interval:
            broker.timers.at(now, self._report)

    def values(self, now: float) -> dict[str, str]:
        """Every value, by topic."""
        broker = self._broker
        account = broker.account
        connected = sum(session.connection is not None for session in broker.sessions.values())
        waiting = sum(len(session.queue) + len(session.inflight) for session in broker.sessions.values())
        numbers: dict[str, int] = {
            "clients/total": len(broker.sessions),
            "clients/connected": connected,
            "clients/active": connected,
            "clients/disconnected": len(broker.sessions) - connected,
            "clients/inactive": len(broker.sessions) - connected,
            "clients/expired": account.sessions_expired,
            "clients/maximum": account.sessions_most,
            "connections/socket/count": len(broker.connections),
            "messages/received": account.packets_in,
            "messages/sent": account.packets_out + account.publishes_out,
            "messages/stored": waiting + len(broker.retained),
            "store/messages/count": waiting + len(broker.retained),
            "store/messages/bytes": broker.queued_bytes + broker.retained.bytes,
            "publish/messages/received": account.publishes_in,
            "publish/messages/sent": account.publishes_out,
            "publish/messages/dropped": sum(account.drops.values()),
            "bytes/received": account.bytes_in,
            "bytes/sent": account.bytes_out,
            "retained messages/count": len(broker.retained),
            "subscriptions/count": broker.routes.count,
            "shared_subscriptions/count": broker.routes.shared,
            "tieline/content/subscriptions": broker.routes.asking,
            "tieline/content/sifted": account.sifted,
            "tieline/content/unreadable": account.unreadable,
            "tieline/content/references": broker.memory.kept,
            "tieline/content/forgotten/topics": broker.memory.forgotten_alone,
            "tieline/content/forgotten/total": broker.memory.forgotten_together,
            "tieline/producers/count": len(broker.producers),
            "tieline/producers/forgotten": broker.producers.forgotten,
            "tieline/queued/bytes": broker.queued_bytes,
            "tieline/store/commits": broker.journal.commits,
            "tieline/store/waiting": broker.journal.waiting,
            "tieline/routes/known": len(broker.routes.known),
            "tieline/routes/resets": broker.routes.resets,
        }
        numbers.update({f"tieline/dropped/{why}": count for why, count in account.drops.items()})
        numbers.update({f"tieline/closed/{why}": count for why, count in account.closed.items()})
        numbers.update({f"tieline/refused/{why}": count for why, count in account.refusals.items()})
        numbers.update({f"tieline/held/{why}": count for why, count in account.holds.items()})
        numbers["tieline/claims/lowered"] = broker.claims.lowered
        numbers["tieline/claims/throttled"] = broker.claims.throttled
        numbers["tieline/claims/unknown"] = account.unknown_levels
        numbers.update(self.beside())
        values = {f"$SYS/broker/{name}": str(number) for name, number in numbers.items()}
        for traffic in report(broker, now):
            base = f"$SYS/broker/tieline/class/{traffic.level}"
            values[f"{base}/name"] = traffic.name
            values[f"{base}/received"] = str(traffic.received)
            values[f"{base}/congested"] = str(traffic.congested)
            for why, count in account.drops_by_level[traffic.level].items():
                values[f"{base}/dropped/{why}"] = str(count)
            values[f"{base}/wait/p50"] = f"{traffic.wait_p50_s:.3f}"
            values[f"{base}/wait/p99"] = f"{traffic.wait_p99_s:.3f}"
            values[f"{base}/wait/oldest"] = f"{traffic.oldest_s:.3f}"
        for drop in _last_of_each(account.last_drops):
            # a drop names a topic: whoever may read $SYS may not therefore know of every other
            broker.routes.named[f"$SYS/broker/tieline/last_drop/{drop.why}"] = drop.topic
            values[f"$SYS/broker/tieline/last_drop/{drop.why}"] = dumps(
                {
                    "class": broker.classes.names[drop.level] if drop.level != NO_LEVEL else "",
                    "client": drop.client,
                    "topic": drop.topic,
                    "messages": drop.messages,
                    "queued": drop.queued,
                    "age_s": round(drop.age_s, 3),
                }
            )
        values["$SYS/broker/version"] = f"tieline version {__version__}"
        values["$SYS/broker/uptime"] = f"{int(now - self._start)} seconds"
        values["$SYS/broker/tieline/name"] = broker.settings.name
        given = broker.heat_source
        values["$SYS/broker/tieline/heat/source"] = given.name
        values["$SYS/broker/tieline/heat/entries"] = str(len(given.table or ()))
        values["$SYS/broker/tieline/heat/left"] = str(ceil(given.left_s(now)))
        for name, load in self._loads.items():
            values[f"$SYS/broker/load/{name}"] = f"{load:.2f}"
        return values

    def _report(self, now: float) -> None:
        self._average(now)
        broker = self._broker
        for topic, value in self.values(now).items():
            if self._published.get(topic) == value:
                continue
            self._published[topic] = value
            self.publish(topic, value, now)
        broker.timers.at(now + self._interval, self._report)

    def publish(self, topic: str, value: str, now: float) -> None:
        """Say one thing about the broker, now."""
        broker = self._broker
        message = Message(topic.encode(), value.encode(), retain=True, level=broker.default_level, at=now)
        if broker.settings.mqtt.retain_available:
            broker.retained.put(topic, message, now)
        route = broker.routes.find(topic, message.topic)
        if route.has_receivers:
            deliver(broker, message, route, now)

    def _average(self, now: float) -> None:
        """Move the load averages on: exponential, per minute, as mosquitto computes them."""
        account = self._broker.account
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
