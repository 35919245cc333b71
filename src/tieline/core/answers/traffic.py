"""The four classes as an operator sees them: how much, how long it waits, who is congested, which topics are hot."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING

from tieline.sched.levels import LEVELS

if TYPE_CHECKING:
    from tieline.core.broker import Broker

#: Topics in the heat table, and how many remembered topics are looked at for it.
HOTTEST = 10
LOOKED_AT = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassReport:
    """One level at one moment."""

    name: str
    level: int
    #: Messages received since the start.
    received: int
    #: Waiting time in congested queues, in seconds.
    wait_p50_s: float
    wait_p99_s: float
    #: Sessions for which the class is congested.
    congested: int
    #: How long the longest waiting message of any session has waited, and how long it may.
    oldest_s: float
    timeout_s: float


def report(broker: Broker, now: float) -> list[ClassReport]:
    """All four, the most urgent first."""
    congested = [0] * LEVELS
    oldest_s = [0.0] * LEVELS
    for session in broker.sessions.values():
        backlog = session.backlog
        if backlog is None:
            continue
        for level in range(LEVELS):
            congested[level] += backlog.congestion.states[level]
            waiting = backlog.policy.oldest(level)
            if waiting is not None:
                oldest_s[level] = max(oldest_s[level], now - waiting.since)
    account = broker.account
    return [
        ClassReport(
            name=broker.classes.names[level],
            level=level,
            received=account.received_by_level[level],
            wait_p50_s=account.wait_quantile(level, 0.5),
            wait_p99_s=account.wait_quantile(level, 0.99),
            congested=congested[level],
            oldest_s=oldest_s[level],
            timeout_s=broker.classes.rules.classes[level].timeout_s,
        )
        for level in range(LEVELS - 1, -1, -1)
    ]


def hottest(broker: Broker) -> list[tuple[str, float, str]]:
    """The hottest topics of those remembered, and whose heat that is: ``own`` or ``given``."""
    known = islice(broker.routes.known.items(), LOOKED_AT)
    hot = nlargest(HOTTEST, ((route.heat, topic, route.is_given) for topic, route in known if route.heat))
    return [(topic.decode(), heat, "given" if is_given else "own") for heat, topic, is_given in hot]
