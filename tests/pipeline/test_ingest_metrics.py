"""What Prometheus reads while ingest runs."""

from __future__ import annotations

import urllib.request

from tieline.bench.peer import free_ports
from tieline.pipeline.ingest_metrics import IngestMetrics
from tieline.pipeline.jobs.ingest_batch import Landed


def test_lag_and_last_batch_are_served() -> None:
    page = IngestMetrics()
    (port,) = free_ports(1)
    with page.served("127.0.0.1", port):
        page.looked(None)
        page.landed(Landed(10, {"events/reading": 8, "quarantine": 2}, 7, 1.5))
        page.landed(Landed(5, {"events/reading": 5}, 8, 0.5))
        page.looked({"north": 0, "south": 40})
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    told = {name: float(value) for name, value in found.items() if "timestamp" not in name and "created" not in name}
    assert told == {
        'tieline_ingest_behind_records{broker="north"}': 0.0,
        'tieline_ingest_behind_records{broker="south"}': 40.0,
        "tieline_ingest_last_batch": 8.0,
        "tieline_ingest_last_batch_records": 5.0,
        "tieline_ingest_last_batch_seconds": 0.5,
        "tieline_ingest_batches_total": 2.0,
        "tieline_ingest_records_total": 15.0,
        'tieline_ingest_rows_total{table="events/reading"}': 13.0,
        'tieline_ingest_rows_total{table="quarantine"}': 2.0,
    }
    assert float(found["tieline_ingest_last_batch_timestamp_seconds"]) > 1.7e9
