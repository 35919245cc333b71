"""First paper, Figures 3, 4 and 5: what the length of the time period and the distribution frequency do.

Every pair (period, frequency) is a subscriber of its own behind a blocked port, all on one broker: it asks for its
pair with user properties of SUBSCRIBE.  A burst of high-priority messages fills each port for a second and a half;
low-priority messages arrive all the while, one every 50 ms.  The subscribers' timeout is shorter than every period, so
that low messages may use the slots of each period from its beginning on; the floor is off, so that slots are all they
get.

Measured: the mean delay of the high messages (Figure 3), the mean delay of the low ones over their delay without
any high ones (Figures 4 and 5), and the share of low ones that took longer than a second, which is what the paper
calls timing out.
"""

from __future__ import annotations

import contextlib
import socket
import statistics
from dataclasses import dataclass, field

from tieline.bench.brokers import Tieline
from tieline.bench.papers.wanted_topics import BYTES_PER_S, open_port
from tieline.bench.peer import Instance
from tieline.bench.priority.nodes import Timetable, Writer, clock, hang_up, open_node
from tieline.bench.priority.packets import Arrival, Flows

PERIODS_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
FREQUENCIES = (1, 2, 4)
#: Figure 3 shows one frequency: "several" low messages in each period.
SEVERAL = 4
BYTES = 2_000
HIGH_S = 1.5
LOW_EVERY_S = 0.05
LATE_S = 1.0
_ALONE_S = 1.0
_ROOM = 2.5

CONFIGURATION = """\
[priority]
policy = "feedback"
floor = 0.0
timeout_min = "1ms"
period_min = "1ms"
[[class]]
name = "high"
filter = "+/high"
level = 2
[[class]]
name = "low"
filter = "+/low"
level = 0
"""


@dataclass(slots=True, kw_only=True)
class Subscriber:
    """One pair of settings, and the two flows to it."""

    period_s: float
    frequency: int
    flows: Flows = field(default_factory=lambda: Flows(()))

    @property
    def name(self) -> str:
        """First level of its topics."""
        return f"p{self.period_s * 1e3:.0f}f{self.frequency}"

    @property
    def wishes(self) -> dict[str, str]:
        """User properties of its SUBSCRIBE."""
        return {"period": f"{self.period_s:g}", "frequency": str(self.frequency), "timeout": "0.01"}

    def begin(self) -> None:
        """Forget what was counted, and count anew."""
        self.flows = Flows(map(self.topic, ("high", "low")))

    def topic(self, kind: str) -> str:
        """Where messages of a kind go."""
        return f"{self.name}/{kind}"

    def packet(self, kind: str) -> bytes:
        """The next message of a kind."""
        return self.flows.message(self.topic(kind), BYTES)

    def received(self, arrival: Arrival, when_ns: int) -> None:
        """A message came through the port."""
        self.flows.received(arrival, when_ns)

    def waits_s(self, kind: str) -> list[float]:
        """How long the messages of a kind took that have come."""
        return self.flows[self.topic(kind)].waits_s()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures345:
    """Numbers by frequency, one for each period."""

    periods_s: tuple[float, ...]
    #: Mean delay of low messages that nothing blocks.
    unblocked_ms: float
    high_ms: dict[int, list[float]]
    ratio: dict[int, list[float]]
    late_share: dict[int, list[float]]


def run(*, repetitions: int) -> Figures345:
    """All subscribers at once, several bursts."""
    subscribers = [Subscriber(period_s=period, frequency=count) for count in FREQUENCIES for period in PERIODS_S]
    high: dict[str, list[float]] = {one.name: [] for one in subscribers}
    low: dict[str, list[float]] = {one.name: [] for one in subscribers}
    with contextlib.ExitStack() as stack:
        timetable = stack.enter_context(Timetable())
        at = stack.enter_context(Instance(Tieline(CONFIGURATION)))
        sockets: list[socket.socket] = []
        stack.callback(hang_up, sockets)
        sockets += [open_node(at.host, at.port, f"{kind}-publisher") for kind in ("high", "low")]
        writers = {kind: Writer(sock, timetable) for kind, sock in zip(("high", "low"), sockets, strict=True)}
        sockets += [
            open_port(at, timetable, one.name, [f"{one.name}/#"], one.received, one.wishes) for one in subscribers
        ]
        _episode(timetable, subscribers, writers, has_high=False)
        unblocked = [wait for one in subscribers for wait in one.waits_s("low")]
        _episode(timetable, subscribers, writers, has_high=True)  # the port is known to be blocked when it counts
        for _ in range(repetitions):
            _episode(timetable, subscribers, writers, has_high=True)
            for one in subscribers:
                high[one.name] += one.waits_s("high")
                low[one.name] += one.waits_s("low")
    unblocked_s = statistics.fmean(unblocked)
    by_frequency = {count: [one.name for one in subscribers if one.frequency == count] for count in FREQUENCIES}
    return Figures345(
        periods_s=PERIODS_S,
        unblocked_ms=unblocked_s * 1e3,
        high_ms={
            count: [statistics.fmean(high[name]) * 1e3 for name in names] for count, names in by_frequency.items()
        },
        ratio={
            count: [statistics.fmean(low[name]) / unblocked_s for name in names]
            for count, names in by_frequency.items()
        },
        late_share={
            count: [sum(wait > LATE_S for wait in low[name]) / len(low[name]) for name in names]
            for count, names in by_frequency.items()
        },
    )


def _episode(
    timetable: Timetable, subscribers: list[Subscriber], writers: dict[str, Writer], *, has_high: bool
) -> None:
    begin = clock()
    end = begin + (HIGH_S if has_high else _ALONE_S)
    for one in subscribers:
        one.begin()
        if has_high:
            writers["high"].write(b"".join(one.packet("high") for _ in range(int(HIGH_S * BYTES_PER_S / BYTES))))

    def low() -> None:
        for one in subscribers:
            writers["low"].write(one.packet("low"))

    timetable.every(LOW_EVERY_S, begin, end, low)
    timetable.run(end)
    timetable.run(begin + _ROOM * HIGH_S + 1.0, lambda: not any(one.flows.lost for one in subscribers))
