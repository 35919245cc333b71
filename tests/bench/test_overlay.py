"""The benchmark of joined brokers: real brokers give it numbers, relays count, and quick runs measure every goal."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.watching import Quiet
from tieline.bench.brokers import BASELINE, SUBJECT
from tieline.bench.overlay import cases
from tieline.bench.overlay.cases import PARTS, make_plan
from tieline.bench.overlay.network import JoinedTieline, Network, cycle, line, mesh
from tieline.bench.overlay.parts import FULL, QUICK
from tieline.bench.overlay.relay import Relay
from tieline.bench.overlay.suite import METRICS, SUITE, TABLES
from tieline.bench.suite import report, runner
from tieline.bench.suite.results import Results, Row


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    effort = replace(QUICK, messages=100, grown=3, brokers=(2,), subscriptions=(5,), seconds=0.05, round_trips=20)
    monkeypatch.setattr(cases, "QUICK", effort)


@pytest.mark.parametrize("quick", [True, False])
def test_every_goal_is_measured(need: Callable[[str], str], tmp_path: Path, *, quick: bool) -> None:
    need("mosquitto")
    plan = make_plan(PARTS, quick=quick, disk=tmp_path)
    assert sum(case.seconds for case in plan.cases) < (QUICK if quick else FULL).budget_s
    reasons = dict.fromkeys(plan.reasons(), "")  # a disk that keeps nothing is no matter of the declaration
    assert [goal.text for goal in SUITE.goals if goal.objection(reasons, {})] == []


def test_every_column_has_a_meaning() -> None:
    assert all(name in METRICS for table in TABLES.values() for name in table.columns)
    assert {group.partition("-")[0] for group in TABLES} == set(PARTS)


def test_brokers_are_joined_to_earlier_ones_only() -> None:
    assert line(3) == [(1, 0), (2, 1)]
    assert cycle(4) == [(1, 0), (2, 1), (3, 2), (3, 0)]
    for count in (5, 10, 20):
        edges = mesh(count)
        assert all(0 <= other < one < count for one, other in edges)
        assert len(set(edges)) == len(edges)
        assert {one for one, _ in edges} == set(range(1, count)), "everybody can be reached"


def test_a_relay_counts_what_passes_in_both_directions() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as target,
        Relay(target.getsockname()[1]) as relay,
        socket.create_connection(("127.0.0.1", relay.port), 5.0) as near,
        target.accept()[0] as far,
    ):
        near.sendall(b"question")
        assert far.recv(64) == b"question"
        far.sendall(b"yes")
        assert near.recv(64) == b"yes"
    assert (relay.forth, relay.back, relay.bytes) == (8, 3, 11)


@pytest.mark.usefixtures("tiny")
def test_bytes_and_growth_come_from_real_brokers(need: Callable[[str], str], tmp_path: Path) -> None:
    need("mosquitto")
    need("nats-server")
    quiet = Quiet()
    found = runner.run(SUITE, make_plan(["wire", "growth"], quick=True, disk=tmp_path), quiet)
    assert [row.note for row in found.rows] == [""] * len(found.rows)
    assert len(quiet.begun) == quiet.steps
    for peer in (SUBJECT, BASELINE, "nats"):
        metrics = next(row.metrics for row in found.rows if (row.workload, row.peer) == ("wire", peer))
        assert metrics["bytes_alone"] > metrics["packet_bytes"] - 64, "the payload is among what passes"
        assert metrics["bytes_together"] >= 64
    assert "| 2 brokers | tieline |" in report.markdown(SUITE, found)


@pytest.mark.usefixtures("tiny")
def test_memory_is_weighed_when_all_know_what_all_want(tmp_path: Path) -> None:
    found = runner.run(SUITE, make_plan(["memory"], quick=True, disk=tmp_path), Quiet())
    assert [row.note for row in found.rows] == [""]
    assert found.rows[0].metrics["broker_bytes"] > 10e6


@pytest.mark.usefixtures("tiny")
def test_a_broker_that_falls_silent_is_gone_around(tmp_path: Path) -> None:
    plan = make_plan(["death"], quick=True, disk=tmp_path)
    (case,) = [case for case in plan.cases if case.rows[0].workload == "death-silent"]
    found = runner.run(SUITE, replace(plan, cases=[case]), Quiet())
    assert found.rows[0].note == ""
    # nobody has told its neighbours, so they had to find out
    assert found.rows[0].metrics["recovery_s"] > 0.5


def test_a_message_crosses_a_network_whose_costs_are_those_of_all_brokers() -> None:
    with Network(JoinedTieline(), 2, line(2)) as network:
        between = network.between(0, 1)
        assert between.port == network.endpoints[1].port
        assert between.entrance.port == network.endpoints[0].port
        assert set(between.pids) == set(network.pids)
        assert network.wait() >= 0.0


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="without matplotlib there is no picture")
    assert SUITE.picture is not None
    rates = {("hop-qos0", SUBJECT): 5.7e6, ("hop-qos0", BASELINE): 1.4e5, ("hop-qos1", SUBJECT): 1.8e5}
    found = Results(
        form="overlay-2", quick=True, started="", commit="", machine={"processor": "Abacus", "cores": 2},
        versions={"tieline": "1"}, absent={},
        rows=[
            *(Row(workload=name, title=name, group="hop", peer=peer, repetitions=[{"rate": rate}])
              for (name, peer), rate in rates.items()),
            Row(workload="growth-2", title="2 brokers", group="growth", peer=SUBJECT,
                repetitions=[{"suback_p50_ms": 21.0, "suback_max_ms": 22.0}]),
        ],
    )  # fmt: skip
    assert SUITE.picture.draw(found, tmp_path / "overlay.png")
    assert (tmp_path / "overlay.png").read_bytes().startswith(b"\x89PNG")
    assert not SUITE.picture.draw(replace(found, rows=[]), tmp_path / "nothing.png")
