"""The small pieces of the priority benchmark: tallies, the stated bound, goals, tables and the picture."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tieline.bench.load.job import Metrics
from tieline.bench.priority import cost, slow, thin
from tieline.bench.priority.cases import FULL, PARTS, QUICK, make_plan
from tieline.bench.priority.suite import SUITE, TABLES
from tieline.bench.suite import report
from tieline.bench.suite.results import Results, Row
from tieline.bench.timed.link import LinkBound
from tieline.bench.timed.packets import MARK, Tally

THIN: Metrics = {
    "urgent_p50_ms": 200.0,
    "urgent_p99_ms": 300.0,
    "urgent_max_ms": 310.0,
    "bound_ms": 400.0,
    "over_bound": 0,
    "urgent_lost": 0,
    "low_max_ms": 900.0,
    "low_lost": 0,
    "drops_named": 12,
    "unaccounted": 0,
}


def made_up() -> Results:
    def row(workload: str, group: str, peer: str, **metrics: float) -> Row:
        return Row(workload=workload, title=workload, group=group, peer=peer, repetitions=[dict(metrics)])

    record = Results(
        form="priority-2",
        quick=True,
        started="2025-01-01T00:00:00+00:00",
        commit="abc",
        machine={"processor": "Abacus", "cores": 2, "memory_gb": 1.0, "kernel": "6"},
        versions={"tieline": "1", "mosquitto": "2"},
        absent={},
    )
    record.rows = [
        row("thin-broker", "thin", "tieline", **THIN),
        row("thin-broker", "thin", "mosquitto", urgent_p50_ms=9e3, urgent_p99_ms=14e3, urgent_max_ms=14e3),
        row("busy", "busy", "tieline", urgent_p50_ms=0.1, urgent_p99_ms=4.0, urgent_max_ms=5.0, flood_rate=1e6),
        row("busy", "busy", "mosquitto", urgent_p50_ms=3.0, urgent_p99_ms=9.0, urgent_max_ms=9.5, flood_rate=1e5),
        row("slow", "slow", "tieline", ahead_p50_bytes=5e3, ahead_max_bytes=6e3, ahead_bound_bytes=7e3),
        row("strangers", "strangers", slow.WITH_SLOW, rate=1e5, rate_ratio=0.8, p50_ratio=1.0),
        row("cost-1to1", "cost", cost.HAVING, rate=1e6, rate_ratio=0.95, cpu_ratio=1.04),
        Row(workload="cost-fanin", title="fan-in", group="cost", peer=cost.HAVING, status="failed", note="it died"),
        Row(workload="thin-tls", title="TLS", group="thin", peer="tieline", status="not run", note="a reason"),
    ]
    record.timelines = {"thin-broker tieline": [(0.0, 0.2), (1.0, 0.3)], "thin-broker mosquitto": [(0.0, 14.0)]}
    record.goals = [goal.judge(record) for goal in SUITE.goals]
    return record


def test_a_tally_counts_what_is_missing_as_the_length_of_the_run() -> None:
    tally = Tally()
    payloads = [tally.payload(64) for _ in range(4)]
    assert all(len(payload) == 64 for payload in payloads)
    for number in (0, 2):
        _, sent = MARK.unpack_from(payloads[number])
        tally.arrival(number, sent + 1_000_000)
    tally.arrival(2, 0)
    assert (tally.lost, tally.duplicates, tally.disordered) == (2, 1, 0)
    assert tally.waits_s() == pytest.approx([0.001, 0.001])
    assert tally.waits_s(9.0) == pytest.approx([0.001, 9.0, 0.001, 9.0])
    assert tally.quantile_s(0.99, 9.0) == pytest.approx(9.0)
    assert Tally().quantile_s(0.5) == 0.0


def test_a_tally_notices_a_message_that_was_overtaken_in_its_own_flow() -> None:
    tally = Tally()
    for _ in range(4):
        tally.payload(64)
    for number in (0, 2, 1, 3):
        tally.arrival(number, 1)
    assert (tally.lost, tally.disordered) == (0, 1)
    assert tally.before(tally.sent[2]).lost == 0


def test_the_bound_is_the_sum_of_its_parts_at_the_rate_of_the_link() -> None:
    bound = LinkBound(bytes_per_s=16_000, rtt_s=0.0, urgent=100, largest=1_000, smallest=1_000, quantum=1_000)
    assert bound.kernel == 4_096
    assert bound.seconds == pytest.approx((1_000 + 1_000 + 4_096 + 100 + 8 * 66) / 16_000)
    far = replace(bound, rtt_s=1.0)
    assert far.kernel == 20_000
    assert far.seconds > bound.seconds + 1.0


def test_goals_are_judged_from_the_rows() -> None:
    verdicts = {goal.text: goal.verdict for goal in made_up().goals}
    assert verdicts["thin link, at the broker: mosquitto's urgent p99, times ours"] == "met"
    assert verdicts["thin link, at the broker: urgent messages beyond the stated bound"] == "met"
    assert verdicts["thin link, at a router: mosquitto's urgent p99, times ours"] == "not measured"
    assert verdicts["busy broker: urgent p99, times mosquitto's"] == "not met"
    assert verdicts["slow reader: bytes taken before an urgent message"] == "met"
    assert verdicts["slow reader: throughput of others, with it : without"] == "not met"
    assert verdicts["cost, 1:1: throughput with classes : without"] == "met"
    assert verdicts["cost, fan-in 100:1: throughput with classes : without"] == "not met"


def test_the_report_shows_every_row_and_what_was_left_out() -> None:
    record = made_up()
    output = io.StringIO()
    report.show(SUITE, record, Console(file=output, width=200))
    page = report.markdown(SUITE, record)
    for text in (output.getvalue(), page):
        for expected in ("thin-broker", "14.0 s", "300 ms", "a reason", "it died", "not met", "not measured"):
            assert expected in text
    assert report.line(SUITE, record.rows[-2]).endswith("failed: it died")
    assert "urgent p50 0.100 ms" in report.line(SUITE, record.rows[2])


def test_the_record_is_written_with_its_goals(tmp_path: Path) -> None:
    made_up().write(tmp_path / "priority.json")
    data = json.loads((tmp_path / "priority.json").read_text())
    assert data["format"] == "tieline-bench-priority-2"
    assert data["rows"][0]["metrics"]["urgent_p99_ms"] == 300.0
    assert {goal["verdict"] for goal in data["goals"]} == {"met", "not met", "not measured"}


def test_the_picture_is_drawn_from_what_there_is(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="without matplotlib there is no picture to look at")
    record = made_up()
    assert SUITE.picture is not None
    assert SUITE.picture.draw(record, tmp_path / "priority.png")
    assert (tmp_path / "priority.png").read_bytes().startswith(b"\x89PNG")
    record.rows = []
    assert not SUITE.picture.draw(record, tmp_path / "none.png")


def test_every_part_has_steps_and_every_group_a_table() -> None:
    assert make_plan(quick=False).steps >= make_plan(quick=True).steps > 0
    assert all(make_plan([part], quick=False).steps > 0 for part in PARTS if part != "thin")
    assert {row.group for row in made_up().rows} <= TABLES.keys()
    assert FULL.thin_s > QUICK.thin_s > 2 * thin.QUEUE_BYTES / 16_000  # the queue overflows even in a quick run
