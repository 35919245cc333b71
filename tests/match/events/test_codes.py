"""Categories: what conditions name has numbers of its own, everything else shares one, and memory is bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.match.box import MISSING
from tieline.match.events.codes import OTHER, Codes, CodesExhausted


def test_listed_values_have_numbers_from_the_start() -> None:
    codes = Codes(("on", "off", "on"))
    assert (codes.sent("on"), codes.sent("off"), codes.sent("broken")) == (0.0, 1.0, OTHER)
    assert len(codes) == 2


def test_a_message_gives_no_numbers_and_a_condition_does() -> None:
    codes = Codes()
    assert codes.sent("on") == OTHER and len(codes) == 0
    assert codes.named("on") == codes.sent("on") != OTHER
    assert codes.sent(MISSING) == MISSING


def test_a_full_table_says_so_and_still_knows_what_it_knew() -> None:
    codes = Codes(("a",), most=2)
    codes.named("b")
    with pytest.raises(CodesExhausted, match="2 values"):
        codes.named("c")
    assert codes.named("b") == 1.0 and codes.sent("c") == OTHER


@given(st.lists(st.tuples(st.sampled_from(["name", "keep"]), st.sets(st.sampled_from("abcdef"), min_size=1))))
def test_no_number_ever_stands_for_two_values(steps: list[tuple[str, set[str]]]) -> None:
    codes = Codes(("a",))
    given_out: dict[float, str] = {0.0: "a"}
    for step, values in steps:
        if step == "name":
            for value in values:
                assert given_out.setdefault(codes.named(value), value) == value
        else:
            kept = {value: codes.sent(value) for value in values}
            codes.keep(kept.values())
            assert all(codes.sent(value) == kept.get(value, OTHER) for value in "abcdef")
        assert codes.sent(MISSING) == MISSING
