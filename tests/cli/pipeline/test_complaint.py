from __future__ import annotations

import pytest

from tieline.cli.pipeline.complaint import sentence

STREAM = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted SQLSTATE: XXKST
=== Streaming Query ===
Traceback (most recent call last):
  File "worker.py", line 3, in main
    process()
tieline.pipeline.source.client.Gap: offsets 0 to 9 are not there any more; 10 records are missing
\tat org.apache.spark.api.python.BasePythonRunner
\tat java.lang.Thread.run
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STREAM, "offsets 0 to 9 are not there any more; 10 records are missing"),
        ("[PATH_NOT_FOUND] Path does not exist: file:/x. SQLSTATE: 42K03", "Path does not exist: file:/x."),
        ("Traceback (most recent call last):\n  File\nKeyError: 'x'\n", "KeyError: 'x'"),
        ("Traceback (most recent call last):\ntieline.a._No: not so.\n SQLSTATE: 38000\n", "not so."),
        ("An error\nmore", "An error"),
        (
            '<_InactiveRpcError of RPC that terminated with:\n\tstatus = X\n\tdetails = "refused"\n\tdebug = "y"\n>',
            "the Spark Connect server does not answer: refused",
        ),
        ("", "Spark failed and did not say why"),
        ("a" * 1_000, "a" * 599 + "…"),
    ],
)
def test_the_line_that_matters(text: str, said: str) -> None:
    assert sentence(text) == said
