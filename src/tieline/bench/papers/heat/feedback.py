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
from tieline.bench.papers.frame.declaration import Request
from tieline.bench.papers.frame.table import Cell, Table
from tieline.bench.papers.heat.wanted_topics import BYTES_PER_S, open_port
from tieline.bench.peer import Instance
from tieline.bench.timed.nodes import Timetable, Writer, clock, hang_up, open_node
from tieline.bench.timed.packets import Arrival, Flows

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


def measure(request: Request) -> list[Table]:
    """All subscribers at once; a row for each pair and each burst."""
    subscribers = [Subscriber(period_s=period, frequency=count) for count in FREQUENCIES for period in PERIODS_S]
    rows: list[tuple[Cell, ...]] = []
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
        request.step("without any high messages")
        _episode(timetable, subscribers, writers, has_high=False)
        unblocked_s = statistics.fmean(wait for one in subscribers for wait in one.waits_s("low"))
        _episode(timetable, subscribers, writers, has_high=True)  # the port is known to be blocked when it counts
        request.state("floor", 0, note="so that slots are all that low messages get")
        request.state("timeout of a subscriber", 0.01, "s", note="so that slots may be used at once")
        for episode in range(request.chosen("bursts", quick=2, full=5)):
            request.step(f"burst {episode}")
            _episode(timetable, subscribers, writers, has_high=True)
            rows += [_row(one, episode, unblocked_s) for one in subscribers]
    columns = {
        "frequency": "distribution frequency", "period_s": "time period, s", "burst": "number of the burst",
        "high_ms": "mean delay of high messages, ms", "low_ratio": "delay of low messages : the same unblocked",
        "late_share": f"share of low messages that took more than {LATE_S:g} s",
        "unblocked_ms": "delay of low messages that nothing blocks, ms",
    }  # fmt: skip
    return [Table("feedback", columns, rows)]


def _row(one: Subscriber, episode: int, unblocked_s: float) -> tuple[Cell, ...]:
    low = one.waits_s("low")
    late = sum(wait > LATE_S for wait in low) / len(low)
    high_ms = statistics.fmean(one.waits_s("high")) * 1e3
    return (
        one.frequency, one.period_s, episode, high_ms, statistics.fmean(low) / unblocked_s, late, unblocked_s * 1e3
    )  # fmt: skip


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
