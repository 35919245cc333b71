"""Many clients with pauses between their messages, plain and encrypted: batching helps least here."""

from __future__ import annotations

from tieline.bench.load.pace import Pace
from tieline.bench.workloads.workload import Effort, Workload

_FIRST = ", each for the first time"


def _paced(
    clients: int,
    per_second: int,
    *,
    tls: bool = False,
    first: bool = False,
    everyone: bool = False,
    quick: bool = False,
) -> Workload:
    def job(effort: Effort) -> Pace:
        return Pace(clients=clients, per_second=per_second, seconds=effort.paced_s, tls=tls, first=first)

    return Workload(
        name=f"paced-{clients}x{per_second}" + ("-tls" if tls else "") + ("-first" if first else ""),
        title=f"{clients:,} clients x {per_second} msg/s, {'TLS' if tls else 'TCP'}" + (_FIRST if first else ""),
        group="paced",
        job=job,
        shown=("cpu_us_delivered", "p50_us", "p99_us"),
        pair_only=not everyone,
        quick=quick,
        tls=tls,
        repetitions=5,
    )


PACED = (
    _paced(200, 1),
    _paced(200, 50, everyone=True, quick=True),
    _paced(1_000, 1),
    _paced(1_000, 1, first=True),
    _paced(1_000, 10),
    _paced(200, 50, tls=True, quick=True),
    _paced(1_000, 10, tls=True),
)
