"""What others have decided about Spark before us: ``spark-submit``'s command line, and ``spark-defaults.conf``.

A setting that Spark's launcher is given wins over the file of defaults, so ours would silently replace what whoever
looks after a cluster has written there.  What the file decides is therefore read here first, and ours are given only
where it says nothing.  It is a file of Java properties; of these, Spark's own names hold no escapes.

Under ``spark-submit`` the JVM runs already, and knows everything: its command line, its files, its environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

#: What Spark sets in a Python program that it has started itself.
_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
_FILE: Final = "spark-defaults.conf"
_LINE: Final = re.compile(r"\s*(?P<name>spark\.[^\s=:]+)\s*[\s=:]\s*(?P<value>.*?)\s*")


def is_submitted() -> bool:
    """Whether ``spark-submit`` has started this process, beside a JVM that it has started before."""
    return _GATEWAY in os.environ


def decided() -> Mapping[str, str]:
    """Settings that hold unless a program says otherwise."""
    if is_submitted():
        from pyspark import SparkConf, SparkContext

        SparkContext._ensure_initialized()  # noqa: SLF001 - a configuration asks the JVM only behind it
        return dict(SparkConf().getAll())
    file = conf_directory() / _FILE
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    found = (_LINE.fullmatch(line) for line in lines)
    return {line["name"]: line["value"] for line in found if line is not None and line["value"]}


def conf_directory() -> Path:
    """Where Spark's launcher looks for its files."""
    if "SPARK_CONF_DIR" in os.environ:
        return Path(os.environ["SPARK_CONF_DIR"])
    if "SPARK_HOME" in os.environ:
        return Path(os.environ["SPARK_HOME"], "conf")
    spark = find_spec("pyspark")
    return Path(spark.origin if spark is not None and spark.origin is not None else "/nowhere").parent / "conf"
