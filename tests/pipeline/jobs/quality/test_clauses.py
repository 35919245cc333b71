"""Each clause of the standard on a week made by hand whose verdict is known: just enough, and one window too many."""

from __future__ import annotations

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from tests.pipeline.jobs.quality.frames import incidents_frame, readings_frame
from tieline.pipeline.jobs.quality.assessment import assess
from tieline.pipeline.jobs.quality.clauses import HARMONICS, signal_percent
from tieline.pipeline.jobs.quality.limits import Limits
from tieline.pipeline.jobs.quality.quantities import harmonic
from tieline.pipeline.jobs.quality.verdicts import FAIL, PASS, TOO_LITTLE, judge, of_counts

pytestmark = pytest.mark.timeout(300)

#: Monday, 9 November 2026, 00:00 UTC.
MONDAY = 1_794_182_400
WEEK_S = 604_800
#: What may just be, and what is just too much; of a 10-minute quantity and of one of two hours.
ALLOWED, TOO_MUCH = 50, 51
INCIDENTS = "node string, time timestamp, kind string, residual double, duration double, phase string"

#: Column: a value that is fine for ever (the limit itself, where there is one), and one that is not.
VALUES: dict[str, tuple[float, float]] = {
    "voltage_l1": (253.0, 253.01),
    "voltage_l2": (207.0, 206.99),
    "voltage_l3": (230.0, 200.0),
    "unbalance": (2.0, 2.01),
    "thd": (8.0, 8.01),
    **{harmonic(order): (limit, limit + 0.01) for order, limit in HARMONICS.items()},
}


