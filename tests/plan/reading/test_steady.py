"""Rates that are looked at again and again: noise is damped, news is believed, silence is forgotten in the end."""

from __future__ import annotations

from tieline.core.figures.demand import DemandRow, Subscribed
from tieline.plan.reading.running import Survey
from tieline.plan.reading.steady import SILENT_LOOKS, Steadied


def _survey(*rates: tuple[str, int], broker: str = "hill", seconds: float = 2.0) -> Survey:
    flows = [DemandRow("p", topic, 1, int(rate * seconds), int(100 * rate * seconds)) for topic, rate in rates]
    return Survey(broker=broker, seconds=seconds, flows=flows, subscriptions=[Subscribed("s", "#", "", False)])


def _rates(surveys: list[Survey]) -> dict[str, float]:
    return {row.topic: row.bytes / survey.seconds for survey in surveys for row in survey.flows}


def test_news_is_believed_and_changes_by_half() -> None:
    steadied = Steadied()
    assert _rates(steadied.after([_survey(("a", 10))])) == {"a": 1_000.0}
    assert _rates(steadied.after([_survey(("a", 20), ("b", 5))])) == {"a": 1_500.0, "b": 500.0}
    assert _rates(steadied.after([_survey(("a", 20), ("b", 5), seconds=4.0)])) == {"a": 1_750.0, "b": 500.0}


def test_silence_fades_and_is_forgotten() -> None:
    steadied = Steadied()
    steadied.after([_survey(("a", 8), ("b", 8))])
    for look in range(1, SILENT_LOOKS):
        found = _rates(steadied.after([_survey(("b", 8))]))
        assert found == {"a": 800.0 / 2**look, "b": 800.0}
    assert _rates(steadied.after([_survey(("b", 8))])) == {"b": 800.0}


def test_one_message_is_as_good_as_another_after_it_was_silent() -> None:
    steadied = Steadied()
    for _ in range(3 * SILENT_LOOKS):
        steadied.after([_survey(("a", 8))])
        assert "a" in _rates(steadied.after([_survey()]))


def test_a_broker_that_is_not_looked_at_is_forgotten_and_subscriptions_are_those_of_now() -> None:
    steadied = Steadied()
    steadied.after([_survey(("a", 8)), _survey(("a", 8), broker="dam")])
    (found,) = steadied.after([_survey(("a", 8))])
    assert (found.broker, found.subscriptions) == ("hill", [Subscribed("s", "#", "", False)])
    again = steadied.after([_survey(("a", 8)), _survey(("c", 1), broker="dam")])
    assert _rates(again[1:]) == {"c": 100.0}
