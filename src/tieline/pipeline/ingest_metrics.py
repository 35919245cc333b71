"""How ingest is doing, for Prometheus: how far behind each log it is, and what the last batch was.

The page is served by Prometheus' own library from a thread of its own; only whoever asks for it needs the library.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tieline.extras import needs

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from tieline.pipeline.jobs.ingest_batch import Landed

_PREFIX: Final = "tieline_ingest"


class IngestMetrics:
    """The figures of one ingest, in a registry of their own."""

    def __init__(self) -> None:
        with needs("web"):
            from prometheus_client import CollectorRegistry, Counter, Gauge

        self.registry: CollectorRegistry = CollectorRegistry()

        def gauge(name: str, help_text: str, *labels: str) -> Gauge:
            return Gauge(f"{_PREFIX}_{name}", help_text, labels, registry=self.registry)

        def counter(name: str, help_text: str, *labels: str) -> Counter:
            return Counter(f"{_PREFIX}_{name}", help_text, labels, registry=self.registry)

        self._behind = gauge("behind_records", "Records of a broker's log that are not in the tables yet.", "broker")
        self._looked = gauge("looked_timestamp_seconds", "When the ends of the logs were asked for last.")
        self._batch = gauge("last_batch", "Number of the last batch that landed.")
        self._landed = gauge("last_batch_timestamp_seconds", "When the last batch landed.")
        self._size = gauge("last_batch_records", "Records in the last batch.")
        self._took = gauge("last_batch_seconds", "Seconds from the plan of the last batch until it had landed.")
        self._batches = counter("batches", "Batches that landed since the start.")
        self._records = counter("records", "Records that were brought into the tables since the start.")
        self._rows = counter("rows", "Rows that landed since the start, by table.", "table")

    def landed(self, batch: Landed) -> None:
        """A batch is in the tables."""
        self._batch.set(batch.number)
        self._landed.set(time.time())
        self._size.set(batch.records)
        self._took.set(batch.seconds)
        self._batches.inc()
        self._records.inc(batch.records)
        for table, rows in batch.rows.items():
            self._rows.labels(table).inc(rows)

    def looked(self, behind: Mapping[str, int] | None) -> None:
        """The ends of the logs were asked for; nothing is said while they are not known."""
        if behind is None:
            return
        self._looked.set(time.time())
        for broker, records in behind.items():
            self._behind.labels(broker).set(records)

    @contextmanager
    def served(self, host: str, port: int) -> Iterator[None]:
        """While this lasts, the page is served at an address."""
        from prometheus_client import start_http_server

        server, thread = start_http_server(port, host, self.registry)
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
