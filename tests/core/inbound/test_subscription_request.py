from __future__ import annotations

import pytest

from tieline.core.inbound.subscription_request import read_request
from tieline.wire.packets import Subscription
from tieline.wire.reason import Reason


@pytest.mark.parametrize(
    ("filter_", "conditions", "share", "bare", "condition"),
    [
        ("a/b", [], None, "a/b", None),
        ("a/?", [], None, "a/?", None),
        ("a?b", [], None, "a?b", None),
        ("$share/g/a", [], "g", "a", None),
        ("$d/a", [], None, "$d/a", None),
        ("a/+?v<5", [], None, "a/+", "v<5"),
        ("$share/g/#?v<5", [], "g", "#", "v<5"),
        ("$where/v<5/a/#", [], None, "a/#", "v<5"),
        ("$share/g/$where/v%2F<5/a/?", ["w=1"], "g", "a/?", None),
        ("a", ["v<5"], None, "a", "v<5"),
        ("$share/g/a", ["v<5"], "g", "a", "v<5"),
        ("a?v<5", ["w>1 or x>1", "y>1"], None, "a", "(v<5) and (w>1 or x>1) and (y>1)"),
        ("a?v>5&w=on", [], None, "a", "v>5&w=on"),
    ],
)
def test_a_wish_is_taken_apart(
    filter_: str, conditions: list[str], share: str | None, bare: str, condition: str | None
) -> None:
    wish = read_request(Subscription(filter=filter_), conditions, question_mark=True)
    if "%2F" in filter_:
        assert wish.refusal is not None, "v/ is no name of an attribute"
        return
    assert wish.refusal is None
    assert (wish.share, wish.filter) == (share, bare)
    assert (None if wish.predicate is None else wish.predicate.text) == condition
    assert wish.options.filter == filter_


def test_without_the_question_mark_it_is_an_ordinary_character() -> None:
    wish = read_request(Subscription(filter="a?v<5"), [], question_mark=False)
    assert (wish.filter, wish.predicate) == ("a?v<5", None)
    wish = read_request(Subscription(filter="a?v<5"), ["w>1"], question_mark=False)
    assert wish.filter == "a?v<5"
    assert wish.predicate is not None
    assert wish.predicate.names == ("w",)


@pytest.mark.parametrize(
    ("filter_", "conditions", "column"),
    [
        ("a?v<", [], 3),
        ("a?v<5", ["w >"], 4),
        ("a?v<5", ["w > 1", "(x"], 3),
        ("$where/v</a", [], 3),
        ("$where/v<5", [], 4),
        ("$where//a", [], 1),
        ("$where/v%/a", [], 3),
        ("a", [""], 1),
    ],
)
def test_an_error_points_into_what_the_client_wrote(filter_: str, conditions: list[str], column: int) -> None:
    wish = read_request(Subscription(filter=filter_), conditions, question_mark=True)
    assert wish.predicate is None
    assert wish.refusal is not None
    assert wish.refusal.reason is Reason.TOPIC_FILTER_INVALID
    assert wish.refusal.rule.startswith(f"condition: column {column}: expected "), wish.refusal.rule


def test_conditions_that_are_fine_alone_and_too_much_together_are_refused() -> None:
    long = " or ".join(["v < 1"] * 60)
    assert read_request(Subscription(filter="a"), [long], question_mark=True).refusal is None
    assert read_request(Subscription(filter="a"), [long, long], question_mark=True).refusal is not None
