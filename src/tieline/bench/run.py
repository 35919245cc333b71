"""The run: workload after workload, the brokers taking turns, the median of several repetitions.

Brokers alternate within a workload (A, B, A, B, …), so that a machine that becomes slower for a while is slower for
all of them.  A broker keeps running from one workload to the next unless a workload wants a fresh one or it
failed; a failure ends that row only.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from tieline.bench.load.generator import Generator
from tieline.bench.load.job import Endpoint, Failure
from tieline.bench.machine import describe_commit, describe_machine, disk_of
from tieline.bench.peers import BASELINE, SUBJECT
from tieline.bench.peers.instance import Instance
from tieline.bench.peers.peer import Certificate, Peer
from tieline.bench.record import Record, Row
from tieline.bench.targets import judge
from tieline.bench.workloads.workload import FULL, QUICK, Effort, Workload


class Watcher(Protocol):
    """Whoever wants to know how far the run has come."""

    def planned(self, steps: int) -> None:
        """So many measurements will be made."""

    def measuring(self, workload: Workload, peer: str, repetition: int) -> None:
        """A measurement begins."""

    def finished(self, workload: Workload, rows: Sequence[Row]) -> None:
        """All rows of a workload are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be run."""

    peers: Sequence[Peer]
    workloads: Sequence[Workload]
    quick: bool = False
    #: How often everything is measured; None for as often as each workload wants.
    repeat: int | None = None
    #: Where brokers keep what they acknowledge, in the workloads that ask for it.
    disk: Path = Path()

    @property
    def budget_s(self) -> float:
        """No workload begins later than this; those left out are reported as not run."""
        return 80.0 if self.quick else 1_200.0

    @property
    def effort(self) -> Effort:
        """The amount of work for each workload."""
        return QUICK if self.quick else FULL

    def participants(self, workload: Workload) -> list[Peer]:
        """The brokers that do this workload: beyond the pair only where it says so, and not when time is short."""
        pair_only = workload.pair_only or self.quick
        named = {peer.name for peer in self.peers}
        if not pair_only or not named & {SUBJECT, BASELINE}:
            return list(self.peers)
        return [peer for peer in self.peers if peer.name in (SUBJECT, BASELINE)]

    def repetitions(self, workload: Workload) -> int:
        """How often it is measured."""
        if self.repeat is not None:
            return self.repeat
        if workload.once or (self.quick and workload.once_if_quick):
            return 1
        return self.effort.repetitions if self.quick else workload.repetitions or self.effort.repetitions

    def involves(self, peer: Peer) -> bool:
        """Whether this broker does any workload."""
        return any(peer in self.participants(workload) for workload in self.workloads)

    @property
    def steps(self) -> int:
        """Number of measurements."""
        return sum(len(self.participants(workload)) * self.repetitions(workload) for workload in self.workloads)


class Fleet:
    """The running brokers, started when first needed, all ended in the end."""

    def __init__(self, certificate: Certificate | None, disk: Path) -> None:
        self._certificate = certificate
        self._disk = disk
        self._running: dict[str, tuple[Instance, Endpoint]] = {}
        self._durable: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for name in list(self._running):
            self.retire(name)

    def endpoint(self, peer: Peer, *, durable: bool = False) -> Endpoint:
        """Where this broker listens; starts it if need be, with a store if it is to be ``durable``."""
        if durable != (peer.name in self._durable):
            self.retire(peer.name)
        if peer.name not in self._running:
            (self._durable.add if durable else self._durable.discard)(peer.name)
            instance = Instance(peer, self._certificate, disk=self._disk if durable else None)
            try:
                self._running[peer.name] = (instance, instance.start())
            except BaseException:
                instance.stop()
                raise
        return self._running[peer.name][1]

    def obituary(self, name: str) -> str | None:
        """What a broker that died left behind."""
        return self._running[name][0].obituary() if name in self._running else None

    def startup_s(self, name: str) -> float:
        """How long it took to start."""
        return self._running[name][0].startup_s

    def retire(self, name: str) -> None:
        """End this broker."""
        if name in self._running:
            self._running.pop(name)[0].stop()


def run(plan: Plan, *, absent: dict[str, str], certificate: Certificate | None, watcher: Watcher) -> Record:
    """Measure everything planned; on Ctrl-C the brokers are ended and the interruption passes on."""
    began = time.monotonic()
    record = Record(
        quick=plan.quick,
        started=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        commit=describe_commit(),
        machine={**describe_machine(), "disk": disk_of(plan.disk).file_system},
        versions={peer.name: peer.version() or "unknown" for peer in plan.peers if plan.involves(peer)},
        absent=absent,
    )
    watcher.planned(plan.steps)
    with Fleet(certificate, plan.disk) as fleet, Generator() as generator:
        for workload in plan.workloads:
            turn = _Turn(workload, plan, fleet, generator, watcher)
            if time.monotonic() - began > plan.budget_s:
                rows = turn.leave_out(f"{plan.budget_s:.0f} s were over")
            elif workload.durable and disk_of(plan.disk).is_volatile:
                kind = disk_of(plan.disk).file_system
                rows = turn.leave_out(f"{plan.disk.resolve()} is on {kind}, which keeps nothing: give --disk a disk")
            else:
                rows = turn.take(has_certificate=certificate is not None)
            record.rows += rows
            watcher.finished(workload, rows)
    record.seconds = round(time.monotonic() - began, 1)
    record.targets = judge(record)
    return record


class _Turn:
    """One workload, all its brokers, all its repetitions."""

    def __init__(self, workload: Workload, plan: Plan, fleet: Fleet, generator: Generator, watcher: Watcher) -> None:
        self._workload = workload
        self._plan = plan
        self._fleet = fleet
        self._generator = generator
        self._watcher = watcher
        self._rows = {
            peer.name: Row(workload=workload.name, title=workload.title, group=workload.group, peer=peer.name)
            for peer in plan.participants(workload)
        }

    def leave_out(self, why: str) -> list[Row]:
        """Rows that say why there are no numbers."""
        for row in self._rows.values():
            row.status, row.note = "not run", why
        return list(self._rows.values())

    def take(self, *, has_certificate: bool) -> list[Row]:
        """Measure; the brokers alternate."""
        peers = self._plan.participants(self._workload)
        for peer in peers:
            objection = self._workload.objection(peer, has_certificate=has_certificate)
            if objection:
                self._rows[peer.name].status, self._rows[peer.name].note = "not offered", objection
        for repetition in range(self._plan.repetitions(self._workload)):
            for peer in peers:
                if self._rows[peer.name].status == "measured":
                    self._watcher.measuring(self._workload, peer.name, repetition)
                    self._measure(peer, is_first=repetition == 0)
        return list(self._rows.values())

    def _measure(self, peer: Peer, *, is_first: bool) -> None:
        row = self._rows[peer.name]
        if self._workload.anew or (is_first and self._workload.fresh):
            self._fleet.retire(peer.name)
        try:
            endpoint = self._fleet.endpoint(peer, durable=self._workload.durable)
            metrics = self._generator.run(self._workload.job(self._plan.effort), endpoint)
            row.repetitions.append({**metrics, "startup_s": self._fleet.startup_s(peer.name)})
        except Failure as failure:
            row.status, row.note = "failed", self._fleet.obituary(peer.name) or str(failure)
            self._fleet.retire(peer.name)
