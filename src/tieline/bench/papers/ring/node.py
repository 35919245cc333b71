"""A broker of this machine with the paper's subscriptions: the memory that its process takes, and its CPU.

The paper's node has 3,000 subscriptions and an event every 10 s, and takes 85 MB and 56 MHz; with multicast 130 MB and
74 MHz.  Here clients of 50 subscriptions each hang on one broker of the shipped kind, once with their boxes as
conditions, once with the plain topic, so that all get everything.  Waiting for events 10 s apart would measure the same
for hours: the CPU of an event and that of idling are measured by themselves, and put together.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final, TypeVar

from tieline.bench.brokers import Tieline
from tieline.bench.load import packets
from tieline.bench.load.clients import clients, subscribe
from tieline.bench.load.job import Endpoint, Lost
from tieline.bench.measure import CostMeter, family, memory_bytes
from tieline.bench.papers.frame.declaration import Request
from tieline.bench.papers.frame.table import Cell, Table
from tieline.bench.peer import Instance

CONDITIONS: Final = "conditions"
ONE_TOPIC: Final = "one topic"
WAYS: Final = (CONDITIONS, ONE_TOPIC)
#: The paper's ring and its multicast, read off its text.
PAPER_MB: Final = (85.0, 130.0)
PAPER_MHZ: Final = (56.0, 74.0)
#: Of a client, and seconds between two events.
EACH: Final = 50
EVERY_S: Final = 10.0

_TOPIC: Final = "grid/pcc"
_ATTRIBUTES: Final = ("voltage", "frequency")
_CONFIGURATION: Final = f'[event.pcc]\ntopic = "{_TOPIC}"\n' + "".join(
    f'[[event.pcc.attributes]]\nname = "{name}"\nbounds = [0.0, 1.0]\n' for name in _ATTRIBUTES
)
_DIGITS: Final = 6
_SETTLE_S: Final = 0.5
_SILENCE_S: Final = 20.0
#: A message may wait for its receivers so long that none is counted into another one's work.
_CHUNK: Final = 65_536

#: How many subscriptions, how many events, and how long it is watched while nothing happens.
COUNTS: Final[dict[str, tuple[int, ...]]] = {"quick": (1_000, 3_000), "full": (500, 1_000, 2_000, 3_000)}
EVENTS: Final = {"quick": 40, "full": 200}
IDLE_S: Final = {"quick": 1.5, "full": 10.0}

T = TypeVar("T")
Boxes = Sequence[Sequence[tuple[float, float]]]


def measure(request: Request) -> list[Table]:
    """Brokers with more and more subscriptions, each way of saying who wants what."""
    rows: list[tuple[Cell, ...]] = []
    request.state("events", _by_effort(request, EVENTS), note="a broker")
    request.state("idling", _by_effort(request, IDLE_S), "s", note="a broker")
    seeds = request.seeds(quick=1, full=3, note="a broker")
    for count in _by_effort(request, COUNTS):
        for seed in seeds:
            for way in WAYS:
                request.step(f"a broker with {count:,} subscriptions, {way}")
                rows.append((way, count, seed, *_one(request, way, count, Random(seed))))
    columns = {
        "way": "how interest is said", "subscriptions": "subscriptions", "seed": "seed",
        "megabytes": "memory of the process, MB", "event_us": "CPU for an event, µs",
        "idle_share": "share of a core when idle", "mhz": "CPU at an event every 10 s, MHz",
        "deliveries": "deliveries of an event",
    }  # fmt: skip
    return [Table("broker", columns, rows)]


def _by_effort(request: Request, values: dict[str, T]) -> T:
    return request.choose(quick=values["quick"], full=values.get("full", values["quick"]))


def _one(request: Request, way: str, count: int, random: Random) -> tuple[float | None, ...]:
    """What one broker takes."""
    wishes = [[_box(random) for _ in range(EACH)] for _ in range(count // EACH)]
    events = [[_number(random) for _ in _ATTRIBUTES] for _ in range(_by_effort(request, EVENTS))]
    with (
        Instance(Tieline(_CONFIGURATION)) as at,
        clients(at, [f"node{number}" for number in range(len(wishes))]) as receivers,
        clients(at, ["source"]) as (source,),
    ):
        for sock, mine in zip(receivers, wishes, strict=True):
            subscribe(sock, [_filter(box) for box in mine] if way == CONDITIONS else [_TOPIC])
        # what is loaded by the first event is there before anything is counted
        warm = [[0.5, 0.5]]
        _publish(source, receivers, warm, _wanted(wishes, warm, way))
        time.sleep(_SETTLE_S)
        meter = CostMeter(at.pid)
        deliveries = _publish(source, receivers, events, _wanted(wishes, events, way))
        event_s = meter.read().broker_s / len(events)
        idle = _idle_share(at, _by_effort(request, IDLE_S))
        megabytes = memory_bytes(family(at.pid)) / 1e6
    clock = _clock_mhz()
    mhz = None if clock is None else (idle + event_s / EVERY_S) * clock
    return megabytes, 1e6 * event_s, idle, mhz, deliveries / len(events)


def _idle_share(at: Endpoint, seconds: float) -> float:
    meter = CostMeter(at.pid)
    time.sleep(seconds)
    reading = meter.read()
    return reading.broker_s / reading.wall_s


def _box(random: Random) -> list[tuple[float, float]]:
    """Both ends of each side anywhere, as numbers that are written without loss."""
    sides = [sorted((_number(random), _number(random))) for _ in _ATTRIBUTES]
    return [(low, high) for low, high in sides]


def _number(random: Random) -> float:
    return round(random.random(), _DIGITS)


def _filter(box: Sequence[tuple[float, float]]) -> str:
    sides = (f"{low!r}<={name}<={high!r}" for name, (low, high) in zip(_ATTRIBUTES, box, strict=True))
    return f"{_TOPIC}?{' and '.join(sides)}"


def _wanted(wishes: Sequence[Boxes], events: Sequence[Sequence[float]], way: str) -> list[list[int]]:
    """The clients that get each event, found by looking at every box."""
    return [
        [
            client for client, boxes in enumerate(wishes)
            if way == ONE_TOPIC or any(_holds(box, event) for box in boxes)
        ]
        for event in events
    ]  # fmt: skip


def _holds(box: Sequence[tuple[float, float]], event: Sequence[float]) -> bool:
    return all(low <= value <= high for (low, high), value in zip(box, event, strict=True))


def _publish(
    source: socket.socket,
    receivers: Sequence[socket.socket],
    events: Sequence[Sequence[float]],
    wanted: Sequence[Sequence[int]],
) -> int:
    """Publish one event after the other, each once all who want the last one have it; how many copies that were.

    A copy too few or too many is a loss of the measurement: what it is compared with would be other work.
    """
    copies = 0
    place = {sock.fileno(): number for number, sock in enumerate(receivers)}
    for event, clients_of in zip(events, wanted, strict=True):
        values = ",".join(f'"{name}":{value:.{_DIGITS}f}' for name, value in zip(_ATTRIBUTES, event, strict=True))
        packet = packets.publish(_TOPIC, f"{{{values}}}".encode(), qos=0, packet_id=0, version=4)
        owed = dict.fromkeys(clients_of, len(packet))
        source.setblocking(True)
        source.sendall(packet)
        deadline = time.monotonic() + _SILENCE_S
        while any(owed.values()):
            ready, _, _ = select.select(receivers, [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise Lost(f"an event did not reach {sum(map(bool, owed.values()))} of {len(owed)} who want it")
            for sock in ready:
                number = place[sock.fileno()]
                owed[number] = owed.get(number, 0) - len(sock.recv(_CHUNK))
                if owed[number] < 0:
                    raise Lost(f"client {number} got what it did not ask for")
        copies += len(clients_of)
    return copies


def _clock_mhz() -> float | None:
    """The clock of the processor, None where the system does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((float(line.partition(":")[2]) for line in lines if line.startswith("cpu MHz")), None)
