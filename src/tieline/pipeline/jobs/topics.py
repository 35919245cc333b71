"""Topic filters as conditions on a column, so that Spark leaves rows out before anything else looks at them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from tieline.wire.errors import ProtocolError
from tieline.wire.topics import check_filter

_MAX_LEVELS = 65_535


class NoFilter(ValueError):
    """A topic filter that is none; the text is a sentence."""


def of_topics(rows: DataFrame, column: str, filters: Sequence[str]) -> DataFrame:
    """The rows whose topic matches one of some filters; all rows if there are none."""
    if not filters:
        return rows
    return rows.where(reduce(or_, (_matches(sql.col(column), each) for each in filters)))


def _matches(topic: Column, filter_: str) -> Column:
    return topic.rlike(pattern(filter_))


def pattern(filter_: str) -> str:
    """A regular expression, without repetition inside repetition, that matches what a topic filter does."""
    try:
        check_filter(filter_, _MAX_LEVELS)
    except ProtocolError as error:
        raise NoFilter(f'"{filter_}" is no topic filter: {error.text}.') from None
    levels = filter_.split("/")
    is_open = levels[-1] == "#"
    parts = ["[^/]*" if level == "+" else re.escape(level) for level in (levels[:-1] if is_open else levels)]
    # [MQTT-4.7.2-1] wildcards do not match a first level that begins with $
    hidden = "(?!\\$)" if levels[0] in ("+", "#") else ""
    if not is_open:
        return f"^{hidden}{'/'.join(parts)}\\z"
    return f"^{hidden}" if not parts else f"^{hidden}{'/'.join(parts)}(/|\\z)"
