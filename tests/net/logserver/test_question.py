"""Requests that make no sense are refused with the rule they break."""

from __future__ import annotations

import pytest

from tieline.net.logserver import question
from tieline.net.logserver.question import MOST_OFFSET, MOST_TOPICS, Unanswerable


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", "1e3", "x", "٣", str(MOST_OFFSET + 1), "9" * 40])
def test_what_is_no_offset(text: str) -> None:
    with pytest.raises(Unanswerable, match="whole number") as refused:
        question.offset("from", text)
    assert refused.value.rule == "from"


def test_offsets() -> None:
    assert [question.offset("from", text) for text in ("0", "17", str(MOST_OFFSET))] == [0, 17, MOST_OFFSET]


def test_streams() -> None:
    assert question.stream("log") == "log" and question.stream("events") == "events"
    with pytest.raises(Unanswerable, match="log and events"):
        question.stream("journal")


@pytest.mark.parametrize("text", ["", "a/#/b", "a+", "a/b#", "$share/g/a", "$where/x%3E1/a"])
def test_what_is_no_topic_filter(text: str) -> None:
    with pytest.raises(Unanswerable) as refused:
        question.topics(["fine", text])
    assert refused.value.rule == "topics"


def test_topic_filters_are_bounded_and_kept_once() -> None:
    assert question.topics(["a/#", "b", "a/#"]) == ("a/#", "b")
    with pytest.raises(Unanswerable, match="at most"):
        question.topics(["a"] * (MOST_TOPICS + 1))


def test_an_expression_that_cannot_be_read_names_its_column() -> None:
    with pytest.raises(Unanswerable) as refused:
        question.where("voltage > ")
    assert (refused.value.rule, refused.value.column) == ("where", 11)


@pytest.mark.parametrize(
    ("text", "column"), [("changed(a)", 1), ("a > 1 and delta(b) > 2", 11), ("not CHANGED (a)", 5)]
)
def test_a_condition_on_what_was_delivered_before_has_no_meaning_in_a_range(text: str, column: int) -> None:
    with pytest.raises(Unanswerable, match="sent before") as refused:
        question.where(text)
    assert refused.value.column == column
