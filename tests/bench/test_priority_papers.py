"""The reproduction of the papers: verdicts follow from numbers, experiments run on real brokers, figures are drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.bench.watching import Quiet
from tieline.bench.papers import feedback, figures, groups, reproduction, wanted_topics
from tieline.bench.papers import priority as papers_run
from tieline.bench.papers.feedback import Figures345
from tieline.bench.papers.priority import PriorityReproduction, hold
from tieline.bench.papers.wanted_topics import Figure2
from tieline.cli.reproduce import app


def made_up(*, is_as_in_the_papers: bool) -> PriorityReproduction:
    good = is_as_in_the_papers
    falling, rising = [400.0, 300.0, 200.0, 100.0], [100.0, 200.0, 300.0, 400.0]
    ordered = falling if good else rising
    both = {
        "QoS 0": [60.0, 55.0, 50.0, 45.0] if good else rising,
        "QoS 1": ordered,
        "QoS 2": [value + 300 for value in ordered],
        "equal levels": [300.0, 400.0, 200.0, 100.0] if good else rising,
        "mosquitto": rising if good else [1.0, 9.0, 2.0, 3.0],
    }
    periods = (0.1, 0.2, 0.4)
    return PriorityReproduction(
        form="tieline-reproduce-priority-1",
        quick=True,
        started="2025-01-01T00:00:00+00:00",
        commit="abc",
        machine={"processor": "Abacus", "cores": 2, "memory_gb": 1.0, "kernel": "6"},
        versions={"tieline": "1", "mosquitto": "2"},
        heat=Figure2(
            counts=(16, 32),
            delays_ms={
                "fifo": [10.0, 100.0],
                "taxonomy": [10.0, 60.0],
                "heat": [10.0, 20.0] if good else [10.0, 100.0],
            },
            lost_low={"taxonomy": 0.9, "heat": 0.4 if good else 1.0},
            lost_all={"taxonomy": 0.5, "heat": 0.5},
        ),
        feedback=Figures345(
            periods_s=periods,
            unblocked_ms=5.0,
            high_ms=dict.fromkeys(feedback.FREQUENCIES, [90.0, 80.0, 70.0] if good else [70.0, 80.0, 90.0]),
            ratio={
                count: [6.0 / count, 7.0 / count, 7.5 / count] if good else [10.0, 10.0, 20.0]
                for count in feedback.FREQUENCIES
            },
            late_share=dict.fromkeys(feedback.FREQUENCIES, [0.0, 0.1, 0.5] if good else [0.5, 0.1, 0.0]),
        ),
        groups=both,
        groups_saturated=both,
        failures={"QoS 0, header byte": "the broker died"},
    )


def test_numbers_like_the_papers_reproduce_every_claim() -> None:
    claims = hold(made_up(is_as_in_the_papers=True))
    assert {claim.verdict for claim in claims} == {"reproduced"}


def test_numbers_unlike_the_papers_reproduce_none() -> None:
    claims = hold(made_up(is_as_in_the_papers=False))
    assert {claim.verdict for claim in claims if "QoS 0 below QoS 1" not in claim.paper_says} == {"not reproduced"}


def test_what_was_not_measured_is_called_so() -> None:
    found = made_up(is_as_in_the_papers=True)
    found.heat = found.feedback = None
    found.groups = found.groups_saturated = {}
    assert {claim.verdict for claim in hold(found)} == {"not measured"}


def test_the_page_has_claims_failures_and_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="without matplotlib there are no figures to look at")
    found = made_up(is_as_in_the_papers=True)
    found.claims = hold(found)
    pictures = figures.draw_priority(found, tmp_path)
    assert pictures == sorted(pictures, key=pictures.index)
    assert {"heat-fig2.png", "heat-fig3.png", "heat-fig4-5.png", "groups-fig9.png"} <= set(pictures)
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in pictures)
    page = reproduction.markdown(found, pictures)
    assert "Fig. 8, saturated" in page and "the broker died" in page and "![heat-fig2](heat-fig2.png)" in page


@pytest.mark.parametrize("is_saturated", [False, True])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_four_groups_exchange_everything_at_every_qos(qos: int, is_saturated: bool, need: Callable[[str], str]) -> None:
    need("mosquitto")
    case = groups.Experiment(name="small", peer="mosquitto", qos=qos, means="none")
    means = groups.run(case, is_saturated=is_saturated, seconds=0.2)
    assert len(means) == 4
    assert all(mean > 0 for mean in means)


def test_every_policy_gets_every_burst_through_the_port(
    need: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    need("mosquitto")
    monkeypatch.setattr(wanted_topics, "COUNTS", (16,))
    found = wanted_topics.run(repetitions=1, has_mosquitto=True)
    assert {name: len(values) for name, values in found.delays_ms.items()} == {
        "mosquitto": 1,
        "fifo": 1,
        "taxonomy": 1,
        "heat": 1,
    }
    assert all(0 <= share <= 1 for share in (*found.lost_low.values(), *found.lost_all.values()))


def test_every_pair_of_period_and_frequency_is_a_subscriber(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feedback, "PERIODS_S", (0.05, 0.1))
    monkeypatch.setattr(feedback, "FREQUENCIES", (1, 4))
    monkeypatch.setattr(feedback, "HIGH_S", 0.2)
    monkeypatch.setattr(feedback, "_ALONE_S", 0.2)
    found = feedback.run(repetitions=1)
    assert found.ratio.keys() == {1, 4}
    assert all(len(values) == 2 for values in found.high_ms.values())


def test_the_command_writes_figures_and_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tieline.cli.reproduce.run", lambda **_: made_up(is_as_in_the_papers=True))
    result = CliRunner().invoke(app, ["priority", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "paper says" in (tmp_path / "priority.md").read_text()


def test_an_experiment_that_fails_does_not_end_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no such luck")

    for module in (wanted_topics, feedback, groups):
        monkeypatch.setattr(module, "run", fail)
    quiet = Quiet()
    found = papers_run.run(quick=True, watcher=quiet)
    assert len(found.failures) == len(quiet.begun)
    assert {claim.verdict for claim in found.claims} == {"not measured"}
