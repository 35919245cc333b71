"""What ingest asks of a log server."""

from __future__ import annotations

from tieline.pipeline.decode.records import NEEDED
from tieline.pipeline.jobs.ingest_batch import Logs


def test_ingest_does_not_let_the_log_server_read_messages_that_it_reads_itself() -> None:
    assert "attributes" not in NEEDED and "payload" in NEEDED
    asked = Logs(["http://127.0.0.1:9884"]).source()["columns"].split(",")
    assert tuple(asked) == NEEDED
