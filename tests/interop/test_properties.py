"""MQTT 5 properties on their way from client to client."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interop.clients.with_gmqtt import GmqttClient
from tests.interop.clients.with_mqttjs import MqttjsClient
from tests.interop.conftest import Connect


def test_everything_a_publisher_says_arrives(connect_5: Connect, topic: str) -> None:
    client = connect_5("both")
    client.subscribe(topic, 1)
    said: dict[str, Any] = {
        "payload_format_indicator": 1,
        "content_type": "text/plain; charset=utf-8",
        "response_topic": f"{topic}/answers/ä",
        "correlation_data": bytes(range(256)),
    }
    client.publish(topic, b"hello", 1, **said)
    found = client.receive().properties
    assert {name: found[name] for name in said} == said


def test_user_properties_keep_their_order(connect_5: Connect, topic: str) -> None:
    client = connect_5("both")
    client.subscribe(topic, 1)
    pairs = [("z", "1"), ("a", "2"), ("Ä", "ö"), ("empty", "")]
    if connect_5.kind.lists_user_properties:
        pairs += [("z", "1"), ("a", "first"), ("z", "0")]
    client.publish(topic, b"", 1, user_property=pairs)
    assert [tuple(pair) for pair in client.receive().properties["user_property"]] == pairs


def test_the_expiry_counts_down_from_what_was_said(connect_5: Connect, topic: str) -> None:
    client = connect_5("both")
    client.subscribe(topic, 1)
    client.publish(topic, b"", 1, message_expiry_interval=100)
    assert 90 <= client.receive().properties["message_expiry_interval"] <= 100


def test_properties_of_a_retained_message_are_kept(connect_5: Connect, topic: str) -> None:
    connect_5("sender").publish(topic, b"x", 1, retain=True, content_type="kept", user_property=[("a", "b")])
    client = connect_5("late")
    client.subscribe(topic, 1)
    found = client.receive().properties
    assert found["content_type"] == "kept"
    assert [tuple(pair) for pair in found["user_property"]] == [("a", "b")]


def test_a_question_and_its_answer(connect_5: Connect, topic: str) -> None:
    asks, answers = connect_5("asks"), connect_5("answers")
    answers.subscribe(f"{topic}/question", 1)
    asks.subscribe(f"{topic}/answer", 1)
    asks.publish(f"{topic}/question", b"6*7", 1, response_topic=f"{topic}/answer", correlation_data=b"\x00\xff")
    question = answers.receive()
    answers.publish(
        question.properties["response_topic"],
        b"42",
        1,
        correlation_data=question.properties["correlation_data"],
    )
    answer = asks.expect(f"{topic}/answer", b"42")
    assert answer.properties["correlation_data"] == b"\x00\xff"


def test_a_client_abbreviates_its_topics(connect_5: Connect, topic: str) -> None:
    sender, receiver = connect_5("sender"), connect_5("receiver")
    receiver.subscribe(f"{topic}/#", 1)
    sender.publish(f"{topic}/a", b"1", 1, topic_alias=1)
    sender.publish("", b"2", 1, topic_alias=1)
    sender.publish(f"{topic}/b", b"3", 1, topic_alias=1)
    sender.publish("", b"4", 1, topic_alias=1)
    found = [(message.topic, message.payload) for message in receiver.take(4)]
    assert found == [(f"{topic}/a", b"1"), (f"{topic}/a", b"2"), (f"{topic}/b", b"3"), (f"{topic}/b", b"4")]


# paho, and so aiomqtt, does not understand aliases that a broker sets
@pytest.mark.parametrize("connect_5", [GmqttClient, MqttjsClient], indirect=True, ids=lambda kind: kind.name)
def test_the_broker_abbreviates_topics_for_those_who_understand(connect_5: Connect, topic: str) -> None:
    client = connect_5("short", topic_alias_maximum=2)
    client.subscribe(f"{topic}/#", 1)
    names = [f"{topic}/{name}" for name in "abcabcabc"]
    for name in names:
        client.publish(name, name.encode(), 1)
    for name in names:
        client.expect(name, name.encode())


def test_3_1_1_clients_get_the_message_without_what_they_cannot_read(connect_5: Connect, topic: str) -> None:
    old = connect_5("old", version=4)
    old.subscribe(topic, 1)
    connect_5("new").publish(
        topic, b"plain", 1, content_type="text/plain", user_property=[("a", "b")], message_expiry_interval=60
    )
    old.expect(topic, b"plain", properties={})
