"""Chapter 4.7: topic names and filters."""

from __future__ import annotations

import pytest

from tests.clause import raw
from tests.clause.marker import clause
from tests.kits.world import World
from tieline.wire.packets import Publish, Suback
from tieline.wire.reason import Reason

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])


def expect_bad_filter(world: World, version: int, filter_: str) -> None:
    """MQTT 5 refuses the filter, 3.1.1 closes the connection; either way nothing is subscribed."""
    client = world.client(version=version)
    client.send(raw.subscribe(version, raw.text(filter_), b"\0"))
    if client.closed:
        assert set(client.told()) <= {Reason.TOPIC_FILTER_INVALID, Reason.PROTOCOL_ERROR}
    else:
        client.expect(Suback, reasons=(Reason.TOPIC_FILTER_INVALID if version == 5 else 0x80,))
        client.expect_nothing()
    other = world.client("other")
    for topic in ("a", "a/b", "sport", "b"):
        other.put(topic)
    assert client.take() == []


@clause("MQTT-4.7.0-1", "MQTT311-4.7.1-1")
@BOTH
def test_4_7_0_1_wildcards_are_for_filters(world: World, version: int) -> None:
    client = world.client(version=version)
    assert client.subscribe("+/a/#", qos=1).reasons == (1,)
    client.put("x/a/y")
    client.expect(Publish, topic="x/a/y")
    client.put("+/a/y")
    assert client.closed


@clause("MQTT-4.7.1-1", "MQTT311-4.7.1-2")
@BOTH
@pytest.mark.parametrize("filter_", ["a#", "a/b#", "#/a", "a/#/b", "##", "a/##", "#b", "a/#b"])
def test_4_7_1_1_a_misplaced_multi_level_wildcard_is_refused(world: World, version: int, filter_: str) -> None:
    expect_bad_filter(world, version, filter_)


@clause("MQTT-4.7.1-2", "MQTT311-4.7.1-3")
@BOTH
@pytest.mark.parametrize("filter_", ["a+", "+a", "a/b+", "a/+b/c", "++", "a/++"])
def test_4_7_1_2_a_misplaced_single_level_wildcard_is_refused(world: World, version: int, filter_: str) -> None:
    expect_bad_filter(world, version, filter_)


@pytest.mark.parametrize(
    ("filter_", "yes", "no"),
    [
        pytest.param("a/#", ["a", "a/b", "a/b/c", "a/"], ["b", "ab", "A/b"], marks=clause("MQTT-4.7.1-1")),
        pytest.param("#", ["a", "/", "/a", "a/b/c"], [], marks=clause("MQTT311-4.7.1-2")),
        pytest.param("+", ["a", "b"], ["/a", "a/b", "a/"], marks=clause("MQTT-4.7.1-2")),
        pytest.param("a/+", ["a/b", "a/"], ["a", "a/b/c"], marks=clause("MQTT311-4.7.1-3")),
        pytest.param("+/+", ["/a", "a/b", "/"], ["a", "a/b/c"], marks=clause("MQTT-4.7.1-2")),
        pytest.param("+/b/#", ["a/b", "a/b/c", "/b"], ["b", "a/c"], marks=clause("MQTT-4.7.1-2", "MQTT-4.7.1-1")),
    ],
)
@BOTH
def test_wildcards_match_as_described(world: World, version: int, filter_: str, yes: list[str], no: list[str]) -> None:
    client = world.client(version=version)
    client.subscribe(filter_)
    for topic in (*no, *yes):
        client.put(topic)
    assert [message.topic for message in client.messages()] == yes


@clause("MQTT-4.7.2-1", "MQTT311-4.7.2-1")
@BOTH
@pytest.mark.parametrize("filter_", ["#", "+", "+/b", "+/#", "+/b/#"])
@pytest.mark.parametrize("way", ["live", "retained", "shared"])
def test_4_7_2_1_leading_wildcards_do_not_see_dollar_topics(world: World, version: int, filter_: str, way: str) -> None:
    client = world.client(version=version)
    other = world.client("other")
    if way != "retained":
        client.subscribe(f"$share/g/{filter_}" if way == "shared" else filter_)
    for topic in ("$a", "$a/b", "$", "$a/b/c"):
        other.publish(topic, retain=way == "retained")
    if way == "retained":
        client.subscribe(filter_)
    client.expect_nothing()


@clause("MQTT-4.7.2-1", "MQTT311-4.7.2-1")
@BOTH
@pytest.mark.parametrize("filter_", ["$a/#", "$a/+", "$a/b"])
def test_4_7_2_1_a_filter_that_names_the_dollar_topic_does(world: World, version: int, filter_: str) -> None:
    client = world.client(version=version)
    client.subscribe(filter_)
    client.put("$a/b")
    client.expect(Publish, topic="$a/b")


@clause("MQTT-4.7.3-1", "MQTT311-4.7.3-1")
@BOTH
def test_4_7_3_1_an_empty_filter_is_refused(world: World, version: int) -> None:
    expect_bad_filter(world, version, "")


@clause("MQTT-4.7.3-1", "MQTT311-4.7.3-1")
@BOTH
@pytest.mark.parametrize("flags", [0x0, 0x2, 0x4], ids=["QoS 0", "QoS 1", "QoS 2"])
def test_4_7_3_1_an_empty_topic_name_is_refused(world: World, version: int, flags: int) -> None:
    watcher = world.client("watcher")
    watcher.subscribe("#")
    client = world.client(version=version)
    client.send(raw.publish(version, "", flags=flags, packet_id=1 if flags else None))
    client.expect_end(Reason.PROTOCOL_ERROR)
    watcher.expect_nothing()


@clause("MQTT-4.7.3-2", "MQTT311-4.7.3-2")
@BOTH
@pytest.mark.parametrize("kind", ["name", "filter", "unsubscribe"])
def test_4_7_3_2_a_null_character_ends_the_connection(world: World, version: int, kind: str) -> None:
    client = world.client(version=version)
    bad = raw.text(b"a/\0")
    client.send(
        {
            "name": raw.publish(version, b"a/\0"),
            "filter": raw.subscribe(version, bad, b"\0"),
            "unsubscribe": raw.unsubscribe(version, bad),
        }[kind]
    )
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-4.7.3-3", "MQTT311-4.7.3-3")
@BOTH
def test_4_7_3_3_the_longest_topic_is_served(world: World, version: int) -> None:
    longest = "ß" * 32_767 + "a"
    client = world.client(version=version)
    client.subscribe(longest, qos=1)
    client.put(longest, b"payload")
    client.expect(Publish, topic=longest, payload=b"payload")


@clause("MQTT-4.7.3-4", "MQTT311-4.7.3-4")
@BOTH
@pytest.mark.parametrize(
    ("filter_", "topic"),
    [
        ("é", "e\u0301"),
        ("A", "a"),
        ("a/", "a"),
        ("a//b", "a/b"),
        ("/a", "a"),
        (" a", "a"),
        ("\u212b", "\u00c5"),
        ("ﬁ", "fi"),
        ("a\u200b", "a"),
        ("a/./b", "a/b"),
        ("%61", "a"),
    ],
)
def test_4_7_3_4_nothing_is_normalised(world: World, version: int, filter_: str, topic: str) -> None:
    client = world.client(version=version)
    client.subscribe(filter_)
    client.put(topic)
    client.expect_nothing()
    client.put(filter_)
    client.expect(Publish, topic=filter_)
    client.publish(topic, b"kept", retain=True)
    client.subscribe(filter_)
    client.expect_nothing()
