"""Subscriptions as clients make them: wildcards, options, identifiers, groups, and the end of a subscription."""

from __future__ import annotations

import pytest

from tests.interop.conftest import Connect


def test_wildcards(connect: Connect, topic: str) -> None:
    client = connect("wild")
    client.subscribe(f"{topic}/+/end", 1)
    client.subscribe(f"{topic}/deep/#", 1)
    for name in ("a/end", "a/b/end", "deep", "deep/er/still", "deeper", "last/end"):
        client.publish(f"{topic}/{name}", name.encode(), 1)
    found = [message.payload for message in client.take(4)]
    assert found == [b"a/end", b"deep", b"deep/er/still", b"last/end"]


def test_unsubscribe(connect: Connect, topic: str) -> None:
    client = connect("leaving")
    client.subscribe(f"{topic}/a", 1)
    client.subscribe(f"{topic}/fence", 1)
    client.publish(f"{topic}/a", b"heard", 1)
    client.expect(f"{topic}/a", b"heard")
    client.unsubscribe(f"{topic}/a")
    client.publish(f"{topic}/a", b"not heard", 1)
    client.publish(f"{topic}/fence", b"", 1)
    client.expect(f"{topic}/fence", b"")


def test_unsubscribe_from_what_was_never_subscribed(connect: Connect, topic: str) -> None:
    client = connect("stranger")
    client.unsubscribe(topic)
    client.subscribe(topic)
    client.publish(topic, b"well")
    client.expect(topic, b"well")


def test_a_second_subscription_to_the_same_filter_replaces_the_first(connect: Connect, topic: str) -> None:
    client = connect("again")
    assert client.subscribe(topic, 0) == 0
    assert client.subscribe(topic, 2) == 2
    client.publish(topic, b"once", 2)
    client.publish(topic, b"fence", 2)
    client.expect(topic, b"once", qos=2)
    client.expect(topic, b"fence", qos=2)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_retained(connect: Connect, topic: str, qos: int) -> None:
    sender, receiver = connect("sender"), connect("receiver")
    sender.publish(f"{topic}/kept", b"old", qos, retain=True)
    sender.publish(f"{topic}/kept", b"new", qos, retain=True)
    sender.publish(f"{topic}/gone", b"x", qos, retain=True)
    sender.publish(f"{topic}/gone", b"", qos, retain=True)
    # a later exchange on the same connection: the broker has seen what came before it
    sender.publish(f"{topic}/nobody", b"", 1)
    receiver.subscribe(f"{topic}/#", 2)
    receiver.expect(f"{topic}/kept", b"new", qos=qos, retain=True)
    sender.publish(f"{topic}/kept", b"live", qos, retain=True)
    receiver.expect(f"{topic}/kept", b"live", qos=qos, retain=False)


def test_retain_as_published(connect_5: Connect, topic: str) -> None:
    client = connect_5("published")
    client.subscribe(topic, 1, retain_as_published=True)
    client.publish(topic, b"kept", 1, retain=True)
    client.publish(topic, b"not", 1)
    client.expect(topic, b"kept", retain=True)
    client.expect(topic, b"not", retain=False)


def test_retain_handling(connect_5: Connect, topic: str) -> None:
    client = connect_5("handling")
    client.publish(topic, b"kept", 1, retain=True)
    client.subscribe(f"{topic}/fence", 1)

    def fence() -> None:
        client.publish(f"{topic}/fence", b"", 1)
        client.expect(f"{topic}/fence", b"")

    client.subscribe(topic, 1, retain_handling=2)
    fence()
    client.subscribe(topic, 1, retain_handling=1)
    fence()
    client.subscribe(topic, 1, retain_handling=0)
    client.expect(topic, b"kept", retain=True)
    client.unsubscribe(topic)
    client.subscribe(topic, 1, retain_handling=1)
    client.expect(topic, b"kept", retain=True)
    fence()


def test_no_local(connect_5: Connect, topic: str) -> None:
    own, other = connect_5("own"), connect_5("other")
    own.subscribe(topic, 1, no_local=True)
    own.publish(topic, b"mine", 1)
    other.publish(topic, b"theirs", 1)
    own.expect(topic, b"theirs")


def test_subscription_identifiers(connect_5: Connect, topic: str) -> None:
    client = connect_5("identified")
    client.subscribe(f"{topic}/a", 1, identifier=7)
    client.subscribe(f"{topic}/+", 1, identifier=268_435_455)
    client.publish(f"{topic}/b", b"", 1)
    assert client.receive().properties["subscription_identifier"] == [268_435_455]
    client.publish(f"{topic}/a", b"", 1)
    first = client.receive().properties["subscription_identifier"]
    if len(first) == 1:
        # the specification allows one copy for each subscription, and one with both identifiers
        first = first + client.receive().properties["subscription_identifier"]
    assert sorted(first) == [7, 268_435_455]


def test_a_group_shares_the_work(connect_5: Connect, topic: str) -> None:
    members = [connect_5("a"), connect_5("b")]
    outsider = connect_5("outsider")
    outsider.subscribe(topic, 1)
    for member in members:
        assert member.subscribe(f"$share/group/{topic}", 1) == 1
    payloads = [b"%d" % number for number in range(10)]
    for payload in payloads:
        outsider.publish(topic, payload, 1)
    assert [message.payload for message in outsider.take(10)] == payloads
    found: list[bytes] = []
    shares: list[int] = []
    for member in members:
        member.subscribe(f"{topic}/{len(shares)}", 1)
        outsider.publish(f"{topic}/{len(shares)}", b"end", 1)
        mine = []
        while (payload := member.receive().payload) != b"end":
            mine.append(payload)
        shares.append(len(mine))
        found += mine
    assert sorted(found, key=int) == payloads
    assert all(shares), f"one member did all the work: {shares}"


def test_a_group_goes_on_without_a_lost_member(connect_5: Connect, topic: str) -> None:
    stays, leaves, sender = connect_5("stays"), connect_5("leaves"), connect_5("sender")
    for member in (stays, leaves):
        member.subscribe(f"$share/group/{topic}", 1)
    leaves.close()
    for number in range(6):
        sender.publish(topic, b"%d" % number, 1)
    assert [message.payload for message in stays.take(6)] == [b"%d" % number for number in range(6)]


def test_the_broker_tells_about_itself(connect: Connect) -> None:
    client = connect("curious")
    client.subscribe("$SYS/broker/version")
    message = client.receive()
    assert message.topic == "$SYS/broker/version" and message.payload.startswith(b"tieline version ")
    assert message.retain


def test_leading_wildcards_do_not_see_what_the_broker_tells(connect: Connect, topic: str) -> None:
    client = connect("incurious")
    client.subscribe("#", 1)
    client.subscribe("+/broker/version", 1)
    client.publish(topic, b"fence", 1)
    while (message := client.receive()).topic != topic:
        # "#" also matches what other tests have retained
        assert not message.topic.startswith("$")
