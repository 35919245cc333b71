"""A workload: a job for the generator, what it requires of a broker, and how often it is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tieline.bench.load.job import Job
from tieline.bench.peers.peer import Peer


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEffort:
    """How much is done: enough for stable numbers, or a first impression."""

    repetitions: int
    #: Length of a saturated spell and of a paced one.
    seconds: float
    paced_s: float
    round_trips: int
    connects: int
    idle: int
    idle_tls: int
    filters: int
    topics: int
    #: No workload begins later than this.
    budget_s: float


FULL = BrokerEffort(
    repetitions=3,
    seconds=0.6,
    paced_s=1.5,
    round_trips=6_000,
    connects=3_000,
    idle=10_000,
    idle_tls=10_000,
    filters=100_000,
    topics=20_000,
    budget_s=1_200.0,
)
QUICK = BrokerEffort(
    repetitions=1,
    seconds=0.2,
    paced_s=0.6,
    round_trips=5_000,
    connects=1_000,
    idle=2_000,
    idle_tls=500,
    filters=100_000,
    topics=20_000,
    budget_s=300.0,
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
