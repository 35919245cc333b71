"""What every client must be able to do over every kind of listener: exchange messages."""

from __future__ import annotations

import pytest

from tests.interop.conftest import Connect

#: Many TCP segments, TLS records and WebSocket frames.
_LARGE = bytes(range(256)) * 2_000


@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.parametrize("sent", [0, 1, 2])
def test_the_lower_quality_of_service_counts(connect: Connect, topic: str, sent: int, granted: int) -> None:
    receiver, sender = connect("receiver"), connect("sender")
    assert receiver.subscribe(topic, granted) == granted
    sender.publish(topic, b"one", sent)
    sender.publish(topic, b"two", sent)
    receiver.expect(topic, b"one", qos=min(sent, granted))
    receiver.expect(topic, b"two", qos=min(sent, granted))


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_each_quality_of_service_over_each_listener(connect_over: Connect, topic: str, qos: int) -> None:
    client = connect_over("both")
    assert client.subscribe(topic, qos) == qos
    for number in range(4):
        client.publish(topic, b"%d" % number, qos)
    for number in range(4):
        client.expect(topic, b"%d" % number, qos=qos)


@pytest.mark.parametrize("qos", [0, 2])
def test_a_large_message_over_each_listener(connect_over: Connect, topic: str, qos: int) -> None:
    client = connect_over("large")
    client.subscribe(topic, qos)
    client.publish(topic, _LARGE, qos)
    client.expect(topic, _LARGE, qos=qos)


def test_an_empty_message(connect_over: Connect, topic: str) -> None:
    client = connect_over("empty")
    client.subscribe(topic, 1)
    client.publish(topic, b"", 1)
    client.expect(topic, b"")


def test_many_messages_keep_their_order(connect: Connect, topic: str) -> None:
    receiver, sender = connect("receiver"), connect("sender")
    receiver.subscribe(topic, 2)
    expected = []
    for number in range(18):
        payload = b"%d" % number
        sender.publish(topic, payload, number % 3)
        expected.append(payload)
    found = [message.payload for message in receiver.take(18)]
    for qos in (0, 1, 2):
        # [MQTT-4.6.0-6]: order is promised per topic and QoS
        assert [payload for payload in found if int(payload) % 3 == qos] == expected[qos::3]


def test_any_text_is_a_topic(connect: Connect, topic: str) -> None:
    client = connect("text")
    names = [f"{topic}/{name}" for name in ("Größe", "日本語", "😀", " a b ", "a//b", "/", "x" * 200)]
    client.subscribe(f"{topic}/#", 1)
    for name in names:
        client.publish(name, name.encode(), 1)
    for name in names:
        client.expect(name, name.encode())


def test_both_versions_hear_each_other(connect_5: Connect, topic: str) -> None:
    old, new = connect_5("old", version=4), connect_5("new", version=5)
    old.subscribe(topic, 2)
    new.subscribe(topic, 2)
    for qos in (0, 1, 2):
        old.publish(topic, b"from old", qos)
        for client in (old, new):
            client.expect(topic, b"from old", qos=qos)
        new.publish(topic, b"from new", qos, content_type="text/plain")
        for client in (old, new):
            client.expect(topic, b"from new", qos=qos)


def test_a_name_and_a_password_do_no_harm(connect: Connect, topic: str) -> None:
    client = connect("named", username="user", password="secret")
    client.subscribe(topic)
    client.publish(topic, b"let in")
    client.expect(topic, b"let in")
