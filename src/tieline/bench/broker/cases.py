"""The workloads as cases: the brokers taking turns at each, the median of several repetitions.

Brokers alternate within a workload (A, B, A, B, …), so that a machine that becomes slower for a while is slower for
all of them.  A broker keeps running from one workload to the next unless a workload wants a fresh one or it
failed; a failure ends that row only.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from tieline.bench.brokers import BASELINE, SUBJECT
from tieline.bench.load.job import Endpoint, Failure, Generator, Job
from tieline.bench.machine import disk_of
from tieline.bench.peer import Certificate, Instance, Peer, executable, make_certificate
from tieline.bench.suite.declaration import Case, Running, Schedule
from tieline.bench.suite.results import Row, rows_of


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEffort:
    """How much is done: enough for stable numbers, or a first impression."""

    repetitions: int = 3
    #: Length of a saturated spell and of a paced one.
    seconds: float = 0.6
    paced_s: float = 1.5
    round_trips: int = 6_000
    connects: int = 3_000
    idle: int = 10_000
    idle_tls: int = 10_000
    filters: int = 100_000
    topics: int = 20_000
    #: No workload begins later than this.
    budget_s: float = 1_200.0


FULL = BrokerEffort()
QUICK = BrokerEffort(
    repetitions=1, seconds=0.2, paced_s=0.6, round_trips=5_000, connects=1_000, idle=2_000, idle_tls=500, budget_s=300.0
)


def _spell_s(effort: BrokerEffort) -> float:
    return effort.seconds + 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One line of the comparison."""

    name: str
    title: str
    group: str
    job: Callable[[BrokerEffort], Job]
    #: About how long it takes, once on one broker.
    lasts_s: Callable[[BrokerEffort], float] = _spell_s
    #: Only Tieline and the broker it is held against: keeps the full run within its time.
    pair_only: bool = True
    qos: int = 0
    version: int = 4
    tls: bool = False
    #: With a store on a real disk.
    durable: bool = False
    #: A broker that has not worked yet: memory it once used would hide what the connections take.
    fresh: bool = False
    #: Another such broker for each repetition: how often an allocator asks the kernel for the memory of long messages
    #: is decided early in a process's life, and differs from one process to the next.
    anew: bool = False
    #: How often in a full run, where the usual number is too few to tell the brokers apart, or more than is needed.
    repetitions: int | None = None

    def objection(self, peer: Peer, *, has_certificate: bool) -> str | None:
        """Why this peer cannot do it, or nothing."""
        if self.qos > peer.max_qos:
            return f"QoS {self.qos} is not offered"
        if self.version == 5 and not peer.has_v5:
            return "MQTT 5 is not offered"
        if self.durable and not peer.has_store:
            return "it is not set up with a store here"
        if self.tls and not has_certificate:
            return "no certificate: the openssl command is missing"
        if self.tls and not peer.has_tls:
            return "TLS is not set up for this peer"
        return None


def make_plan(
    peers: Sequence[Peer],
    workloads: Sequence[Workload],
    *,
    quick: bool = False,
    repeat: int | None = None,
    disk: Path | None = None,
    absent: Mapping[str, str] | None = None,
) -> Schedule:
    """These workloads on these brokers, each so often as it wants unless ``repeat`` says how often.

    What brokers acknowledge they keep on ``disk``, in the workloads that ask for it.
    """
    effort = QUICK if quick else FULL
    place = disk or Path()
    fleet = Fleet(place)
    cases: list[Case] = []
    for workload in workloads:
        some = participants(peers, workload, quick=quick)
        count = repetitions(workload, quick=quick, repeat=repeat)
        rows = rows_of(workload.name, workload.title, workload.group, [peer.name for peer in some])
        for peer, row in zip(some, rows, strict=True):
            objection = workload.objection(peer, has_certificate=executable("openssl") is not None)
            if objection:
                row.end("not offered", objection)
        able = sum(row.status == "measured" for row in rows)
        cases.append(
            Case(
                rows=rows,
                measure=partial(fleet.take_turns, workload, some, count, effort),
                steps=able * count,
                seconds=able * count * (workload.lasts_s(effort) + (0.5 if workload.anew or workload.fresh else 0.0)),
                obstacle=_obstacle(workload, place),
            )
        )
    taking_part = {row.peer for case in cases for row in case.rows}
    return Schedule(
        cases=cases,
        quick=quick,
        versions={peer.name: peer.version() or "unknown" for peer in peers if peer.name in taking_part},
        absent=absent or {},
        budget_s=effort.budget_s,
        resources=[fleet],
        machine={"disk": disk_of(place).file_system},
    )


