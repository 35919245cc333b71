"""None"""

from __future__ import annotations

import pytest

from tieline.pipeline.complaint import our_sentence, sentence

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
            (
                "An error occurred while calling o52.load.\n: org.apache.spark.SparkClassNotFoundException: "
                "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: x. SQLSTATE: 42K02\n\tat a.b"
            ),
            "Failed to find the data source: x.",
        ),
        (
            (
                "Traceback (most recent call last):\ntieline.pipeline.options.OptionError: streams need Spark 4.2\n\n"
                "During handling of the above exception, another exception occurred:\n\n"
                "Traceback (most recent call last):\nUnboundLocalError: cannot access local variable 'reader'\n"
            ),
            "streams need Spark 4.2",
        ),
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


SOURCE = """[STREAM_FAILED] Query [id = 1] terminated with exception: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR]
Failed when Python streaming data source perform latestOffset: Traceback (most recent call last):
  File "x.py", line 152, in main
    latest_offset_admission_control_func(reader, infile, outfile)
tieline.pipeline.source.client.Gap: http://a:1: offsets 10 to 49 are not there any more; goes on behind them
 SQLSTATE: 38000
\tat org.apache.spark.sql.X(Y.scala:1)
"""


def test_the_sentence_alone() -> None:
    expected = "http://a:1: offsets 10 to 49 are not there any more; goes on behind them"
    assert our_sentence(SOURCE) == our_sentence(RuntimeError(SOURCE)) == expected


def test_what_is_not_ours() -> None:
    assert our_sentence("Traceback\nValueError: tieline") is None
    assert our_sentence(RuntimeError("org.apache.spark.SparkException: no space left on device")) is None
