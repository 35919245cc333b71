"""What the brokers are asked to do: a list of named workloads, in the order in which they run."""

from __future__ import annotations

from tieline.bench.workloads.connections import CONNECTIONS
from tieline.bench.workloads.durable import DURABLE
from tieline.bench.workloads.filters import FILTERS
from tieline.bench.workloads.first import FIRST
from tieline.bench.workloads.latency import LATENCY
from tieline.bench.workloads.paced import PACED
from tieline.bench.workloads.throughput import THROUGHPUT
from tieline.bench.workloads.workload import Workload

WORKLOADS: tuple[Workload, ...] = (*THROUGHPUT, *FIRST, *LATENCY, *PACED, *CONNECTIONS, *FILTERS, *DURABLE)
#: What can be run alone: the tables of the report.
PARTS: tuple[str, ...] = tuple(dict.fromkeys(one.group for one in WORKLOADS))