def _week(node: str, bad: int, bad_flicker: int) -> pd.DataFrame:
    count = WEEK_S // 600
    table = pd.DataFrame({"node": [node] * count, "time": [MONDAY + 600 * number for number in range(count)]})
    for name, (fine, wrong) in VALUES.items():
        table[name] = [wrong if number < bad else fine for number in range(count)]
    # told once in two hours, for the two hours before
    table["plt"] = [
        (1.01 if number // 12 < bad_flicker else 1.0) if number % 12 == 0 else None for number in range(count)
    ]
    return table.assign(voltage=None, frequency=None)


@pytest.fixture(name="week", scope="module")
def _readings(spark: SparkSession) -> DataFrame:
    table = pd.concat([_week("just enough", ALLOWED, 4), _week("too much", TOO_MUCH, 5)])
    table["time"] = pd.to_datetime(table["time"], unit="s", utc=True)
    names = [name for name in table.columns if name not in ("node", "time")]
    schema = "node string, time timestamp, " + ", ".join(f"{name} double" for name in names)
    return spark.createDataFrame(table.astype(dict.fromkeys(names, float)), schema)


def test_ten_minutes_and_two_hours(spark: SparkSession, week: DataFrame) -> None:
    found = assess(week, spark.createDataFrame([], INCIDENTS), Limits()).verdicts.collect()
    verdicts = {(row.node, row.phase, row.clause): row.verdict for row in found}
    names = ["unbalance-95", "thd-95", "flicker-95", *(f"harmonic-{order}-95" for order in HARMONICS)]
    for name in names:
        assert verdicts.pop(("just enough", "", name)) == PASS, name
        assert verdicts.pop(("too much", "", name)) == FAIL, name
    by_phase = {phase: verdicts.pop(("just enough", phase, "voltage-95")) for phase in ("L1", "L2", "L3")}
    assert by_phase == {"L1": PASS, "L2": PASS, "L3": PASS}
    assert all(verdicts.pop(("too much", phase, "voltage-95")) == FAIL for phase in ("L1", "L2", "L3"))
    # above 253 V is outside the wide range too; 200 V is not
    wide = {(node, phase): of for (node, phase, name), of in verdicts.items() if name == "voltage-100"}
    assert {key[1]: of for key, of in wide.items()} == {"L1": FAIL, "L2": PASS, "L3": PASS}
    # nothing else is judged: frequency was not told, and the voltage is that of the phases
    left = {(phase, name): of for (_, phase, name), of in verdicts.items() if name != "voltage-100"}
    assert left == {("", "frequency-95"): TOO_LITTLE, ("", "frequency-100"): TOO_LITTLE}
    flicker = next(row for row in found if row.clause == "flicker-95")
    assert (flicker.windows, flicker.measured, flicker.thin) == (84, 84, 0)


#: Node: volts from the hundredth window on, in how many windows, and what the meter calls it: kind, volts, seconds.
CALLED: dict[str, tuple[float, int, tuple[str, float, float]]] = {
    "half a day too high": (260.0, 72, ("swell", 260.0, 43_200.0)),
    "half a day too low": (200.0, 72, ("dip", 200.0, 43_200.0)),
    "half a day dark": (0.0, 72, ("interruption", 0.0, 43_200.0)),
    "a swell of a minute": (260.0, 1, ("swell", 260.0, 60.0)),
    "a second more": (260.0, 1, ("swell", 260.0, 61.0)),
    "a dip of a minute": (190.0, 1, ("dip", 190.0, 60.0)),
    "no dip at all": (208.0, 1, ("dip", 208.0, 60.0)),
    "low for as long as ten minutes": (195.5, 1, ("dip", 195.5, 600.0)),
    "lower than that": (195.49, 1, ("dip", 195.49, 600.0)),
}


def test_what_lasts_is_judged_and_what_passes_is_left_out(spark: SparkSession) -> None:
    begin = MONDAY + 600 * 100
    readings = [
        (node, float(MONDAY + 600 * number), volts if 100 <= number < 100 + bad else 230.0, None)
        for node, (volts, bad, _) in CALLED.items()
        for number in range(WEEK_S // 600)
    ]
    happened = [(node, float(begin), *called) for node, (_, _, called) in CALLED.items()]
    found = assess(readings_frame(spark, readings), incidents_frame(spark, happened), Limits()).verdicts
    rows = {
        row.node: (row.flagged, row.outside, round(row.share, 4), row.verdict)
        for row in found.where("clause = 'voltage-95'").collect()
    }
    assert rows == {
        "half a day too high": (0, 72, 0.9286, FAIL),
        "half a day too low": (0, 72, 0.9286, FAIL),
        "half a day dark": (72, 0, 1.0, PASS),
        "a swell of a minute": (1, 0, 1.0, PASS),
        "a second more": (0, 1, 0.999, PASS),
        "a dip of a minute": (1, 0, 1.0, PASS),
        "no dip at all": (0, 0, 1.0, PASS),
        "low for as long as ten minutes": (0, 1, 0.999, PASS),
        "lower than that": (0, 1, 0.999, PASS),
    }
    always = {row.node: row.verdict for row in found.where("clause = 'voltage-100'").collect()}
    assert {node for node, verdict in always.items() if verdict == FAIL} == {
        "half a day too high", "a second more", "lower than that"
    }  # fmt: skip


def _steady(spark: SparkSession, quantity: str, seconds: int, values: dict[str, str]) -> tuple[DataFrame, DataFrame]:
    """A week of means: by node an expression of ``n``, the window's number."""
    count = WEEK_S // seconds
    node = sql.array(*map(sql.lit, values))[(sql.col("id") / count).cast("int")]
    value = sql.lit(0.0)
    for name, expression in values.items():
        value = sql.when(sql.col("node") == name, sql.expr(expression)).otherwise(value)
    constant = {"quantity": sql.lit(quantity), "phase": sql.lit(""), "measured": sql.lit(col=True)}
    means = spark.range(count * len(values)).withColumns({"node": node, "n": sql.col("id") % count})
    means = means.withColumns(
        {
            "start": sql.timestamp_seconds(sql.lit(MONDAY) + sql.col("n") * seconds),
            "value": value,
            "flagged": sql.lit(col=False),
            **constant,
        }
    )
    expected = spark.createDataFrame(
        [(name, quantity, "") for name in values], "node string, quantity string, phase string"
    )
    return means, expected.withColumn("monday", sql.timestamp_seconds(sql.lit(MONDAY)))


def _verdicts(rows: tuple[DataFrame, DataFrame], quantity: str, limits: Limits) -> dict[tuple[str, str], str]:
    return {(row.node, row.clause): row.verdict for row in judge(*rows, [quantity], limits).collect()}


def test_frequency_of_both_systems(spark: SparkSession) -> None:
    rows = _steady(
        spark,
        "frequency",
        10,
        {
            "5 % at 49.4": "if(n < 3024, 49.4, 49.5)",
            "one more": "if(n < 3025, 49.4, 50.5)",
            "once at 46.9": "if(n = 7, 46.9, 50.0)",
            "once at 57.6": "if(n = 7, 57.6, 51.0)",
        },
    )
    assert _verdicts(rows, "frequency", Limits()) == {
        ("5 % at 49.4", "frequency-95"): PASS,
        ("5 % at 49.4", "frequency-100"): PASS,
        ("one more", "frequency-95"): FAIL,
        ("one more", "frequency-100"): PASS,
        ("once at 46.9", "frequency-95"): PASS,
        ("once at 46.9", "frequency-100"): FAIL,
        ("once at 57.6", "frequency-95"): FAIL,
        ("once at 57.6", "frequency-100"): FAIL,
    }
    island = _verdicts(rows, "frequency", Limits(system="island"))
    assert {key for key, of in island.items() if of != PASS} == {("once at 57.6", "frequency-100")}


def test_signals_are_judged_day_by_day(spark: SparkSession) -> None:
    limits = Limits(signal_hz=317.0)
    day = 28_800
    rows = _steady(
        spark,
        "signalling",
        3,
        {
            "1 % of each day": f"if(n % {day} < 288, 9.1, 9.0)",
            "one more on Friday": f"if(n between {4 * day} and {4 * day + 288}, 9.1, 1.0)",
        },
    )
    means, expected = rows
    silent = means.where((sql.col("node") != "1 % of each day") | (sql.col("n") >= day // 2))
    assert _verdicts(rows, "signalling", limits) == {
        ("1 % of each day", "signalling-99"): PASS,
        ("one more on Friday", "signalling-99"): FAIL,
    }
    # half a day is missing: the week is not known to pass
    assert _verdicts((silent, expected), "signalling", limits)["1 % of each day", "signalling-99"] == TOO_LITTLE


def test_the_limit_of_a_signal_falls_from_500_to_1000_hertz() -> None:
    assert [round(signal_percent(hertz), 6) for hertz in (100, 500, 1_000, 10_000)] == [9, 9, 5, 5]
    assert 5 < signal_percent(700) < 9


def test_a_year_is_judged_by_the_same_rules() -> None:
    week = WEEK_S // 10
    year, room = 52 * week, 52 * week // 200
    assert of_counts(room, year, year, 995, 0.9) == PASS
    assert of_counts(room + 1, year, year, 995, 0.9) == FAIL
    assert of_counts(room, week, year, 995, 0.9) == TOO_LITTLE  # a week cannot pass a year,
    assert of_counts(room + 1, week, year, 995, 0.9) == FAIL  # but can break it
