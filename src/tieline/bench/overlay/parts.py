"""What is measured of joined brokers: a hop, its bytes, subscriptions that grow, memory, and a broker that dies."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tieline.bench.load import packets
from tieline.bench.load.clients import PATIENCE_S, clients, subscribe
from tieline.bench.load.job import Endpoint, Garbled, Generator, Job, Metrics, quantile
from tieline.bench.load.latency import PingPong, exactly
from tieline.bench.load.saturate import Saturate, Topics
from tieline.bench.measure import family, memory_bytes
from tieline.bench.overlay import planned, regional, rings, strategies, thin, thin_cut
from tieline.bench.overlay.network import (
    BridgedMosquitto,
    ClusteredNats,
    Joinable,
    JoinedTieline,
    Member,
    Network,
    cycle,
    line,
    mesh,
)
from tieline.bench.peer import Instance
from tieline.bench.process import until
from tieline.bench.suite.declaration import Running
from tieline.bench.suite.results import Row

PAYLOAD: Final = 64
#: Until all brokers know what every other one wants; 20 of them with 5,000 subscriptions each share two processors.
_LEARNT_S: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlayEffort:
    """How much is done: enough for stable numbers, or a first impression."""

    repetitions: int
    seconds: float
    round_trips: int
    #: Messages that are counted on the wire.
    messages: int
    #: Subscriptions whose SUBACK is timed.
    grown: int
    #: Numbers of brokers, and subscriptions of each, whose memory is told.
    brokers: tuple[int, ...]
    subscriptions: tuple[int, ...]
    deaths: int
    #: Seconds of three thin hops.
    thin_seconds: float
    #: Seconds of traffic by the shortest ways, and by a plan.
    plan_seconds: float
    strategies: strategies.StrategiesEffort
    rings: rings.RingEffort
    regions: regional.RegionalEffort
    budget_s: float


FULL: Final = OverlayEffort(
    repetitions=3, seconds=0.8, round_trips=4_000, messages=2_000, grown=100, brokers=(2, 5, 10, 20),
    subscriptions=(50, 5_000), deaths=3, thin_seconds=120.0, plan_seconds=60.0, rings=rings.FULL,
    regions=regional.FULL, strategies=strategies.FULL,
    budget_s=3_300.0,
)  # fmt: skip
QUICK: Final = OverlayEffort(
    repetitions=1, seconds=0.4, round_trips=2_000, messages=500, grown=20, brokers=(2, 5),
    subscriptions=(50,), deaths=1, thin_seconds=30.0, plan_seconds=20.0, rings=rings.QUICK,
    regions=regional.QUICK, strategies=strategies.QUICK,
    budget_s=1_200.0,
)  # fmt: skip


def kind_of(name: str, qos: int) -> Joinable:
    """The kind of brokers that a row is about."""
    kinds = {JoinedTieline.name: JoinedTieline, ClusteredNats.name: ClusteredNats}
    return kinds[name]() if name in kinds else BridgedMosquitto(qos)


def load(qos: int, seconds: float, *, keeps_sessions: bool = False) -> Saturate:
    """One publisher at full speed, and one subscriber."""
    return Saturate(
        publishers=1, filters=("hop/#",), topics=Topics(pattern="hop/one"), payload=PAYLOAD, qos=qos, seconds=seconds,
        keeps_sessions=keeps_sessions,
    )  # fmt: skip


def measure_hop(
    job: Callable[[OverlayEffort], Job],
    qos: int,
    effort: OverlayEffort,
    disk: Path | None,
    run: Running,
    rows: list[Row],
) -> None:
    """The same work on one broker and over a hop; what the hop adds."""
    with Generator() as generator:
        for _ in range(effort.repetitions):
            for row in rows:
                with run.failing([row]):
                    run.step(f"{row.title}: {row.peer}")
                    row.repetitions.append(_hop(generator, job(effort), kind_of(row.peer, qos), disk))


def _hop(generator: Generator, job: Job, kind: Joinable, disk: Path | None) -> Metrics:
    with Network(kind, 2, line(2), disk=disk) as network:
        over = generator.run(job, network.between(0, 1))
    with Instance(kind.single(), disk=disk) as alone:
        single = generator.run(job, alone)
    found = {**over, **{f"single_{name}": value for name, value in single.items() if name in ("rate", "p50_us")}}
    for name in ("cpu_us_delivered", "cpu_us_inbound"):
        if name in over and single.get(name):
            found["cpu_ratio"] = over[name] / single[name]
            break
    if "p50_us" in over:
        found["added_p50_us"] = over["p50_us"] - single["p50_us"]
    return found


def measure_wire(effort: OverlayEffort, run: Running, rows: list[Row]) -> None:
    """Bytes that a message of 64 B takes on the link: each alone, and many together."""
    for row in rows:
        with run.failing([row]):
            run.step(f"{row.title}: {row.peer}")
            with Network(kind_of(row.peer, 0), 2, line(2), counts=True) as network:
                row.repetitions.append(_count_wire(network, effort.messages))


def _count_wire(network: Network, messages: int) -> Metrics:
    packet = packets.publish("hop/one", bytes(PAYLOAD))
    relay = network.relays[0]
    with (
        clients(network.endpoints[1], ["wire-sub"]) as (receiver,),
        clients(network.endpoints[0], ["wire-pub"]) as (sender,),
    ):
        subscribe(receiver, ["hop/one"])
        for sock in (receiver, sender):
            sock.settimeout(PATIENCE_S)
        found: Metrics = {"packet_bytes": float(len(packet))}
        for name, together in (("bytes_alone", 1), ("bytes_together", 50)):
            before = relay.bytes
            for _ in range(messages // together):
                sender.sendall(packet * together)
                if exactly(receiver, len(packet) * together) != packet * together:
                    raise Garbled("a message arrived that differs from the one sent")
            time.sleep(0.1)  # what is still acknowledged belongs to them
            found[name] = (relay.bytes - before) / messages
    return found


def measure_growth(effort: OverlayEffort, run: Running, rows: list[Row]) -> None:
    """How long a SUBACK takes when every broker has to know of the filter first."""
    for row, brokers in zip(rows, effort.brokers, strict=True):
        with run.failing([row]):
            run.step(row.title)
            with Network(JoinedTieline(), brokers, mesh(brokers)) as network:
                row.repetitions.append(_grow(network.endpoints[-1], effort.grown))


def _grow(at: Endpoint, filters: int) -> Metrics:
    took: list[int] = []
    with clients(at, ["grow"]) as (sock,):
        sock.settimeout(PATIENCE_S)
        for number in range(filters):
            began = time.perf_counter_ns()
            sock.sendall(packets.subscribe(number + 1, [f"grow/{number}/+"], qos=0, version=4))
            answer = exactly(sock, 5)
            took.append(time.perf_counter_ns() - began)
            if answer[0] != packets.SUBACK or answer[-1] != 0:
                raise Garbled(f"SUBSCRIBE was answered with {answer.hex(' ')}")
    took.sort()
    return {"suback_p50_ms": quantile(took, 0.5) / 1e6, "suback_max_ms": took[-1] / 1e6}


def measure_memory(brokers: int, effort: OverlayEffort, run: Running, rows: list[Row]) -> None:
    """Memory of each of many brokers that all know what the others want."""
    for row, subscriptions in zip(rows, effort.subscriptions, strict=True):
        with run.failing([row]):
            run.step(row.title)
            with Network(JoinedTieline(), brokers, mesh(brokers)) as network:
                _all_know(network, 0)  # what was asked for to see that all are joined, nobody wants any more
                before = _memory(network)
                for number, at in enumerate(network.endpoints):
                    with clients(at, [f"memory{number}"], clean=False) as (sock,):
                        sock.settimeout(PATIENCE_S)
                        subscribe(sock, [f"memory/{number}/{each}/+" for each in range(subscriptions)])
                _all_know(network, subscriptions)
                after = _memory(network)
            row.repetitions.append(
                {
                    "broker_bytes": after / brokers,
                    "bytes_interest": (after - before) / (brokers * brokers * subscriptions),
                }
            )


def _all_know(network: Network, subscriptions: int) -> None:
    """Wait until every broker knows that every other one wants so much: a SUBACK may have left without an echo."""

    def complete() -> bool:
        for instance in network.instances:
            assert isinstance(instance.peer, Member)
            wanted = [each["wants"] for each in instance.peer.ask("net")["brokers"]]
            if wanted != [subscriptions] * len(network.instances):
                return False
        return True

    until(f"every broker knows of {subscriptions:,} subscriptions at each", _LEARNT_S, complete)


def _memory(network: Network) -> int:
    return memory_bytes([member for pid in network.pids for member in family(pid)])


def measure_line(effort: OverlayEffort, disk: Path, run: Running, rows: list[Row]) -> None:
    """The middle of a line of three is killed, and begins again: how long until messages cross."""
    with Network(JoinedTieline(), 3, line(3), disk=disk) as network:
        for death in range(effort.deaths):
            run.step(f"the middle of a line dies ({death + 1})")
            network.instances[1].kill()
            time.sleep(0.5)
            began = time.perf_counter()
            network.endpoints[1] = network.instances[1].start()
            rows[0].repetitions.append({"recovery_s": _crossed(network, 2, 0, began)})


def measure_cycle(effort: OverlayEffort, run: Running, rows: list[Row], *, is_silent: bool = False) -> None:
    """A broker on the shorter way is killed in a cycle of five, and stays dead: how long until messages cross.

    One that is silent keeps its connections: nobody tells its neighbours.
    """
    for death in range(effort.deaths):
        run.step(f"one of a cycle {'falls silent' if is_silent else 'dies'} ({death + 1})")
        with Network(JoinedTieline(), 5, cycle(5)) as network:
            if is_silent:
                with _stopped(network.endpoints[1].pid):
                    rows[0].repetitions.append({"recovery_s": _crossed(network, 2, 0, time.perf_counter())})
            else:
                began = time.perf_counter()
                network.instances[1].kill()
                rows[0].repetitions.append({"recovery_s": _crossed(network, 2, 0, began)})


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    """A broker and its writer stand still for a while, with all their connections."""
    members = family(pid)
    for member in members:
        os.kill(member, signal.SIGSTOP)
    try:
        yield
    finally:
        for member in members:
            os.kill(member, signal.SIGCONT)


def _crossed(network: Network, inlet: int, outlet: int, began: float) -> float:
    """How long it took from then on until a message crosses."""
    network.cross(inlet, outlet, began + 30.0)
    return time.perf_counter() - began


def throughput(qos: int, *, keeps_sessions: bool = False) -> Callable[[OverlayEffort], Job]:
    """The load of a hop, by effort."""
    return lambda effort: load(qos, effort.seconds, keeps_sessions=keeps_sessions)


def latency(effort: OverlayEffort) -> Job:
    """One message at a time."""
    return PingPong(messages=effort.round_trips)


def measure_thin(link: str, delay_s: float, effort: OverlayEffort, run: Running, rows: list[Row]) -> None:
    """What is urgent over three thin hops that are full of bulk."""
    with run.failing(rows):
        run.step(rows[0].title)
        rows[0].repetitions.append(thin.run(seconds=effort.thin_seconds, link=link, delay_s=delay_s))


def measure_thin_cut(delay_s: float, run: Running, rows: list[Row]) -> None:
    """What is assured over three thin hops of which the middle one carries nothing in one direction for a while."""
    with run.failing(rows):
        run.step(rows[0].title)
        rows[0].repetitions.append(thin_cut.run(delay_s=delay_s))


def measure_plan(effort: OverlayEffort, run: Running, rows: list[Row]) -> None:
    """Twelve brokers on thin links, before a plan and after it."""
    with run.failing(rows):
        run.step("twelve brokers: the shortest ways, then a plan")
        for row, found in zip(rows, planned.before_and_after(effort.plan_seconds), strict=True):
            row.repetitions.append(found)


def measure_replans(_effort: OverlayEffort, run: Running, rows: list[Row]) -> None:
    """Ten plans in turns, of which nothing may be lost."""
    with run.failing(rows):
        run.step("twelve brokers: ten plans in turns")
        rows[0].repetitions.append(planned.replans(10))


def measure_silent_link(run: Running, rows: list[Row]) -> None:
    """The fullest thin link falls silent."""
    with run.failing(rows):
        run.step("twelve brokers: a link falls silent")
        rows[0].repetitions.append(planned.silent_link())


def measure_lan_link(how: Literal["reset", "silent"], effort: OverlayEffort, run: Running, rows: list[Row]) -> None:
    """A planned link of this machine dies."""
    with run.failing(rows):
        for death in range(effort.deaths):
            run.step(f"{rows[0].title} ({death + 1})")
            rows[0].repetitions.append(planned.dead_lan_link(how))
