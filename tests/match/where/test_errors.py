from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.match.where import ExpressionError, parse
from tieline.match.where.parser import MAX_DEPTH, MAX_LENGTH, MAX_TERMS

START = "expected an attribute, a value, 'not' or '('"
GO_ON = "expected 'and', 'or' or the end"
ORDERED = "expected a number or a quoted text after"
EQUAL = "expected a number, a text, true or false after"


@pytest.mark.parametrize(
    ("text", "column", "sentence"),
    [
        ("", 1, START),
        ("   ", 4, START),
        ("voltage<", 9, f"{ORDERED} '<'"),
        ("voltage< and", 10, f"{ORDERED} '<'"),
        ("voltage<other", 9, f"{ORDERED} '<'"),
        ("voltage>=true", 10, f"{ORDERED} '>='"),
        ("voltage=", 9, f"{EQUAL} '='"),
        ("voltage==<", 10, f"{EQUAL} '='"),
        ("voltage=`a`", 9, f"{EQUAL} '='"),
        ("voltage", 8, "expected a comparison after 'voltage'"),
        ("voltage 5", 9, "expected a comparison after 'voltage'"),
        ("voltage not 5", 13, "expected 'in' after 'not'"),
        ("5", 2, "expected a comparison after the value"),
        ("5<6", 3, "expected an attribute after '<'"),
        ("5<x>3", 4, "expected '<' or '<=', as the range began"),
        ("5>=x<3", 5, "expected '>' or '>=', as the range began"),
        ("5<x<", 5, f"{ORDERED} '<'"),
        ("5<x<'a'", 5, "expected a number, as the range began"),
        ("'a'<x<5", 7, "expected a text, as the range began"),
        ("5=x=5", 4, GO_ON),
        ("5<x=5", 4, GO_ON),
        ("true<x", 5, "expected '=' or '!=' after true or false"),
        ("x>1/2", 4, GO_ON),
        ("x>1 y", 5, GO_ON),
        ("x>1)", 4, GO_ON),
        ("x>1 and", 8, START),
        ("x>1 or or y>2", 8, START),
        ("not", 4, START),
        ("(x>1", 5, "expected ')' to close the one in column 1"),
        ("()", 2, START),
        ("x in 5", 6, "expected '(' after 'in'"),
        ("x in ()", 7, f"{EQUAL} '('"),
        ("x in (1,)", 9, f"{EQUAL} ','"),
        ("x in (1 2)", 9, "expected ',' or ')' after a value"),
        ("x in (1,'a')", 9, "expected a number, like the values before"),
        ("x in (true,1)", 12, "expected true or false, like the values before"),
        ("x not in (a,1)", 13, "expected a text, like the values before"),
        ("changed()", 9, "expected an attribute after '('"),
        ("changed(x", 10, "expected ')' after 'x'"),
        ("delta(x)", 9, "expected '>' or '>=' after delta( )"),
        ("delta(x)<1", 9, "expected '>' or '>=' after delta( )"),
        ("delta(x)>-1", 10, "expected a number not below 0 after '>'"),
        ("delta(x)>=a", 11, "expected a number not below 0 after '>='"),
        ("avg(x)>1", 1, "expected 'changed' or 'delta' before '('"),
        ("grid-mode=1", 6, "expected a digit after '-'; a name with other characters is written in backquotes"),
        ("x>-", 4, "expected a digit after '-'"),
        ("x>1.", 5, "expected a digit after '.'"),
        ("x>1e", 5, "expected a digit after the 'e' of a number"),
        ("x>1e+", 6, "expected a digit after the 'e' of a number"),
        ("x>1.2.3", 6, "expected the end of the number; a text that begins with a digit needs quotes"),
        ("x=12ab", 5, "expected the end of the number; a text that begins with a digit needs quotes"),
        ("y=1 and x>-1e309", 11, "expected a number below 1.8e308"),
        ("x>nan", 3, f"{ORDERED} '>'"),
        ("x='abc", 7, "expected ' to close what column 3 opens"),
        ("`x>1", 5, "expected ` to close what column 1 opens"),
        ("``>1", 1, "expected a name between backquotes"),
        ("a..b>1", 3, "expected a letter, a digit or '_' after '.'"),
        ("a.>1", 3, "expected a letter, a digit or '_' after '.'"),
        ("and=1", 1, START),
        ("true", 5, "expected '=' or '!=' after true or false"),
        # the leftmost fault is the one that is named
        ("x y='abc", 3, "expected a comparison after 'x'"),
    ],
)
def test_an_error_names_the_column_and_what_was_expected(text: str, column: int, sentence: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert str(caught.value) == f"column {column}: {sentence}"
    assert caught.value.column == column
    assert caught.value.text == sentence
    assert isinstance(caught.value, ValueError)


def test_length_is_bounded() -> None:
    longest = "x='" + "a" * (MAX_LENGTH - 4) + "'"
    assert parse(longest).names == ("x",)
    with pytest.raises(ExpressionError, match="column 1025: expected at most 1024 characters"):
        parse(longest + " ")


def test_depth_is_bounded() -> None:
    assert parse("(" * MAX_DEPTH + "x>1" + ")" * MAX_DEPTH).canonical == "x > 1"
    deeper = MAX_DEPTH + 1
    with pytest.raises(ExpressionError, match="column 17: expected at most 16 parentheses inside one another"):
        parse("(" * deeper + "x>1" + ")" * deeper)
    # beside one another they may be as many as there is room for
    assert len(parse("&".join(["(x>1)"] * 60)).names) == 1


def test_terms_are_bounded() -> None:
    most = ["x>1"] * MAX_TERMS
    parse("|".join(most))
    with pytest.raises(ExpressionError, match="column 257: expected at most 64 comparisons"):
        parse("|".join([*most, "y>1"]))
    parse(f"x in ({','.join('1' * MAX_TERMS)})")
    with pytest.raises(ExpressionError, match="column 135: expected at most 64 comparisons"):
        parse(f"x in ({','.join('1' * (MAX_TERMS + 1))})")
    parse("|".join(["1<x<2"] * (MAX_TERMS // 2)))
    with pytest.raises(ExpressionError, match="comparisons"):
        parse("|".join(["1<x<2"] * (MAX_TERMS // 2) + ["x>1"]))


@pytest.mark.parametrize("text", ["!" * 1_021 + "x>1", "not " * 255 + "x>1"])
def test_any_number_of_negations_is_one_or_none(text: str) -> None:
    assert parse(text).canonical == "not x > 1"


@pytest.mark.parametrize("text", ["(" * 1_024, "!(" * 512, "(!" * 512, "x in (" * 170])
def test_nesting_never_exhausts_the_stack(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text)


@given(st.text(alphabet="ab1.-+eE<>=!&|()'\"`, \x00é²", max_size=30) | st.text(max_size=30))
def test_any_text_is_an_expression_or_a_fault_inside_it(text: str) -> None:
    column = 1
    try:
        predicate = parse(text)
    except ExpressionError as error:
        column = error.column
    else:
        assert parse(predicate.canonical) == predicate
    assert 1 <= column <= len(text) + 1
