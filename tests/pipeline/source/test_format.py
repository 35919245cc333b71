"""What Spark imports to plan a query."""

from __future__ import annotations

import subprocess
import sys

#: A module of the sink, and the MQTT client that it needs.
UNWANTED = ("paho", "tieline.pipeline.sink", "pandas")


def test_who_reads_does_not_wait_for_what_writers_need() -> None:
    script = f"import sys, tieline.pipeline.source.format; print([n for n in {UNWANTED!r} if n in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"
