from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.match.topics import filters
from tieline.match.where import Asked, ExpressionError, parse, spell, split


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        ("a/b", (None, "a/b", None)),
        ("$share/g/a/#", ("g", "a/#", None)),
        ("$where/voltage<207/microgrid/+/pcc", (None, "microgrid/+/pcc", "voltage<207")),
        ("$where/voltage%3C207/#", (None, "#", "voltage<207")),
        ("$share/g/$where/voltage%3c207/a/#", ("g", "a/#", "voltage<207")),
        ("$where/a%2Fb=1/x", (None, "x", "a/b=1")),
        ("$where/s=%22%C3%9C%25%2B%23%22/x", (None, "x", 's="Ü%+#"')),
        ("$where/s='Ü'//x", (None, "/x", "s='Ü'")),
        ("microgrid/+/pcc?voltage<207", (None, "microgrid/+/pcc", "voltage<207")),
        ("a/#?voltage<207&status=on", (None, "a/#", "voltage<207&status=on")),
        ("$share/g/a/#?x>1", ("g", "a/#", "x>1")),
        ('a?name="a/b#+?"', (None, "a", 'name="a/b#+?"')),
        ("a?x>1?y>2", (None, "a", "x>1?y>2")),
        ("a?changed(x)", (None, "a", "changed(x)")),
        ("a?Delta (x)", (None, "a", "Delta (x)")),
        ("a?x in (1,2)", (None, "a", "x in (1,2)")),
        ("a?x not IN(1,2)", (None, "a", "x not IN(1,2)")),
        ("a?x>%31", (None, "a", "x>%31")),
        # nothing is compared: an ordinary character
        ("a?", (None, "a?", None)),
        ("what?/+/why", (None, "what?/+/why", None)),
        ("a?'x>1'", (None, "a?'x>1'", None)),
        ("a?who's<there", (None, "a?who's<there", None)),
        ("a?f(x)", (None, "a?f(x)", None)),
        ("a?unchanged(x)", (None, "a?unchanged(x)", None)),
        ("a?(x)", (None, "a?(x)", None)),
        ("a=1", (None, "a=1", None)),
        # who says $where has said it
        ("$where/x>1/a?y>2", (None, "a?y>2", "x>1")),
        ("$where", (None, "$where", None)),
        ("a/$where/x>1/b", (None, "a/$where/x>1/b", None)),
        # malformed shares are refused elsewhere, whole
        ("$share/g", (None, "$share/g", None)),
        ("$share//a?x>1", (None, "$share//a?x>1", None)),
        ("$share/+/a?x>1", (None, "$share/+/a?x>1", None)),
        ("$share/g/", (None, "$share/g/", None)),
        ("?x>1", (None, "", "x>1")),
    ],
)
def test_spellings(filter_: str, expected: tuple[str | None, str, str | None]) -> None:
    assert split(filter_, question_mark=True) == Asked(*expected)


def test_a_question_mark_may_be_switched_off() -> None:
    assert split("a?x>1", question_mark=False) == Asked(None, "a?x>1", None)
    assert split("$share/g/a?x>1", question_mark=False) == Asked("g", "a?x>1", None)
    assert split("$where/x>1/a?x>1", question_mark=False) == Asked(None, "a?x>1", "x>1")


@pytest.mark.parametrize(
    ("filter_", "sentence"),
    [
        ("$where/", "column 1: expected an expression"),
        ("$where//a", "column 1: expected an expression"),
        ("$share/g/$where//a", "column 1: expected an expression"),
        ("$where/x>1", "column 4: expected '/' and a topic filter after the expression"),
        ("$where/x>1/", "column 4: expected '/' and a topic filter after the expression"),
        ("$where/x>1/$share/g/a", "column 5: expected $share/ before $where/, and each only once"),
        ("$where/x>1/$where/y>1/a", "column 5: expected $share/ before $where/, and each only once"),
        ("$where/x>%/a", "column 4: expected two hexadecimal digits after '%'"),
        ("$where/x>%3/a", "column 4: expected two hexadecimal digits after '%'"),
        ("$where/x>%3g/a", "column 4: expected two hexadecimal digits after '%'"),
        ("$where/x>%+3/a", "column 4: expected two hexadecimal digits after '%'"),
        ("$where/Ü=%3C%FF/a", "column 6: expected UTF-8"),
        ("$where/x=%C3(/a", "column 3: expected UTF-8"),
        ("$where/x=%ED%A0%80/a", "column 3: expected UTF-8"),
        ("$where/x=\ud800/a", "column 3: expected UTF-8"),
        ("$where/x>1+y>2/a", "column 4: expected %2B instead of '+' in an encoded expression"),
        ("$where/#/a", "column 1: expected %23 instead of '#' in an encoded expression"),
    ],
)
def test_a_where_that_cannot_be_read(filter_: str, sentence: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        split(filter_, question_mark=True)
    assert str(caught.value) == sentence


expressions = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
shares = st.none() | st.sampled_from(("g", "a b", "?", "x>1"))


@given(shares, filters, expressions)
def test_what_is_spelled_is_split_again(share: str | None, filter_: str, expression: str) -> None:
    asked = Asked(share, filter_, expression)
    text = spell(asked)
    assert split(text, question_mark=False) == split(text, question_mark=True) == asked
    assert not set("+#\0\n") & set(text.removesuffix(filter_))


@given(shares, filters)
def test_a_filter_without_an_expression_stays_as_it_is(share: str | None, filter_: str) -> None:
    asked = Asked(share, filter_, None)
    assert split(spell(asked), question_mark=True) == asked


@given(st.text(alphabet="ab/?$<>='\"`(%+#where", max_size=20).map(lambda tail: tail.removeprefix("$where")))
def test_without_where_nothing_is_refused(filter_: str) -> None:
    asked = split(filter_, question_mark=True)
    if asked.expression is not None:
        assert f"{asked.filter}?{asked.expression}" == filter_


def test_a_long_filter_is_split_in_one_pass() -> None:
    filter_ = "a?" + "( " * 30_000
    assert split(filter_, question_mark=True).expression is None


def test_the_tail_may_hold_what_a_filter_may_not() -> None:
    assert parse(split('a?name="a/b"', question_mark=True).expression or "").canonical == 'name = "a/b"'
    with pytest.raises(ExpressionError, match="column 4"):
        parse(split("a/b?x>1/2", question_mark=True).expression or "")
