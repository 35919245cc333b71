"""Incidents of single phases as incidents of the supply: IEC 61000-4-30, 5.4 and 5.5, which EN 50160, 4.3 asks for.

Theory of operation
-------------------
A dip of the supply begins when the first phase dips and ends when the last one is back; what is left is the least of
any phase.  Swells are alike, with the most.  The supply is interrupted only while all phases are: a lost phase beside
others that stand is a dip.  A dip that contains an interruption is counted as that interruption, which has its own
begin and end.

Incidents without a phase are of the whole supply already and stay as they are.  So do those without a duration, of
which nobody can say what they overlap.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from tieline.pipeline.jobs.quality.flags import lasting, merged
from tieline.pipeline.jobs.quality.incidents import INTERRUPTION
from tieline.pipeline.jobs.quality.quantities import PHASES, VOLTAGE

_SWELL: Final = "swell"
_COLUMNS: Final = ("node", "time", "kind", "residual", "duration", "phases")


def of_the_supply(incidents: DataFrame, lines: DataFrame) -> DataFrame:
    """Columns node, time, kind, residual, duration, and phases: those that took part, as in ``L1 L3``.

    ``incidents``: node, time, kind, residual, duration, phase.  ``lines`` (node, quantity, phase) say how many phases a
    node has: three where its readings are not by phase.
    """
    if "phase" not in incidents.columns:
        return incidents.select(*_COLUMNS[:-1], sql.lit(None).cast("string").alias("phases"))
    is_one = (
        sql.col("phase").isin(*PHASES)
        & sql.col("time").isNotNull()
        & (sql.nanvl("duration", sql.lit(-1.0)) >= 0)
        & sql.col("kind").isin("dip", _SWELL, INTERRUPTION)
    )
    single = sql.coalesce(is_one, sql.lit(col=False))
    whole = incidents.where(~single).select(*_COLUMNS[:-1], sql.col("phase").alias("phases"))
    begin = sql.unix_micros("time") / 1e6
    by_phase = incidents.where(single).select(
        "node", "phase", "kind", "residual", begin.alias("begin"), (begin + lasting("duration")).alias("end")
    )
    sags, swells = by_phase.where(sql.col("kind") != _SWELL), by_phase.where(sql.col("kind") == _SWELL)
    dark = _all_dark(sags.where(sql.col("kind") == INTERRUPTION), lines)
    dips = _joined(sags, "dip", sql.min("residual"))
    containing = (
        (dips["node"] == dark["node"]) & (dips["begin"] <= dark["begin"]) & (dark["end"] <= dips["end"])
    )  # fmt: skip
    spared = dips.join(dark, containing, "left_anti")
    found = spared.unionByName(_joined(swells, _SWELL, sql.max("residual"))).unionByName(dark)
    return whole.unionByName(
        found.select(
            "node",
            sql.timestamp_micros(sql.round(sql.col("begin") * 1e6).cast("bigint")).alias("time"),
            "kind",
            "residual",
            (sql.round((sql.col("end") - sql.col("begin")) * 1e6) / 1e6).alias("duration"),
            "phases",
        )
    )


def _joined(rows: DataFrame, kind: str, residual: Column) -> DataFrame:
    """What overlaps on any phases as one incident: node, begin, end, kind, residual, phases."""
    return (
        merged(rows, "node")
        .groupBy("node", "island")
        .agg(
            sql.min("begin").alias("begin"),
            sql.max("end").alias("end"),
            residual.alias("residual"),
            sql.array_join(sql.array_sort(sql.collect_set("phase")), " ").alias("phases"),
        )
        .select("node", "begin", "end", sql.lit(kind).alias("kind"), "residual", "phases")
    )


def _all_dark(dark: DataFrame, lines: DataFrame) -> DataFrame:
    """The times when all phases of a node are interrupted: columns as of :func:`_joined`."""
    told = lines.where((sql.col("quantity") == VOLTAGE) & (sql.col("phase") != "")).groupBy("node")
    phases = told.agg(
        sql.count(sql.lit(1)).alias("all"),
        sql.array_join(sql.array_sort(sql.collect_set("phase")), " ").alias("phases"),
    )
    single = merged(dark, "node", "phase").groupBy("node", "phase", "island").agg(
        sql.min("begin").alias("begin"), sql.max("end").alias("end"), sql.min("residual").alias("residual")
    )  # fmt: skip
    edges = single.select(
        "node",
        "residual",
        sql.explode(
            sql.array(
                sql.struct(sql.col("begin").alias("at"), sql.lit(1).alias("step")),
                sql.struct(sql.col("end").alias("at"), sql.lit(-1).alias("step")),
            )
        ).alias("edge"),
    ).select("node", "residual", "edge.*")
    # what begins when another ends does not overlap it: ends come first
    order = Window.partitionBy("node").orderBy("at", "step")
    return (
        edges.withColumn("dark", sql.sum("step").over(order.rowsBetween(Window.unboundedPreceding, 0)))
        .withColumn("end", sql.lead("at").over(order))
        .join(sql.broadcast(phases), "node", "left")
        .where((sql.col("dark") >= sql.coalesce("all", sql.lit(len(PHASES)))) & (sql.col("end") > sql.col("at")))
        .select(
            "node",
            sql.col("at").alias("begin"),
            "end",
            sql.lit(INTERRUPTION).alias("kind"),
            "residual",
            sql.coalesce("phases", sql.lit(" ".join(PHASES))).alias("phases"),
        )
    )
