"""Sessions, wills and the ends of connections, as other people's clients live through them."""

from __future__ import annotations

import pytest

from tests.interop.clients.client import LastWill
from tests.interop.conftest import Connect
from tests.kits.patience import until
from tieline.pytest_plugin import BrokerThread


def _is_away(broker: BrokerThread, client_id: str) -> bool:
    return broker.ask(lambda core: core.sessions[client_id].connection is None)


@pytest.mark.parametrize("ending", ["close", "drop"])
def test_what_was_missed_is_waiting(connect: Connect, topic: str, broker: BrokerThread, ending: str) -> None:
    durable = {"clean": False, "expiry_s": 600}
    first = connect("durable", **durable)
    assert not first.session_present
    first.subscribe(topic, 2)
    getattr(first, ending)()
    until(lambda: _is_away(broker, first.options.client_id), "the broker has noticed")
    sender = connect("sender")
    for number in range(6):
        sender.publish(topic, b"%d" % number, 1 + number % 2)
    second = connect("durable", **durable)
    assert second.session_present in {True, None}
    found = second.take(6)
    for qos in (1, 2):
        expected = [b"%d" % number for number in range(6) if 1 + number % 2 == qos]
        assert [message.payload for message in found if message.qos == qos] == expected
    # and it still subscribes
    sender.publish(topic, b"live", 1)
    second.expect(topic, b"live")
    second.close()
    connect("durable", clean=True).close()


def test_a_clean_start_forgets(connect: Connect, topic: str, broker: BrokerThread) -> None:
    first = connect("forgetful", clean=False, expiry_s=600)
    first.subscribe(topic, 1)
    first.close()
    until(lambda: _is_away(broker, first.options.client_id), "the broker has noticed")
    connect("sender").publish(topic, b"missed", 1)
    second = connect("forgetful", clean=True)
    assert not second.session_present
    second.subscribe(f"{topic}/fence", 1)
    second.publish(topic, b"not subscribed", 1)
    second.publish(f"{topic}/fence", b"", 1)
    second.expect(f"{topic}/fence", b"")


def test_a_session_without_expiry_ends_with_its_connection(connect_5: Connect, broker: BrokerThread) -> None:
    client = connect_5("short", clean=False, expiry_s=0)
    client.close()
    until(lambda: broker.ask(lambda core: client.options.client_id not in core.sessions), "it is forgotten")


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_the_will_of_a_lost_client(connect: Connect, topic: str, qos: int) -> None:
    watcher = connect("watcher")
    watcher.subscribe(topic, 2)
    connect("lost", will=LastWill(topic=topic, payload=b"lost", qos=qos)).drop()
    watcher.expect(topic, b"lost", qos=qos, retain=False)


def test_the_will_over_each_listener(connect_over: Connect, topic: str) -> None:
    watcher = connect_over("watcher")
    watcher.subscribe(topic, 1)
    connect_over("lost", will=LastWill(topic=topic, payload=b"lost", qos=1)).drop()
    watcher.expect(topic, b"lost")


def test_a_retained_will(connect: Connect, topic: str) -> None:
    watcher = connect("watcher")
    watcher.subscribe(topic, 1)
    connect("lost", will=LastWill(topic=topic, payload=b"lost", qos=1, retain=True)).drop()
    watcher.expect(topic, b"lost", retain=False)
    late = connect("late")
    late.subscribe(topic, 1)
    late.expect(topic, b"lost", retain=True)


def test_no_will_after_a_goodbye(connect: Connect, topic: str) -> None:
    watcher = connect("watcher")
    watcher.subscribe(topic, 1)
    connect("polite", will=LastWill(topic=topic, payload=b"never", qos=1)).close()
    watcher.publish(topic, b"fence", 1)
    watcher.expect(topic, b"fence")


def test_a_delayed_will_is_forgotten_when_the_client_is_back(connect_5: Connect, topic: str) -> None:
    watcher = connect_5("watcher")
    watcher.subscribe(topic, 1)
    options = {"clean": False, "expiry_s": 600}
    connect_5("back", will=LastWill(topic=topic, payload=b"never", qos=1, delay_s=600), **options).drop()
    connect_5("back", **options)
    watcher.publish(topic, b"fence", 1)
    watcher.expect(topic, b"fence")


def test_a_delayed_will_comes_when_the_session_ends(connect_5: Connect, topic: str) -> None:
    watcher = connect_5("watcher")
    watcher.subscribe(topic, 1)
    will = LastWill(topic=topic, payload=b"ended", qos=1, delay_s=600)
    connect_5("gone", clean=False, expiry_s=600, will=will).drop()
    connect_5("gone", clean=True)  # the session ends here, 3.1.2.5
    watcher.expect(topic, b"ended")


def test_the_newer_connection_takes_over(connect: Connect, topic: str, broker: BrokerThread) -> None:
    old = connect("same", clean=False, expiry_s=600)
    old.subscribe(topic, 1)
    new = connect("same", clean=False, expiry_s=600)
    assert new.session_present in {True, None}
    new.publish(topic, b"here", 1)
    new.expect(topic, b"here")
    assert old.inbox.empty()
    until(
        lambda: broker.ask(
            lambda core: [one for one in core.connections if one.client_id == old.options.client_id and not one.closing]
        ),
        "one connection is left",
    )
