"""The four classes as an operator sees them: how much, how long it waits, who is congested, which topics are hot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice

from tieline.core.account import Account
from tieline.core.client import Session
from tieline.core.routing.classes import Classes
from tieline.core.routing.routes import Routes
from tieline.sched.levels import LEVELS

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


def report(sessions: Iterable[Session], classes: Classes, account: Account, now: float) -> list[ClassReport]:
    """All four, the most urgent first."""
    congested = [0] * LEVELS
    oldest_s = [0.0] * LEVELS
    for session in sessions:
        backlog = session.backlog
        if backlog is None:
            continue
        for level in range(LEVELS):
            congested[level] += backlog.congestion.states[level]
            waiting = backlog.policy.oldest(level)
            if waiting is not None:
                oldest_s[level] = max(oldest_s[level], now - waiting.since)
    return [
        ClassReport(
            name=classes.names[level],
            level=level,
            received=account.received_by_level[level],
            wait_p50_s=account.wait_quantile(level, 0.5),
            wait_p99_s=account.wait_quantile(level, 0.99),
            congested=congested[level],
            oldest_s=oldest_s[level],
            timeout_s=classes.rules.classes[level].timeout_s,
        )
        for level in range(LEVELS - 1, -1, -1)
    ]


def hottest(routes: Routes) -> list[tuple[str, float, str]]:
    """The hottest topics of those remembered, and whose heat that is: ``own`` or ``given``."""
    known = islice(routes.known.items(), LOOKED_AT)
    hot = nlargest(HOTTEST, ((route.heat, topic, route.is_given) for topic, route in known if route.heat))
    return [(topic.decode(), heat, "given" if is_given else "own") for heat, topic, is_given in hot]
