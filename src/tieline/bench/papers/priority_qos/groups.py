"""Second paper, Figures 7, 8 and 9: four 1:1 groups, 1 KB every 50 ms, by priority-QoS level.

Publishers 1 to 4 connect first, then subscribers 1 to 4.  The paper's levels 1 to 4 in a two-bit field are 0 to 3
here.  The level is that of the node: a user property of CONNECT, or the header byte of the paper's wire format.  Delay
is from the publisher's send to the arrival at the subscriber; at QoS 2 to the arrival of PUBREL, because the paper's
clients (paho) hand a message over only then.

Four clients at 20 Hz hardly ever meet in the broker, so every experiment is repeated *saturated*: all four publishers
send a burst of a hundred messages while the broker is stopped (SIGSTOP), so that all of them have arrived when it goes
on.  That instant is when their time begins.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import statistics
import time
from dataclasses import dataclass
from typing import Final, Literal

from tieline.bench.brokers import Mosquitto, Tieline, known_peers
from tieline.bench.load import packets as plain
from tieline.bench.load.job import Lost
from tieline.bench.papers.frame.declaration import Request
from tieline.bench.papers.frame.table import Cell, Table
from tieline.bench.peer import Instance, free_ports
from tieline.bench.timed import packets
from tieline.bench.timed.nodes import Listener, Timetable, clock, hang_up, open_node, subscribe
from tieline.bench.timed.packets import Tally

GROUPS = 4
PAYLOAD = 1_024
EVERY_S = 0.05
BURST = 100
_DRAIN_S = 3.0
_SETTLE_S = 0.2
#: One message at a time, or nearly: the kernel stamps what is read together with one time.
_RECEIVE = 4_096

Levels = tuple[int, int, int, int]
Means = Literal["none", "property", "header"]
ASCENDING: Levels = (0, 1, 2, 3)
PARTLY_EQUAL: Levels = (0, 0, 1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment: which broker, at which QoS, with which levels."""

    name: str
    peer: str = "tieline"
    qos: int = 0
    levels: Levels = ASCENDING
    #: How a node says its level.
    means: Means = "property"


CASES = (
    Experiment(name="QoS 0"),
    Experiment(name="QoS 1", qos=1),
    Experiment(name="QoS 2", qos=2),
    Experiment(name="QoS 0, header byte", means="header"),
    Experiment(name="equal levels", levels=PARTLY_EQUAL),
    Experiment(name="without levels", means="none"),
    Experiment(name="mosquitto", peer="mosquitto", means="none"),
)


#: Saturated: the broker finds a hundred messages of each publisher at once.
TRAFFIC: Final = {"every 50 ms": False, "saturated": True}


class _Node(Listener):
    """A client of one group; speaks the header byte if its level travels in it."""

    def __init__(self, sock: socket.socket, timetable: Timetable, header_level: int | None) -> None:
        super().__init__(sock, timetable, has_header_byte=header_level is not None, most=_RECEIVE)
        self._header_level = header_level

    def speak(self, packet: bytes) -> None:
        """Send a packet in this node's wire format."""
        self.write(self.worded(packet))

    def worded(self, packet: bytes) -> bytes:
        """A packet in this node's wire format."""
        return packet if self._header_level is None else packets.with_header_byte(packet, self._header_level)


class _Publisher(_Node):
    """Sends to its group's topic; completes QoS 2 exchanges."""

    def __init__(
        self, sock: socket.socket, timetable: Timetable, header_level: int | None, topic: str, qos: int
    ) -> None:
        super().__init__(sock, timetable, header_level)
        self._topic = topic
        self._qos = qos
        self.tally = Tally()

    def prepare(self, count: int) -> bytes:
        """The next messages, ready to be sent."""
        return b"".join(self._next() for _ in range(count))

    def _next(self) -> bytes:
        packet_id = len(self.tally.sent) % 65_535 + 1
        payload = self.tally.payload(PAYLOAD)
        return self.worded(plain.publish(self._topic, payload, qos=self._qos, packet_id=packet_id, version=5))

    def release(self, prepared: bytes, count: int) -> None:
        """Send them now: that is when their time begins."""
        self.begin(count)
        self.write(prepared)

    def begin(self, count: int) -> None:
        """The time of the last messages begins now."""
        self.tally.sent[-count:] = [time.time_ns()] * count

    def heard(self, first: int, body: bytes, when_ns: int) -> None:
        """Go on with the exchange."""
        if first == plain.PUBREC:
            self.speak(packets.acknowledge(plain.PUBREL, int.from_bytes(body[:2], "big")))


