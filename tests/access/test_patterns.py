"""A name fills one level or none: it never reaches further than the rule's author wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.access.patterns import Pattern, is_pattern, narrow, wide
from tieline.match.cover.filters import covers


def test_plain_names_are_filled_in() -> None:
    assert narrow("home/%u/%c/#", "ann", "phone") == "home/ann/phone/#"
    assert narrow("dev-%c", None, "7") == "dev-7"
    assert wide("home/%u/%c/#", "ann", "phone") == "home/ann/phone/#"


@pytest.mark.parametrize("name", ["+", "#", "a/b", "/", "a+", "#b", "", None, "a\0"])
def test_a_name_that_would_reach_further_allows_nothing_and_denies_everything_in_its_place(name: str | None) -> None:
    assert narrow("home/%u/x", name, "c") is None
    assert wide("home/%u/x", name, "c") == "home/+/x"
    assert wide("home/dev-%u/x", name, "c") == "home/+/x"


def test_a_name_that_looks_like_a_placeholder_is_not_filled_in_again() -> None:
    assert narrow("%u", "%c", "root") == "%c"
    assert narrow("%u/%c", "%c", "%u") == "%c/%u"


@pytest.mark.parametrize("filter_", ["%c/#", "%c", "%u/#", "%c/+/x", "%c%u/#", "%c/tieline/#"])
def test_no_name_leads_to_the_topics_of_the_broker(filter_: str) -> None:
    for name in ("$SYS", "$", "$share"):
        assert narrow(filter_, name, name) is None
        assert not Pattern(filter_).matches([name, "broker", "x"], name, name, is_allowed=True)
    assert narrow("dev/%c", None, "$7") == "dev/$7", "inside a topic the sign is a letter like others"
    assert narrow("$SYS/%u/#", "ann", "") == "$SYS/ann/#"


def test_other_percent_signs_are_ordinary() -> None:
    assert not is_pattern("100%/x%y")
    assert narrow("100%/%u", "a", "") == "100%/a"
    assert narrow("%%u", "a", "") == "%a"


def test_empty_levels_stay() -> None:
    assert wide("/%u//x", "a+", "") == "/+//x"


_NAMES = st.text(alphabet="ab+#/%uc", max_size=4)
_PATTERNS = st.sampled_from(["%u", "a/%u", "%c/#", "x/%u-%c/y", "+/%c"])


@given(_PATTERNS, _NAMES, _NAMES)
def test_what_a_pattern_comes_to_stays_inside_its_own_shape(pattern: str, user: str, client_id: str) -> None:
    shape = "/".join("+" if "%" in level else level for level in pattern.split("/"))
    allowed = narrow(pattern, user, client_id)
    assert allowed is None or covers(shape, allowed)
    denied = wide(pattern, user, client_id)
    assert covers(shape, denied)
    assert allowed is None or covers(denied, allowed), "what is denied is at least what would be allowed"


_NAMES = st.sampled_from(["a", "b", "$a", "%u", "+", "#", "x/y", "", None])
_LEVELS = st.sampled_from(["a", "b", "$a", "", "+", "%u", "%c", "a%c", "%u%c"])


@given(
    levels=st.lists(_LEVELS, min_size=1, max_size=4),
    is_open=st.booleans(),
    topic=st.lists(st.sampled_from(["a", "b", "$a", "", "aa", "ab", "+"]), min_size=1, max_size=4),
    user=_NAMES,
    client_id=_NAMES,
    is_allowed=st.booleans(),
)
def test_a_pattern_says_of_a_topic_what_the_filter_says_that_is_written_out(
    levels: list[str], is_open: bool, topic: list[str], user: str | None, client_id: str | None, is_allowed: bool
) -> None:
    filter_ = "/".join([*levels, "#"] if is_open else levels)
    name, client = "/".join(topic), client_id or ""
    if not is_pattern(filter_) or not name:
        return
    written = narrow(filter_, user, client) if is_allowed else wide(filter_, user, client)
    pattern = Pattern(filter_)
    found = covers(f"/{pattern.general}", f"/{name}") and pattern.matches(topic, user, client, is_allowed=is_allowed)
    assert found == (written is not None and covers(written, name))
