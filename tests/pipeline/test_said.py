"""Our sentence in Spark's many lines."""

from __future__ import annotations

from tieline.pipeline.said import sentence

STREAM = """[STREAM_FAILED] Query [id = 1] terminated with exception: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR]
Failed when Python streaming data source perform latestOffset: Traceback (most recent call last):
  File "x.py", line 152, in main
    latest_offset_admission_control_func(reader, infile, outfile)
tieline.pipeline.source.client.Gap: http://a:1: offsets 10 to 49 are not there any more; goes on behind them
 SQLSTATE: 38000
\tat org.apache.spark.sql.X(Y.scala:1)
"""


def test_the_sentence_alone() -> None:
    expected = "http://a:1: offsets 10 to 49 are not there any more; goes on behind them"
    assert sentence(STREAM) == sentence(RuntimeError(STREAM)) == expected


def test_what_is_not_ours() -> None:
    assert sentence("Traceback\nValueError: tieline") is None
    assert sentence(RuntimeError("org.apache.spark.SparkException: no space left on device")) is None
