"""Dips, swells and interruptions fall into the standard's classes, edges included, and none is lost."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.jobs.quality.frames import incidents_frame
from tieline.pipeline.jobs.quality.incidents import OTHER, OUTSIDE, classify
from tieline.pipeline.jobs.quality.incidents import table as count
from tieline.pipeline.jobs.quality.limits import Limits

pytestmark = pytest.mark.timeout(300)

#: Kind, percent of 200 V, seconds, and the class: depth, lasting.
CASES = (
    ("dip", 89.9, 0.01, ("90 > u ≥ 80", "10 – 200 ms")),
    ("dip", 90.0, 0.1, (OUTSIDE, OUTSIDE)),
    ("dip", 80.0, 0.2, ("90 > u ≥ 80", "10 – 200 ms")),
    ("dip", 79.9, 0.201, ("80 > u ≥ 70", "200 – 500 ms")),
    ("dip", 40.0, 1.0, ("70 > u ≥ 40", "0.5 – 1 s")),
    ("dip", 39.5, 1.001, ("40 > u ≥ 5", "1 – 5 s")),
    ("dip", 4.5, 60.0, ("5 > u", "5 – 60 s")),
    ("dip", 50.0, 60.5, (OUTSIDE, OUTSIDE)),
    ("dip", 50.0, 0.009, (OUTSIDE, OUTSIDE)),
    ("dip", None, 0.5, (OUTSIDE, OUTSIDE)),
    ("dip", 50.0, None, (OUTSIDE, OUTSIDE)),
    ("dip", float("nan"), 0.5, (OUTSIDE, OUTSIDE)),
    ("swell", 110.0, 0.1, (OUTSIDE, OUTSIDE)),
    ("swell", 110.5, 0.5, ("120 > u > 110", "10 – 500 ms")),
    ("swell", 120.0, 5.0, ("u ≥ 120", "0.5 – 5 s")),
    ("swell", 300.0, 60.0, ("u ≥ 120", "5 – 60 s")),
    ("interruption", 0.0, 0.02, ("5 > u", "short, up to 3 min")),
    ("interruption", 4.9, 180.0, ("5 > u", "short, up to 3 min")),
    ("interruption", 1.0, 181.0, ("5 > u", "long, over 3 min")),
    ("interruption", 6.0, 181.0, (OUTSIDE, OUTSIDE)),
    # of a rapid change the volts are how far it went
    ("rapid", 4.9, 0.5, ("up to 5", "any duration")),
    ("rapid", 5.0, None, ("5 – 10", "any duration")),
    ("rapid", 10.0, 0.1, ("over 10", "any duration")),
    ("rapid", None, 0.1, (OUTSIDE, OUTSIDE)),
)


def test_every_edge_of_the_tables_and_every_incident_once(spark: SparkSession) -> None:
    limits = Limits(nominal_v=200.0)
    rows = [
        (f"{number}", 1_792_368_000.0, kind, None if percent is None else percent * 2, duration)
        for number, (kind, percent, duration, _) in enumerate(CASES)
    ]
    rows.append(("strange", 1_792_368_000.0, "flicker", 190.0, 1.0))
    frame = incidents_frame(spark, rows)
    found = {row.node: (row.kind, row.depth, row.lasting) for row in classify(frame, limits).collect()}
    expected = {f"{number}": (kind, *of) for number, (kind, _, _, of) in enumerate(CASES)}
    assert found == {**expected, "strange": (OTHER, OUTSIDE, OUTSIDE)}
    assert sum(row.incidents for row in count(classify(frame, limits)).collect()) == len(rows)
