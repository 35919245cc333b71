"""From a table of the lake to readings and incidents: which column is which, and where a node's name comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import NumericType

from tieline.pipeline.jobs.quality.incidents import RAPID
from tieline.pipeline.jobs.quality.quantities import FURTHER, PHASES, SERIES, VOLTAGE, Series

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
    #: How far the voltage went in a rapid voltage change, in volts; other incidents say what was left of it.
    change: str = "change"
    #: The phase of an incident, or of a reading where a meter sends each phase by itself.
    phase: str = "phase"
    #: Where further quantities are, if not in columns of their own names: phases, unbalance, distortion, flicker.
    further: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.further:
            if name not in FURTHER:
                known = "voltage_l1 to _l3, unbalance, thd, harmonic_2 to harmonic_25, plt, signalling"
                raise Unmapped(f'"{name}" is no quantity of EN 50160; these are: {known}, most also as _l1 to _l3')


_BY_PHASE: Final = tuple(Series(VOLTAGE, phase) for phase in PHASES)
_SERIES_BY_PHASE: Final = tuple(each for each in SERIES if each.phase)


def readings(table: DataFrame, columns: Columns) -> DataFrame:
    """Columns node, time, voltage, frequency, and those of further quantities that are there.

    Voltage must be there, as a whole or by phase; a table without frequency gives nulls.  A reading without a time
    belongs to no window and is left out; ``_time`` always has one.
    """
    has_frequency = columns.frequency in table.columns
    further = [
        _number(table, columns.further.get(name, name)).alias(name)
        for name in FURTHER
        if name in columns.further or _is_number(table, name)
    ]
    by_phase = any(each.column in columns.further or each.column in table.columns for each in _BY_PHASE)
    has_voltage = columns.voltage in table.columns or not by_phase
    found = table.where(_named(table, columns.time).isNotNull()).select(
        _node(table, columns),
        _time(table, columns).alias("time"),
        (_number(table, columns.voltage) if has_voltage else sql.lit(None).cast("double")).alias(VOLTAGE),
        (_number(table, columns.frequency) if has_frequency else sql.lit(None).cast("double")).alias("frequency"),
        *further,
        *([_phase(table, columns)] if columns.phase in table.columns else []),
    )
    return _side_by_side(found) if "phase" in found.columns else found


def _side_by_side(found: DataFrame) -> DataFrame:
    """Readings of single phases as one reading of their node: what has the same time stands side by side."""
    aside = [name for name in found.columns if name not in ("node", "time", "phase")]
    has_phases = {each.quantity for each in _SERIES_BY_PHASE}
    known = sql.col("phase").isin(*PHASES)
    return found.groupBy("node", "time").agg(
        *(
            sql.first(sql.when(~known | sql.col("phase").isNull(), sql.col(name)) if name in has_phases else name,
                ignorenulls=True).alias(name)
            for name in aside
        ),
        *(
            sql.first(sql.when(sql.col("phase") == each.phase, sql.col(each.quantity)), ignorenulls=True).alias(
                each.column
            )
            for each in _SERIES_BY_PHASE
            if each.quantity in aside and each.column not in aside
        ),
    )  # fmt: skip


def incidents(table: DataFrame, columns: Columns) -> DataFrame:
    """Columns node, time, kind, residual, duration, and phase if the table has it.

    What a rapid voltage change has instead of a residual voltage, its change, stands in the same column.
    """
    has_phase = columns.phase in table.columns
    kind = _named(table, columns.kind).cast("string")
    residual = _number(table, columns.residual)
    if _is_number(table, columns.change):
        residual = sql.when(kind == RAPID, sql.abs(_number(table, columns.change))).otherwise(residual)
    return table.select(
        _node(table, columns),
        _named(table, columns.time).alias("time"),
        kind.alias("kind"),
        residual.alias("residual"),
        _number(table, columns.duration).alias("duration"),
        *([_phase(table, columns)] if has_phase else []),
    )


def _phase(table: DataFrame, columns: Columns) -> Column:
    """L1, L2 or L3, however it is written: 1, l1, A; anything else as it is."""
    text = sql.upper(sql.trim(_named(table, columns.phase).cast("string")))
    found = sql.col(columns.phase).cast("string")
    for number, phase in enumerate(PHASES):
        found = sql.when(text.isin(phase, str(number + 1), "ABC"[number]), phase).otherwise(found)
    return found.alias("phase")


def _is_number(table: DataFrame, name: str) -> bool:
    return name in table.columns and isinstance(table.schema[name].dataType, NumericType)


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
