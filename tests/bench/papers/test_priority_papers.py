"""The two priority papers: experiments run on real brokers, and verdicts follow from their numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tieline.bench.papers.frame.declaration import Request
from tieline.bench.papers.frame.table import Table
from tieline.bench.papers.heat import PAPER as HEAT
from tieline.bench.papers.heat import feedback, wanted_topics
from tieline.bench.papers.priority_qos import PAPER as PRIORITY_QOS
from tieline.bench.papers.priority_qos import groups

FALLING, RISING = [400.0, 300.0, 200.0, 100.0], [100.0, 200.0, 300.0, 400.0]


def heat_tables(*, good: bool) -> dict[str, Table]:
    last = {
        "fifo": 100.0,
        "taxonomy": 60.0,
        "heat": 20.0 if good else 100.0,
        "printed": 50.0 if good else 99.0,
        "renewed": 20.0,
    }
    delays = [(name, count, 0, 10.0 if count == 16 else value) for name, value in last.items() for count in (16, 256)]
    losses = [("taxonomy", 0, 0.9, 0.5), ("heat", 0, 0.4 if good else 1.0, 0.5)]
    rows = []
    for count in feedback.FREQUENCIES:
        for place, period in enumerate(feedback.PERIODS_S):
            high = 90.0 - 10 * place if good else 10.0 + 10 * place
            ratio = (1.2 if period == feedback.PERIODS_S[0] else 7.0 / count) if good else 10.0 * 2**place
            late = place / 10 if good else 0.6 - place / 10
            rows.append((count, period, 0, high, ratio, late, 5.0))
    columns = ("frequency", "period_s", "burst", "high_ms", "low_ratio", "late_share", "unblocked_ms")
    return {
        "delays": Table("delays", dict.fromkeys(("policy", "messages", "seed", "delay_ms"), ""), delays),
        "losses": Table("losses", dict.fromkeys(("policy", "seed", "lost_low", "lost_all"), ""), losses),
        "feedback": Table("feedback", dict.fromkeys(columns, ""), rows),
    }


def group_tables(*, good: bool) -> dict[str, Table]:
    ordered = FALLING if good else RISING
    cases = {
        "QoS 0": [value / 10 for value in ordered],
        "QoS 1": ordered,
        "QoS 2": [value + 300 for value in ordered],
        "QoS 0, header byte": ordered,
        "equal levels": [300.0, 400.0, 200.0, 100.0] if good else RISING,
        "without levels": [100.0] * 4,
        "mosquitto": RISING if good else [1.0, 9.0, 2.0, 3.0],
    }
    rows = [
        (case, traffic, group, run, value)
        for case, values in cases.items()
        for traffic in groups.TRAFFIC
        for group, value in enumerate(values, start=1)
        for run in range(2)
    ]
    return {"groups": Table("groups", dict.fromkeys(("case", "traffic", "group", "run", "delay_us"), ""), rows)}


@pytest.mark.parametrize("good", [True, False])
def test_verdicts_of_the_heat_paper(good: bool) -> None:
    tables = heat_tables(good=good)
    found = {claim.judgement.verdict for _, figure in HEAT.figures() for claim in figure.claims(tables)}
    assert found == ({"reproduced"} if good else {"not reproduced"})


def test_verdicts_of_the_second_paper() -> None:
    for good in (True, False):
        tables = group_tables(good=good)
        claims = [claim for _, figure in PRIORITY_QOS.figures() for claim in figure.claims(tables)]
        wrong = [claim.paper_says for claim in claims if (claim.judgement.verdict == "reproduced") is not good]
        # among equals the order of connection holds in both, and so does that of the qualities of service
        assert all(
            not good
            and ("equal levels) are" in text or "QoS 0 is faster" in text or "0.1 ms" in text or "0.5 ms" in text)
            for text in wrong
        )


def test_a_broker_that_is_not_there_is_not_measured() -> None:
    table = group_tables(good=True)["groups"].where(case=lambda cell: cell != "mosquitto")
    figure = next(figure for _, figure in PRIORITY_QOS.figures() if figure.name == "fig-9")
    verdicts = [claim.judgement.verdict for claim in figure.claims({"groups": table})]
    assert verdicts.count("not measured") == 4


@pytest.mark.parametrize("is_saturated", [False, True])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_four_groups_exchange_everything_at_every_qos(qos: int, is_saturated: bool, need: Callable[[str], str]) -> None:
    need("mosquitto")
    case = groups.Experiment(name="small", peer="mosquitto", qos=qos, means="none")
    means = groups.run(case, is_saturated=is_saturated, seconds=0.2)
    assert len(means) == 4
    assert all(mean > 0 for mean in means)


def test_every_order_gets_every_burst_through_the_port(
    need: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    need("mosquitto")
    monkeypatch.setattr(wanted_topics, "COUNTS", (16,))
    delays, losses = wanted_topics.measure(Request())
    assert delays.words("policy") == ["mosquitto", "fifo", "taxonomy", "heat", "printed", "renewed"]
    assert len(delays.rows) == 12
    assert all(0 <= share <= 1 for name in ("lost_low", "lost_all") for share in losses.column(name))


def test_every_pair_of_period_and_frequency_is_a_subscriber(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feedback, "PERIODS_S", (0.05, 0.1))
    monkeypatch.setattr(feedback, "FREQUENCIES", (1, 4))
    monkeypatch.setattr(feedback, "HIGH_S", 0.2)
    monkeypatch.setattr(feedback, "_ALONE_S", 0.2)
    (table,) = feedback.measure(Request())
    assert table.numbers("frequency") == [1, 4]
    assert len(table.rows) == 8
