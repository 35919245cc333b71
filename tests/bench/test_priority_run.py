"""The parts of the priority benchmark work with real brokers, small; what cannot run is left out with a reason."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.bench.watching import Quiet
from tieline.bench.brokers import Mosquitto, Tieline
from tieline.bench.load.job import Failure, TurnedDown
from tieline.bench.load.packets import publish
from tieline.bench.peer import Instance
from tieline.bench.priority import busy, cases, slow
from tieline.bench.priority.cases import make_plan
from tieline.bench.priority.suite import SUITE
from tieline.bench.suite import runner
from tieline.bench.timed import link
from tieline.bench.timed.nodes import Reader, SlowReader, Timetable, Writer, clock, hang_up, open_node, subscribe
from tieline.bench.timed.packets import Arrival, Tally
from tieline.cli.bench import app
from tieline.cli.trouble import Trouble

TINY = replace(
    cases.QUICK,
    thin_s=1.0,
    slow_s=1.0,
    busy_s=0.3,
    busy_repetitions=1,
    stranger_s=0.05,
    stranger_repetitions=1,
    cost_s=0.05,
    cost_repetitions=1,
)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "QUICK", TINY)
    monkeypatch.setattr(slow, "_TAIL_S", 0.2)
    monkeypatch.setattr(slow, "_CONGESTED_S", 0.1)
    monkeypatch.setattr(busy, "PUBLISHERS", 3)
    monkeypatch.setattr(busy, "_LEAD_S", 0.1)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("part", ["busy", "slow", "cost"])
def test_a_part_gets_its_numbers_from_real_brokers(part: str, need: Callable[[str], str]) -> None:
    need("mosquitto")
    quiet = Quiet()
    record = runner.run(SUITE, make_plan([part], quick=True), quiet)
    assert [row.note for row in record.rows] == [""] * len(record.rows)
    assert record.rows == quiet.rows
    assert len(quiet.begun) == quiet.steps
    assert all(value >= 0 for row in record.rows for name, value in row.metrics.items())
    judged = [goal for goal in record.goals if goal.measured is not None]
    assert judged and all(goal.text.startswith(part) for goal in judged)


def test_a_quick_run_measures_every_goal(need: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    need("mosquitto")
    need("openssl")
    monkeypatch.setattr(link, "obstacle", lambda: None)
    reasons = make_plan(quick=True).reasons()
    assert [goal.text for goal in SUITE.goals if goal.objection(reasons, {})] == []


@pytest.mark.usefixtures("tiny")
def test_the_thin_link_runs_as_root(need: Callable[[str], str]) -> None:
    need("mosquitto")
    need("ip")
    need("openssl")
    why = link.obstacle()
    if why:
        pytest.skip(f"no thin link here: {why}")
    record = runner.run(SUITE, make_plan(["thin"], quick=True), Quiet())
    assert [(row.status, row.note) for row in record.rows] == [("measured", "")] * 6
    assert len(record.timelines) == 6
    assert all(row.metrics["urgent_sent"] > 0 for row in record.rows)


@pytest.mark.usefixtures("tiny")
def test_without_namespaces_the_thin_link_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "obstacle", lambda: "not here")
    record = runner.run(SUITE, make_plan(["thin"], quick=True), Quiet())
    assert {(row.status, row.note) for row in record.rows} == {("not run", "not here")}
    assert {goal.why for goal in record.goals if goal.text.startswith("thin")} == {"not here"}


def test_a_broker_that_fails_becomes_rows_that_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(peer: str, *, seconds: float) -> dict[str, float]:
        raise TurnedDown(f"{peer} would not")

    monkeypatch.setattr(busy, "measure", fail)
    record = runner.run(SUITE, make_plan(["busy"], quick=True), Quiet())
    assert {(row.status, row.note) for row in record.rows} == {
        ("failed", f"{row.peer} would not") for row in record.rows
    }


def test_a_slow_reader_takes_what_a_reader_takes(need: Callable[[str], str]) -> None:
    need("mosquitto")
    tallies = {"slow": Tally(), "prompt": Tally()}

    def taking(name: str) -> Callable[[Arrival, int], None]:
        return lambda arrival, when: tallies[name].arrival(arrival.mark[0], when)

    instance = Instance(Mosquitto(), None)
    sockets = []
    try:
        at = instance.start()
        with Timetable() as timetable:
            sockets.append(open_node(at.host, at.port, "slow", receive_buffer=4_096))
            sockets.extend(open_node(at.host, at.port, name) for name in ("prompt", "sender"))
            for sock in sockets[:2]:
                subscribe(sock, ["t"])
            slow_reader = SlowReader(sockets[0], timetable, taking("slow"), bytes_per_s=1e6)
            Reader(sockets[1], timetable, taking("prompt"))
            sender = Writer(sockets[2], timetable)
            for _ in range(50):
                payload = tallies["slow"].payload(100)
                tallies["prompt"].sent.append(tallies["slow"].sent[-1])
                sender.write(publish("t", payload, version=5))
            timetable.run(clock() + 20, lambda: not any(tally.lost for tally in tallies.values()))
        assert [tally.lost for tally in tallies.values()] == [0, 0]
        assert slow_reader.taken == 50 * len(publish("t", bytes(100), version=5))
        assert min(tallies["prompt"].waits_s()) > 0  # by the kernel's clock, which is the sender's too
    finally:
        hang_up(sockets)
        instance.stop()


def test_tieline_tells_about_itself_and_refusals_are_sentences() -> None:
    peer = Tieline('[[class]]\nname = "c"\nfilter = "t"\nlevel = 3\n')
    with pytest.raises(Failure, match="not been started"):
        peer.top()
    instance = Instance(peer, None)
    try:
        at = instance.start()
        assert peer.top()["drops"] == {}
        sock = open_node(at.host, at.port, "one", {"priority": "3"})
        with sock, pytest.raises(TurnedDown):
            subscribe(sock, ["a/#/b"])
    finally:
        instance.stop()
    with pytest.raises(TurnedDown):
        open_node(at.host, at.port, "two")


def test_watching_a_slow_reader_ends_when_it_is_over() -> None:
    over = threading.Event()
    over.set()
    found = slow.watch(["tieline"], seconds=1e6, over=over)
    assert found["tieline"]["urgent_sent"] == 0


@pytest.mark.usefixtures("tiny")
def test_the_command_writes_its_results(need: Callable[[str], str], tmp_path: Path) -> None:
    need("mosquitto")
    result = CliRunner().invoke(app, ["priority", "--quick", "--part", "busy", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    rows = json.loads((tmp_path / "priority.json").read_text())["rows"]
    assert [row["peer"] for row in rows] == ["tieline", "mosquitto"]
    assert "Busy broker" in (tmp_path / "priority.md").read_text()


def test_an_unknown_part_is_refused_with_a_sentence() -> None:
    result = CliRunner().invoke(app, ["priority", "--part", "thick"])
    assert isinstance(result.exception, Trouble)
