"""What the clock decides, on a live broker: keep-alive, will delay, session expiry and message expiry.

The exact moments are tested without a clock, in tests/clause; here it is shown that the timers really run.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest

from tests.kits.dial import Dial, dial, hang_up
from tests.kits.patience import PATIENCE_S, until
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Connack, Connect, Disconnect, Pingreq, Pingresp, Publish, Will
from tieline.wire.reason import Reason


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """A plain listener of the embedded broker, or of the one that a parameter names."""
    urls: dict[str, str] = request.getfixturevalue(getattr(request, "param", "urls"))
    return urls["tcp"]


@pytest.fixture
def watcher(url: str, topic: str) -> Iterator[Dial]:
    with dial(url, f"{topic}/watcher") as client:
        client.subscribe(topic, 1)
        yield client


@pytest.mark.parametrize(("version", "url"), [(4, "urls"), (5, "served_urls")], indirect=["url"])
def test_silence_ends_the_connection_and_publishes_the_will(url: str, topic: str, watcher: Dial, version: int) -> None:
    began = monotonic()
    will = Will(topic=topic, payload=b"silent")
    with dial(url, f"{topic}/silent", version=version, keep_alive=1, will=will) as silent:
        if version == 5:
            silent.expect(Disconnect, reason=Reason.KEEP_ALIVE_TIMEOUT)
        silent.expect_end()
        assert monotonic() - began > 1.4
    watcher.expect(Publish, payload=b"silent")


def test_a_ping_is_a_sign_of_life(url: str, topic: str) -> None:
    with dial(url, f"{topic}/alive", keep_alive=2) as alive:
        began = monotonic()
        while monotonic() - began < 3.5:  # the broker waits for half as long again, which is 3 s
            alive.send(Pingreq())
            alive.expect(Pingresp)
            alive.sock.settimeout(0.5)
            with pytest.raises(TimeoutError):
                alive.receive()


@pytest.mark.parametrize("url", ["served_urls"], indirect=True)
def test_a_will_waits_for_its_delay(url: str, topic: str, watcher: Dial) -> None:
    will = Will(topic=topic, payload=b"late", properties={"will_delay_interval": 1})
    lost = dial(url, f"{topic}/lost", will=will, properties={"session_expiry_interval": 60})
    began = monotonic()
    hang_up(lost.sock)
    watcher.expect(Publish, payload=b"late")
    assert monotonic() - began > 0.9


def test_a_session_ends_when_it_has_expired(broker: BrokerThread, url: str, topic: str, watcher: Dial) -> None:
    name = f"{topic}/expiring"
    will = Will(topic=topic, payload=b"expired", properties={"will_delay_interval": 60})
    began = monotonic()
    hang_up(dial(url, name, will=will, properties={"session_expiry_interval": 1}).sock)
    watcher.expect(Publish, payload=b"expired")
    assert monotonic() - began > 0.9
    assert broker.ask(lambda core: name not in core.sessions)


def test_a_message_that_has_expired_is_not_delivered(broker: BrokerThread, url: str, topic: str) -> None:
    name = f"{topic}/away"
    durable: dict[str, Any] = {"clean_start": False, "properties": {"session_expiry_interval": 60}}
    with dial(url, name, **durable) as client:
        client.subscribe(topic, 1)
    until(lambda: broker.ask(lambda core: core.sessions[name].connection is None), "the broker has noticed")
    before = monotonic()
    with dial(url, f"{topic}/sender") as sender:
        for seconds in (1, 3_600):
            sender.send(
                Publish(
                    topic=topic,
                    payload=b"%d" % seconds,
                    qos=1,
                    packet_id=seconds,
                    properties={"message_expiry_interval": seconds},
                )
            )
            sender.receive()
        began = monotonic()
        # the wait is the test: nothing else happens when a message expires
        until(lambda: monotonic() - began > 1.1, "the first one has expired")
    with dial(url, name, **durable) as client:
        message = client.expect(Publish, payload=b"3600")
        assert 3_600 - (monotonic() - before) - 1 <= message.properties["message_expiry_interval"] < 3_600


def test_the_newer_connection_takes_over(url: str, topic: str, watcher: Dial) -> None:
    old = dial(url, f"{topic}/same", will=Will(topic=topic, payload=b"taken over"))
    with old, dial(url, f"{topic}/same") as new:
        old.expect(Disconnect, reason=Reason.SESSION_TAKEN_OVER)
        old.expect_end()
        new.send(Pingreq())
        new.expect(Pingresp)
    watcher.expect(Publish, payload=b"taken over")


def test_a_client_that_takes_itself_over_again_and_again(broker: BrokerThread, url: str, topic: str) -> None:
    clients = []
    for _ in range(50):
        client = Dial(url)
        client.send(Connect(version=5, client_id=f"{topic}/many"))
        clients.append(client)
    for client in clients:
        client.expect(Connack, reason=Reason.SUCCESS)
    *old, last = clients
    ended = 0
    for client in clients:
        client.sock.settimeout(0.2 if client is last else PATIENCE_S)
        try:
            packet = client.receive()
        except TimeoutError:
            continue
        assert isinstance(packet, Disconnect) and packet.reason is Reason.SESSION_TAKEN_OVER
        ended += 1
    assert ended == len(old)
    for client in clients:
        client.close()
