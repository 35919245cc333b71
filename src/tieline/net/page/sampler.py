"""The broker's counters, read once a second: rates, waiting times of the last moments, and what goes into the history.

Waiting times are counted in buckets of powers of two since the start (:class:`tieline.core.account.Account`).  What is
shown is of the last ten seconds: the buckets then are taken off those now, and the wanted part is looked up as
Prometheus does, evenly inside a bucket.  Where nothing has waited in that time there is no such number.

What a broker has received is what its clients have published and what other brokers have sent it, since that is what it
has to do with: a control centre whose readings all come over links is not idle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from tieline.core.account import ON_ARRIVAL
from tieline.core.answers.survey import Survey
from tieline.core.figures.history import History
from tieline.sched.levels import LEVELS, URGENT

if TYPE_CHECKING:
    from tieline.net.services import Running

#: How many seconds the shown waiting times are of.
WINDOW_S: Final = 10
#: What was dropped is remembered for an hour, in steps of so many seconds.
STEP_S: Final = 10
HOUR_STEPS: Final = 360
#: Links whose use is remembered; the history has room for so many beside what is always there.
MOST_LINKS: Final = 11
#: Of these, ten seconds are as bad as the worst of them.
_WORST: Final = ("p99/", "oldest/", "lag")

Buckets = Sequence[int]


class Counters(Struct, frozen=True):
    """What only grows, at one moment."""

    now: float
    #: Of clients and of other brokers, and of these those of other brokers.
    received: int
    of_brokers: int
    sent: int
    bytes_in: int
    bytes_out: int
    dropped: int
    examined: int
    unreadable: int
    refused_logins: int
    by_level: tuple[int, ...]
    dropped_by_level: tuple[int, ...]
    #: Of what somebody should have got; what was refused on arrival is not lost to anybody who was promised it.
    lost_urgent: int
    waits: tuple[tuple[int, ...], ...]


class Sample(Struct):
    """One second in numbers."""

    time: float = 0.0
    received_per_s: float = 0.0
    #: Of these, those that other brokers sent.
    of_brokers_per_s: float = 0.0
    sent_per_s: float = 0.0
    bytes_in_per_s: float = 0.0
    bytes_out_per_s: float = 0.0
    dropped_per_s: float = 0.0
    #: Messages whose content was looked at, and those that could not be read.
    read_per_s: float = 0.0
    unreadable_per_s: float = 0.0
    refused_logins_minute: int = 0
    dropped_hour: int = 0
    dropped_urgent_hour: int = 0
    waiting_bytes: int = 0
    #: By level.
    class_per_s: list[float] = field(default_factory=lambda: [0.0] * LEVELS)
    p50_s: list[float | None] = field(default_factory=lambda: [None] * LEVELS)
    p99_s: list[float | None] = field(default_factory=lambda: [None] * LEVELS)
    #: The numbers of this second under their names in the history; NaN where there is none.
    point: dict[str, float] = field(default_factory=dict)


class Sampler:
    """Reads the counters of one broker, and keeps what the page shows of the past."""

    def __init__(self, server: Running) -> None:
        self._server = server
        self.history = History(_WORST)
        self.last = Sample()
        #: The counters of the last seconds, the oldest first.
        self._seconds: deque[Counters] = deque(maxlen=WINDOW_S + 1)
        #: Drops, urgent drops and refused logins, every ten seconds for an hour; and when the newest was taken.
        self._steps: deque[tuple[int, int, int]] = deque(maxlen=HOUR_STEPS)
        self._stepped = 0.0
        #: What had passed each link at the last second.
        self._passed: dict[str, int] = {}
        #: What all links that there are had brought at the last second: messages by level, and bytes.
        self._brought: list[int] = [0] * (LEVELS + 1)
        #: The same of all links that there were; it only grows.
        self._of_brokers = [0] * (LEVELS + 1)

    def sample(self, now: float, time: float, survey: Survey) -> Sample:
        """Read everything once; ``time`` is the wall clock's."""
        counters = self._read(now)
        then = self._seconds[-1] if self._seconds else counters
        first = self._seconds[0] if self._seconds else counters
        self._seconds.append(counters)
        elapsed = max(counters.now - then.now, 1e-3)

        def rate(name: str) -> float:
            grown: int = getattr(counters, name) - getattr(then, name)
            return max(0.0, grown / elapsed)

        sample = Sample(
            time=time,
            received_per_s=rate("received"),
            of_brokers_per_s=rate("of_brokers"),
            sent_per_s=rate("sent"),
            bytes_in_per_s=rate("bytes_in"),
            bytes_out_per_s=rate("bytes_out"),
            dropped_per_s=rate("dropped"),
            read_per_s=rate("examined"),
            unreadable_per_s=rate("unreadable"),
            waiting_bytes=self._server.core.queued_bytes,
            class_per_s=[
                max(0.0, (count - before) / elapsed)
                for count, before in zip(counters.by_level, then.by_level, strict=True)
            ],
            p50_s=[quantile(_grown(first.waits[n], counters.waits[n]), 0.5) for n in range(LEVELS)],
            p99_s=[quantile(_grown(first.waits[n], counters.waits[n]), 0.99) for n in range(LEVELS)],
        )
        self._remember_drops(counters, sample)
        sample.point = self._point(sample, counters, then, elapsed, survey)
        self.history.add(time, sample.point)
        self.last = sample
        return sample

    def _read(self, now: float) -> Counters:
        self._count_links()
        account, (*of_brokers, bytes_of_brokers) = self._server.core.account, self._of_brokers
        urgent = account.drops_by_level[URGENT]
        return Counters(
            now=now,
            received=account.publishes_in + sum(of_brokers),
            of_brokers=sum(of_brokers),
            sent=account.publishes_out,
            bytes_in=account.bytes_in + bytes_of_brokers,
            bytes_out=account.bytes_out,
            dropped=sum(account.drops.values()),
            examined=account.examinations,
            unreadable=account.unreadable,
            refused_logins=sum(self._server.logins.values()),
            by_level=tuple(map(sum, zip(account.received_by_level, of_brokers, strict=True))),
            dropped_by_level=tuple(drops.total() for drops in account.drops_by_level[:LEVELS]),
            lost_urgent=sum(count for why, count in urgent.items() if why not in ON_ARRIVAL),
            waits=tuple(tuple(buckets) for buckets in account.waits),
        )

    def _count_links(self) -> None:
        """Add what links have brought; one that is forgotten takes nothing back of what it had."""
        links = () if self._server.net is None else self._server.net.links
        brought = [sum(link.received[level] for link in links) for level in range(LEVELS)]
        brought.append(sum(sum(link.received_bytes) for link in links))
        for number, (now, then) in enumerate(zip(brought, self._brought, strict=True)):
            self._of_brokers[number] += max(0, now - then)
        self._brought = brought

    def _remember_drops(self, counters: Counters, sample: Sample) -> None:
        now_and_then = counters.dropped, counters.lost_urgent, counters.refused_logins
        if not self._steps or counters.now - self._stepped >= STEP_S:
            self._steps.append(now_and_then)
            self._stepped = counters.now
        oldest, minute_ago = self._steps[0], self._steps[-min(6, len(self._steps))]
        sample.dropped_hour = now_and_then[0] - oldest[0]
        sample.dropped_urgent_hour = now_and_then[1] - oldest[1]
        sample.refused_logins_minute = now_and_then[2] - minute_ago[2]

    def _point(
        self, sample: Sample, counters: Counters, then: Counters, elapsed: float, survey: Survey
    ) -> dict[str, float]:
        point = {
            "received": sample.received_per_s,
            "sent": sample.sent_per_s,
            "bytes_in": sample.bytes_in_per_s,
            "bytes_out": sample.bytes_out_per_s,
            "waiting_bytes": float(sample.waiting_bytes),
            "waiting": float(sum(survey.waiting_by_level)),
            "dropped": sample.dropped_per_s,
            "connected": float(survey.connected),
            "lag": self._server.vitals.lag_s,
        }
        for level in range(LEVELS - 1, -1, -1):
            p99_s = quantile(_grown(then.waits[level], counters.waits[level]), 0.99)
            point[f"received/{level}"] = sample.class_per_s[level]
            point[f"p99/{level}"] = nan if p99_s is None else p99_s
            point[f"oldest/{level}"] = survey.oldest_s[level]
            point[f"waiting/{level}"] = float(survey.waiting_by_level[level])
            point[f"dropped/{level}"] = (counters.dropped_by_level[level] - then.dropped_by_level[level]) / elapsed
        net = self._server.net
        if net is not None:
            for link in net.links[:MOST_LINKS]:
                passed = sum(link.sent_bytes) + sum(link.received_bytes)
                before = self._passed.get(link.peer, passed)
                self._passed[link.peer] = passed
                point[f"link/{link.peer}"] = max(0.0, 8 * (passed - before) / elapsed)
        return point


def _grown(before: Buckets, after: Buckets) -> list[int]:
    return [now - then for then, now in zip(before, after, strict=True)]


def quantile(buckets: Buckets, part: float) -> float | None:
    """How long this part of what is in the buckets waited at most, in seconds; None where nothing is in them."""
    total = sum(buckets)
    if total <= 0:
        return None
    wanted, passed = part * total, 0
    for bucket, messages in enumerate(buckets):
        if messages and passed + messages >= wanted:
            least = (1 << (bucket - 1)) if bucket else 0
            return (least + ((1 << bucket) - least) * (wanted - passed) / messages) * 1e-3
        passed += messages
    return (1 << (len(buckets) - 1)) * 1e-3
