"""What tests of the pipeline share: one Spark session, and log servers that end with the test.

A JVM costs seconds to start and a gigabyte to keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.source.served import Served
from tieline.pipeline.session import BRIEF, make_session


def brief_session() -> SparkSession:
    """The session of the tests, also for scripts that need one: two threads, quick to start."""
    return make_session(
        "tieline tests",
        master="local[2]",
        settings={
            **BRIEF,
            "spark.driver.memory": "1g",
            "spark.sql.shuffle.partitions": "2",
            # a few rows are sooner computed than code for them is compiled, or a plan is changed on the way
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.codegen.wholeStage": "false",
        },
    )


@pytest.fixture(name="spark", scope="session")
def _spark() -> Iterator[SparkSession]:
    session = brief_session()
    yield session
    session.stop()


@pytest.fixture(name="serve")
def _serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    with ExitStack() as stack:
        yield lambda name="edge", **how: stack.enter_context(Served(tmp_path / name, name, **how))
