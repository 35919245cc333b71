from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.clause.marker import clause
from tieline.wire.errors import ProtocolError, Violation
from tieline.wire.reason import Reason
from tieline.wire.topics import check_filter, check_name, matches, split_share

#: Few letters, so that filters and topics often meet.
_level = st.sampled_from(["", "a", "b", "$a", "$"])
_topic = st.lists(_level, min_size=1, max_size=4).map("/".join)
_filter = st.builds(
    lambda levels, last: "/".join(levels + last),
    st.lists(_level | st.just("+"), max_size=4),
    st.sampled_from([["#"], ["+"], ["a"], [""]]),
)


def oracle(wanted: list[str], levels: list[str]) -> bool:
    """Level by level, as the specification tells it, and nothing else."""
    if wanted == ["#"]:
        return True
    if not wanted or not levels:
        return not wanted and not levels
    return wanted[0] in ("+", levels[0]) and oracle(wanted[1:], levels[1:])


@given(_filter, _topic)
@example("a/#", "a")
@example("+/+", "/")
@example("/+", "/a")
@example("+", "/a")
@clause("MQTT-4.7.2-1", "MQTT311-4.7.2-1")
def test_matching_agrees_with_a_naive_oracle(filter: str, topic: str) -> None:
    is_hidden = topic.startswith("$") and filter.startswith(("+", "#"))
    assert matches(filter, topic) == (oracle(filter.split("/"), topic.split("/")) and not is_hidden)


@pytest.mark.parametrize(
    ("filter", "topic", "expected"),
    [
        ("sport/tennis/player1/#", "sport/tennis/player1", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/ranking", True),
        ("sport/#", "sport", True),
        ("sport/#", "sports", False),
        ("#", "a/b", True),
        ("sport/tennis/+", "sport/tennis/player1", True),
        ("sport/tennis/+", "sport/tennis/player1/ranking", False),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("+/+", "/finance", True),
        ("/+", "/finance", True),
        ("+", "/finance", False),
        ("#", "$SYS/x", False),
        ("+/monitor/Clients", "$SYS/monitor/Clients", False),
        ("$SYS/#", "$SYS/x", True),
        ("$SYS/monitor/+", "$SYS/monitor/Clients", True),
        ("ACCOUNTS", "Accounts", False),
    ],
)
@clause("MQTT-4.7.3-4", "MQTT311-4.7.3-4", "MQTT-4.7.2-1", "MQTT311-4.7.2-1")
def test_the_examples_of_the_specification(filter: str, topic: str, expected: bool) -> None:
    assert matches(filter, topic) is expected


@pytest.mark.parametrize(
    ("topic", "broken"),
    [
        pytest.param("", "MQTT-4.7.3-1", marks=clause("MQTT-4.7.3-1", "MQTT311-4.7.3-1")),
        pytest.param("a/+", "MQTT-4.7.0-1", marks=clause("MQTT-4.7.0-1", "MQTT311-4.7.1-1")),
        pytest.param("a#", "MQTT-4.7.0-1", marks=clause("MQTT-4.7.0-1", "MQTT311-4.7.1-1")),
    ],
)
def test_a_topic_name_is_refused(topic: str, broken: str) -> None:
    with pytest.raises(Violation) as refused:
        check_name(topic, 128)
    assert (refused.value.clause, refused.value.reason) == (broken, Reason.PROTOCOL_ERROR)


@pytest.mark.parametrize("topic", ["/", "a", "a b", "//", "$SYS/a", "ä/\ufeff", "$share/a/b"])
def test_a_topic_name_is_accepted(topic: str) -> None:
    check_name(topic, 3)


@pytest.mark.parametrize(
    ("filter", "broken"),
    [
        pytest.param("", "MQTT-4.7.3-1", marks=clause("MQTT-4.7.3-1", "MQTT311-4.7.3-1")),
        pytest.param("a#", "MQTT-4.7.1-1", marks=clause("MQTT-4.7.1-1", "MQTT311-4.7.1-2")),
        pytest.param("a/#/b", "MQTT-4.7.1-1", marks=clause("MQTT-4.7.1-1", "MQTT311-4.7.1-2")),
        pytest.param("##", "MQTT-4.7.1-1", marks=clause("MQTT-4.7.1-1", "MQTT311-4.7.1-2")),
        pytest.param("#/#", "MQTT-4.7.1-1", marks=clause("MQTT-4.7.1-1", "MQTT311-4.7.1-2")),
        pytest.param("+#", "MQTT-4.7.1-1", marks=clause("MQTT-4.7.1-1", "MQTT311-4.7.1-2")),
        pytest.param("a+", "MQTT-4.7.1-2", marks=clause("MQTT-4.7.1-2", "MQTT311-4.7.1-3")),
        pytest.param("a/+b/c", "MQTT-4.7.1-2", marks=clause("MQTT-4.7.1-2", "MQTT311-4.7.1-3")),
        pytest.param("++", "MQTT-4.7.1-2", marks=clause("MQTT-4.7.1-2", "MQTT311-4.7.1-3")),
        pytest.param("$share//a", "MQTT-4.8.2-1", marks=clause("MQTT-4.8.2-1")),
        pytest.param("$share/", "MQTT-4.8.2-1", marks=clause("MQTT-4.8.2-1")),
        pytest.param("$share/g", "MQTT-4.8.2-2", marks=clause("MQTT-4.8.2-2")),
        pytest.param("$share/g/", "MQTT-4.8.2-2", marks=clause("MQTT-4.8.2-2")),
        pytest.param("$share/+/a", "MQTT-4.8.2-2", marks=clause("MQTT-4.8.2-2")),
        pytest.param("$share/g#/a", "MQTT-4.8.2-2", marks=clause("MQTT-4.8.2-2")),
        pytest.param("$share/g/a#", "MQTT-4.7.1-1", marks=clause("MQTT-4.7.1-1")),
    ],
)
def test_a_topic_filter_is_refused(filter: str, broken: str) -> None:
    with pytest.raises(Violation) as refused:
        check_filter(filter, 128)
    assert (refused.value.clause, refused.value.reason) == (broken, Reason.TOPIC_FILTER_INVALID)


@pytest.mark.parametrize("filter", ["#", "+", "/", "+/+/#", "a//+", "$SYS/#", "$share", "$share/g/#", "$share/g//"])
def test_a_topic_filter_is_accepted(filter: str) -> None:
    check_filter(filter, 3)


def test_levels_are_limited() -> None:
    check_name("a/b/c", 3)
    check_filter("$share/g/a/b/c", 3)
    with pytest.raises(Violation) as refused:
        check_name("a/b/c/", 3)
    assert refused.value.reason is Reason.TOPIC_NAME_INVALID
    with pytest.raises(Violation) as refused:
        check_filter("$share/g/a/b/c/d", 3)
    assert refused.value.reason is Reason.TOPIC_FILTER_INVALID


def test_a_limit_of_zero_means_zero() -> None:
    for check in (check_name, check_filter):
        with pytest.raises(ProtocolError):
            check("a", 0)


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ("a/b", (None, "a/b")),
        ("$share", (None, "$share")),
        ("$shared/g/a", (None, "$shared/g/a")),
        ("$share/g/a/b", ("g", "a/b")),
        ("$share/g//b", ("g", "/b")),
        ("$share/a b/#", ("a b", "#")),
    ],
)
def test_a_share_is_split(filter: str, expected: tuple[str | None, str]) -> None:
    assert split_share(filter) == expected
