"""The part of the benchmark that compares strategies on running brokers: what is asked for, counted and judged."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.watching import Quiet
from tieline.bench.brokers import SUBJECT
from tieline.bench.load.clients import clients
from tieline.bench.overlay import cases, strategies, strategies_shown
from tieline.bench.overlay.cases import make_plan
from tieline.bench.overlay.network import JoinedTieline, Network
from tieline.bench.overlay.parts import QUICK
from tieline.bench.overlay.strategies_work import EVENT_TYPES, PAYLOAD, WORKS, ours, paper
from tieline.bench.overlay.suite import SUITE
from tieline.bench.process import until
from tieline.bench.suite import runner
from tieline.bench.suite.results import Results, Row


def test_ours_wants_four_and_a_half_per_cent_by_topics_and_by_conditions() -> None:
    work = ours(20)
    events = work.events(2_000)
    by_topic = by_content = either = 0
    for event in events:
        for asked in work.asked:
            is_named, is_in = event.topic in asked.topics, any(box.contains(event.point) for box in asked.boxes)
            by_topic += is_named
            by_content += is_in
            either += asked.wants(event)
            assert asked.wants(event) == (is_named or is_in)
    pairs = len(events) * len(work.asked)
    assert by_topic / pairs == pytest.approx(0.02, abs=0.002)
    assert by_content / pairs == pytest.approx(0.0255, abs=0.005)
    assert either / pairs == pytest.approx(0.045, abs=0.006)


def test_the_papers_has_fifty_boxes_each_and_nearly_everybody_wants_everything() -> None:
    work = paper(10)
    assert {len(asked.filters) for asked in work.asked} == {50}
    assert "order = 3" in EVENT_TYPES
    found = [len(work.receivers(event)) for event in work.events(200)]
    assert sum(found) / len(found) > 8


@pytest.mark.parametrize("name", WORKS)
def test_publications_are_the_same_each_time_and_have_one_size(name: str) -> None:
    work = WORKS[name](5)
    assert work == WORKS[name](5)
    assert work.events(30) == work.events(30)
    for event in work.events(30):
        body = event.packet[2 + 2 + len(event.topic) :]
        assert len(body) == PAYLOAD
        said = json.loads(body)
        assert (said["number"], said["x"], said["y"]) == (event.number, *event.point)


def test_the_graph_is_the_same_for_all_and_holds_together() -> None:
    for count in (10, 20):
        edges = strategies.edges(count)
        assert edges == strategies.edges(count)
        assert all(0 <= other < one < count for one, other in edges)
        both = [*edges, *((other, one) for one, other in edges)]
        assert strategies.hops(both, 0).keys() == set(range(count))


def test_hops_are_the_fewest_links_over_which_copies_passed() -> None:
    crossed = [(0, 1), (1, 2), (2, 3), (0, 3), (3, 0), (5, 4)]
    assert strategies.hops(crossed, 0) == {0: 0, 1: 1, 2: 2, 3: 1}
    assert strategies.hops([], 2) == {2: 0}


def test_running_brokers_are_counted_frame_by_frame(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    effort = strategies.StrategiesEffort(brokers=(3,), events={"paper": 4, "ours": 2})
    monkeypatch.setattr(cases, "QUICK", replace(QUICK, strategies=effort))
    monkeypatch.setattr(strategies, "STRATEGIES", ("path", "flood"))
    quiet = Quiet()
    found = runner.run(SUITE, make_plan(["strategies"], quick=True, disk=tmp_path), quiet)
    assert [row.note for row in found.rows] == [""] * 4
    assert len(quiet.begun) == quiet.steps == 4
    path, flood = (found.row("strategies-paper-3", each) for each in ("path", "flood"))
    assert path is not None
    assert flood is not None
    assert path.metrics["receivers"] == flood.metrics["receivers"] > 1
    # of three brokers that are all neighbours, each is one link away; a flood goes on to the third one from both
    assert path.metrics["per_receiver"] == path.metrics["hops"] == 1
    assert flood.metrics["messages"] > path.metrics["messages"]
    assert flood.metrics["frame_bytes"] > path.metrics["frame_bytes"] > 2 * PAYLOAD
    assert path.metrics["known_entries"] == flood.metrics["known_entries"] == 100
    ways = [row for row in found.rows if row.metrics]
    assert all(row.metrics["lost"] == row.metrics["doubled"] == row.metrics["useless"] == 0 for row in ways)


def test_brokers_on_a_ring_are_counted_copy_by_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    effort = strategies.StrategiesEffort(brokers=(3,), events={"paper": 3, "ours": 2})
    monkeypatch.setattr(cases, "QUICK", replace(QUICK, strategies=effort))
    monkeypatch.setattr(strategies, "STRATEGIES", strategies.RINGS)
    monkeypatch.setattr(strategies, "PERIOD_S", 0.3)
    found = runner.run(SUITE, make_plan(["strategies"], quick=True, disk=tmp_path), Quiet())
    assert [row.note for row in found.rows] == [""] * 4
    arcs, partitioned = (found.row("strategies-paper-3", each) for each in strategies.RINGS)
    assert arcs is not None
    assert partitioned is not None
    assert arcs.metrics["receivers"] == partitioned.metrics["receivers"] > 1
    # whoever is asked for everybody visits everybody once
    assert partitioned.metrics["messages"] == 2
    assert arcs.metrics["messages"] <= 2
    assert arcs.metrics["frame_bytes"] > arcs.metrics["messages"] * PAYLOAD
    assert arcs.metrics["hops"] >= 1
    assert all(row.metrics["lost"] == row.metrics["doubled"] == 0 for row in found.rows if row.metrics)


def test_what_is_lost_and_what_comes_twice_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "PATIENCE_S", 2.0)
    asked = paper(2)
    event = next(event for event in asked.events(50) if asked.receivers(event) == [0, 1])
    with Network(JoinedTieline(EVENT_TYPES), 2, [(1, 0)]) as network, ExitStack() as stack:
        there = strategies.Clients(network, asked, stack)
        with clients(network.endpoints[event.source], ["again"]) as (again,):
            again.setblocking(True)
            again.sendall(event.packet)
            there.publish(event)

            def took_both() -> bool:
                there.take_late(event)
                return there.doubled == 2

            until("the second copies have come", 10.0, took_both)
        assert there.lost == 0
    deaf = replace(asked, asked=[asked.asked[0], replace(asked.asked[1], topics=frozenset({"nothing"}), boxes=())])
    with Network(JoinedTieline(EVENT_TYPES), 2, [(1, 0)]) as network, ExitStack() as stack:
        there = strategies.Clients(network, deaf, stack)
        monkeypatch.setattr(there, "_work", asked)
        there.publish(event)
        assert (there.lost, there.doubled) == (1, 0)


def _results(rows: list[Row]) -> Results:
    return Results(
        form="overlay-2", quick=True, started="", commit="", machine={"processor": "Abacus", "cores": 2},
        versions={SUBJECT: "1"}, absent={}, rows=rows,
    )  # fmt: skip


def _row(brokers: int, peer: str, lost: float) -> Row:
    name = f"strategies-paper-{brokers}"
    numbers = {"lost": lost, "doubled": 0.0, "messages": 9.0}
    return Row(workload=name, title=f"{brokers} brokers", group="strategies-paper", peer=peer, repetitions=[numbers])


def test_goals_are_about_the_most_brokers_of_which_every_strategy_was_measured() -> None:
    goal = next(goal for goal in strategies_shown.goals() if "paper" in goal.text and goal.text.endswith("lost"))
    few = [_row(10, each, 0.0) for each in strategies.STRATEGIES]
    many = [_row(20, each, 1.0) for each in strategies.STRATEGIES]
    assert goal.judge(_results(few)).measured == 0.0
    assert "10 brokers" in goal.judge(_results(few)).text
    verdict = goal.judge(_results([*few, *many]))
    assert verdict.measured == len(many)
    assert "20 brokers" in verdict.text
    assert goal.judge(_results([*few, *many[1:]])).measured == 0.0
    assert goal.judge(_results([])).measured is None


def test_strategies_are_drawn_side_by_side(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="without matplotlib there is no picture")
    assert SUITE.picture is not None
    rows = [_row(brokers, each, 0.0) for brokers in (10, 20) for each in strategies.STRATEGIES]
    assert SUITE.picture.draw(_results(rows), tmp_path / "strategies.png")
    assert (tmp_path / "strategies.png").read_bytes().startswith(b"\x89PNG")