class _Subscriber(_Node):
    """Acknowledges and notes when each message was its own."""

    def __init__(self, sock: socket.socket, timetable: Timetable, header_level: int | None, tally: Tally) -> None:
        super().__init__(sock, timetable, header_level)
        self._tally = tally
        self._unreleased: dict[int, int] = {}

    def heard(self, first: int, body: bytes, when_ns: int) -> None:
        """Go on with the exchange."""
        if first == plain.PUBREL:
            packet_id = int.from_bytes(body[:2], "big")
            self._tally.arrival(self._unreleased.pop(packet_id), when_ns)
            self.speak(packets.acknowledge(plain.PUBCOMP, packet_id))
        elif first & 0xF0 == plain.PUBLISH:
            arrived = packets.arrival(first, body)
            number, _ = arrived.mark
            if arrived.qos == 2:
                self._unreleased[arrived.packet_id] = number
                self.speak(packets.acknowledge(plain.PUBREC, arrived.packet_id))
                return
            self._tally.arrival(number, when_ns)
            if arrived.qos == 1:
                self.speak(packets.acknowledge(plain.PUBACK, arrived.packet_id))


def measure(request: Request) -> list[Table]:
    """Every case a few times, each on a broker of its own, paced and saturated."""
    rows: list[tuple[Cell, ...]] = []
    seconds = request.chosen("published for", quick=0.6, full=4.0, unit="s", note="in each run")
    runs = request.chosen("runs", quick=2, full=5, note="of each case, each on a broker of its own")
    request.state("levels, Fig. 8", PARTLY_EQUAL)
    for case in CASES:
        if not known_peers()[case.peer].version():
            continue
        for traffic, is_saturated in TRAFFIC.items():
            for number in range(runs):
                request.step(f"{case.name}, {traffic}, run {number}")
                means = run(case, is_saturated=is_saturated, seconds=seconds)
                rows += [(case.name, traffic, group, number, mean) for group, mean in enumerate(means, start=1)]
    columns = {
        "case": "broker and levels", "traffic": "how the four publish", "group": "group, in order of connection",
        "run": "number of the run", "delay_us": "mean delay, µs",
    }  # fmt: skip
    return [Table("groups", columns, rows)]


def run(case: Experiment, *, is_saturated: bool, seconds: float) -> list[float]:
    """Mean delay of each group in microseconds, groups in order of connection."""
    with contextlib.ExitStack() as stack:
        timetable = stack.enter_context(Timetable())
        (header_port,) = free_ports(1)
        peer: Tieline | Mosquitto = Mosquitto()
        if case.peer == "tieline":
            listener = f'[[listener]]\nurl = "tcp://127.0.0.1:{header_port}?header=priority"\n'
            peer = Tieline(listener if case.means == "header" else "")
        at = stack.enter_context(Instance(peer))
        port = header_port if case.means == "header" else at.port
        sockets: list[socket.socket] = []
        stack.callback(hang_up, sockets)
        for role in ("publisher", "subscriber"):
            for group, level in enumerate(case.levels, start=1):
                claims = {"priority": str(level)} if case.means == "property" else {}
                header_level = level if case.means == "header" else None
                sockets.append(open_node(at.host, port, f"{role}{group}", claims, header_level=header_level))
        publishers: list[_Publisher] = []
        for group, level in enumerate(case.levels):
            header_level = level if case.means == "header" else None
            topic = f"group/{group + 1}"
            publishers.append(_Publisher(sockets[group], timetable, header_level, topic, case.qos))
            receiver = sockets[GROUPS + group]
            subscribe(receiver, [topic], qos=case.qos, header_level=header_level)
            _Subscriber(receiver, timetable, header_level, publishers[group].tally)
        _drive(timetable, publishers, seconds=seconds, held=at.pid if is_saturated else None)
        lost = sum(publisher.tally.lost for publisher in publishers)
        if lost:
            raise Lost(f"{lost} messages of the groups did not arrive")
        return [statistics.fmean(publisher.tally.waits_s()) * 1e6 for publisher in publishers]


def _drive(timetable: Timetable, publishers: list[_Publisher], *, seconds: float, held: int | None) -> None:
    """Publish every 50 ms; with the process of the broker ``held``, bursts that it finds all at once."""
    begin = clock() + _SETTLE_S
    end = begin + seconds
    count = 1 if held is None else BURST

    def publish() -> None:
        prepared = [publisher.prepare(count) for publisher in publishers]
        if held is not None:
            os.kill(held, signal.SIGSTOP)
        for publisher, data in zip(publishers, prepared, strict=True):
            publisher.release(data, count)
        if held is not None:
            for publisher in publishers:
                publisher.begin(count)
            os.kill(held, signal.SIGCONT)

    timetable.every(EVERY_S, begin, end, publish)
    try:
        timetable.run(end)
    finally:
        if held is not None:
            os.kill(held, signal.SIGCONT)
    timetable.run(end + _DRAIN_S, lambda: not any(publisher.tally.lost for publisher in publishers))
