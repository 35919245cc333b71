"""A hundred thousand subscriptions that do not match: a PUBLISH should not notice them."""

from __future__ import annotations

from tieline.bench.load.saturate import BystandingFilters
from tieline.bench.workloads.workload import Effort, Workload


def _bystanders(effort: Effort) -> BystandingFilters:
    return BystandingFilters(filters=effort.filters, seconds=effort.seconds)


FILTERS = (
    Workload(
        name="filters",
        title="PUBLISH beside 100k filters that do not match",
        group="filters",
        job=_bystanders,
        shown=("ratio_one_topic", "ratio_many_topics"),
        quick=True,
        fresh=True,
        once_if_quick=True,
    ),
)
