"""From a table of the lake to readings and incidents: which column is which, and where a node's name comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import NumericType

Stamped = Literal["end", "begin"]
#: Ours begin with an underscore and are not offered where an attribute is missing.
_OURS: Final = ("_", "day")


class Unmapped(Exception):
    """A table does not have a column that is needed; the message is a sentence that names what it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The names in the tables; the defaults are those of the microgrid world's events."""

    node: str = "node"
    #: Take the node from this level of the topic, counted from 1, and not from a column.
    node_topic_level: int | None = None
    time: str = "_time"
    #: Whether a reading's time is the end of what it measured, as IEC 61000-4-30 tags it, or the beginning.
    stamped: Stamped = "end"
    voltage: str = "voltage"
    frequency: str = "frequency"
    kind: str = "kind"
    residual: str = "residual"
    duration: str = "duration"


def readings(table: DataFrame, columns: Columns) -> DataFrame:
    """Columns node, time, voltage, frequency. Voltage must be there; a table without frequency gives nulls.

    A reading without a time belongs to no window and is left out; ``_time`` always has one.
    """
    has_frequency = columns.frequency in table.columns
    return table.where(_named(table, columns.time).isNotNull()).select(
        _node(table, columns),
        _time(table, columns).alias("time"),
        _number(table, columns.voltage).alias("voltage"),
        (_number(table, columns.frequency) if has_frequency else sql.lit(None).cast("double")).alias("frequency"),
    )


def incidents(table: DataFrame, columns: Columns) -> DataFrame:
    """Columns node, time, kind, residual, duration."""
    return table.select(
        _node(table, columns),
        _named(table, columns.time).alias("time"),
        _named(table, columns.kind).cast("string").alias("kind"),
        _number(table, columns.residual).alias("residual"),
        _number(table, columns.duration).alias("duration"),
    )


def _node(table: DataFrame, columns: Columns) -> Column:
    """The node's name; a reading that does not say it is known by its topic."""
    if columns.node_topic_level is None:
        return sql.coalesce(_named(table, columns.node).cast("string"), sql.col("_topic")).alias("node")
    level = sql.get(sql.split("_topic", "/"), sql.lit(columns.node_topic_level - 1))
    return sql.coalesce(level, sql.col("_topic")).alias("node")


def _time(table: DataFrame, columns: Columns) -> Column:
    """A time inside what the reading measured: one that ends at 10:00 belongs to the window before 10:00."""
    time = _named(table, columns.time)
    return sql.timestamp_micros(sql.unix_micros(time) - 1) if columns.stamped == "end" else time


def _number(table: DataFrame, name: str) -> Column:
    column = _named(table, name)
    kind = table.schema[name].dataType
    if not isinstance(kind, NumericType):
        raise Unmapped(f'the column "{name}" holds {kind.simpleString()}, and numbers are needed')
    return column.cast("double")


def _named(table: DataFrame, name: str) -> Column:
    if name not in table.columns:
        attributes = ", ".join(each for each in table.columns if not each.startswith(_OURS)) or "no attributes"
        raise Unmapped(f'there is no column "{name}"; there is {attributes}')
    return sql.col("`{}`".format(name.replace("`", "``")))