def participants(peers: Sequence[Peer], workload: Workload, *, quick: bool) -> list[Peer]:
    """The brokers that do this workload: beyond the pair only where it says so, and not when time is short."""
    pair = [peer for peer in peers if peer.name in (SUBJECT, BASELINE)]
    return pair if pair and (workload.pair_only or quick) else list(peers)


def repetitions(workload: Workload, *, quick: bool, repeat: int | None = None) -> int:
    """How often a workload is measured on each broker; in a quick run once."""
    if repeat is not None:
        return repeat
    return QUICK.repetitions if quick else workload.repetitions or FULL.repetitions


def _obstacle(workload: Workload, disk: Path) -> str:
    if workload.durable and disk_of(disk).is_volatile:
        kind = disk_of(disk).file_system
        return f"{disk.resolve()} is on {kind}, which keeps nothing: give --disk a disk"
    return ""


class Fleet:
    """The running brokers, started when first needed, all ended in the end, and the generator that drives them.

    Their certificate is made for one run.
    """

    def __init__(self, disk: Path) -> None:
        self._disk = disk
        self._stack = ExitStack()
        self._generator = Generator()
        self._certificate: Certificate | None = None
        self._running: dict[str, tuple[Instance, Endpoint]] = {}
        self._durable: set[str] = set()

    def __enter__(self) -> Self:
        directory = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="tieline-bench-"))
        self._certificate = make_certificate(Path(directory))
        self._stack.enter_context(self._generator)
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._running):
            self.retire(name)
        self._stack.close()

    def take_turns(
        self, workload: Workload, peers: Sequence[Peer], count: int, effort: BrokerEffort, run: Running, rows: list[Row]
    ) -> None:
        """All repetitions on all brokers that can do it; they alternate."""
        for repetition in range(count):
            for peer, row in zip(peers, rows, strict=True):
                if row.status != "measured":
                    continue
                run.step(f"{workload.title}: {peer.name} ({repetition + 1})")
                if workload.anew or (repetition == 0 and workload.fresh):
                    self.retire(peer.name)
                try:
                    endpoint = self.endpoint(peer, durable=workload.durable)
                    metrics = self._generator.run(workload.job(effort), endpoint)
                    row.repetitions.append({**metrics, "startup_s": self._startup_s(peer.name)})
                except Failure as failure:
                    row.end("failed", self._obituary(peer.name) or str(failure))
                    self.retire(peer.name)

    def endpoint(self, peer: Peer, *, durable: bool = False) -> Endpoint:
        """Where this broker listens; starts it if need be, with a store if it is to be ``durable``."""
        if durable != (peer.name in self._durable):
            self.retire(peer.name)
        if peer.name not in self._running:
            (self._durable.add if durable else self._durable.discard)(peer.name)
            instance = Instance(peer, self._certificate, disk=self._disk if durable else None)
            self._running[peer.name] = (instance, instance.__enter__())
        return self._running[peer.name][1]

    def _obituary(self, name: str) -> str | None:
        """What a broker that died left behind."""
        return self._running[name][0].obituary() if name in self._running else None

    def _startup_s(self, name: str) -> float:
        return self._running[name][0].startup_s

    def retire(self, name: str) -> None:
        """End this broker, if it runs."""
        if name in self._running:
            self._running.pop(name)[0].stop()
