"""What the broker refuses, as the refused client sees it."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from tests.interop.clients.client import LastWill, Options, Where
from tests.interop.clients.with_mqttjs import MqttjsClient, MqttjsError, Node
from tests.interop.clients.with_paho import PahoClient
from tests.interop.conftest import Connect
from tests.kits.certificates import Certificates
from tests.kits.patience import PATIENCE_S
from tieline.conf.urls import parse
from tieline.pytest_plugin import BrokerThread
from tieline.wire.reason import Reason


@pytest.fixture
def where(urls: dict[str, str], certificates: Certificates) -> Where:
    address = parse(urls["tcp"])
    return Where(scheme="tcp", host=address.host, port=address.port, authority=certificates.authority)


def test_paho_is_told_why_it_is_disconnected(where: Where, topic: str) -> None:
    client = PahoClient(where, Options(client_id="too-large"))
    client._client.publish(topic, bytes(2_000_000), 0)
    assert client.ended.get(timeout=PATIENCE_S) == Reason.PACKET_TOO_LARGE
    client.close()


def test_paho_learns_the_limits_at_the_beginning(where: Where, broker: BrokerThread) -> None:
    client = PahoClient(where, Options(client_id=""))
    limits = broker.ask(lambda core: core.settings.limits)
    assert client.connack["receive_maximum"] == limits.receive_maximum
    assert client.connack["maximum_packet_size"] == limits.packet_bytes
    assert client.connack["topic_alias_maximum"] == limits.topic_alias_maximum
    assigned = client.connack["assigned_client_identifier"]
    assert broker.ask(lambda core: assigned in core.sessions)
    client.close()


def test_paho_without_a_name_is_named_by_the_broker(where: Where, broker: BrokerThread) -> None:
    before = broker.ask(lambda core: set(core.sessions))
    client = PahoClient(where, Options(client_id="", version=4))
    assert broker.ask(lambda core: len(set(core.sessions) - before)) == 1
    client.close()


def test_a_taken_over_paho_is_told(where: Where) -> None:
    old = PahoClient(where, Options(client_id="taken"))
    new = PahoClient(where, Options(client_id="taken"))
    assert old.ended.get(timeout=PATIENCE_S) == Reason.SESSION_TAKEN_OVER
    old.close()
    new.close()


def test_a_will_to_the_brokers_own_topics_is_refused(where: Where) -> None:
    client = PahoClient(where, Options(client_id="forger", will=LastWill(topic="$SYS/broker/version", payload=b"x")))
    assert client.code >= Reason.UNSPECIFIED_ERROR
    client.close()


def test_nobody_publishes_to_the_brokers_own_topics(connect: Connect, broker: BrokerThread) -> None:
    client = connect("forger")
    client.publish("$SYS/broker/version", b"forged", retain=True)
    watcher = connect("watcher")
    watcher.subscribe("$SYS/broker/version")
    assert watcher.receive().payload.startswith(b"tieline version ")


class _Peculiar(MqttjsClient):
    """mqtt.js with options that nobody should use."""

    peculiarities: ClassVar[dict[str, Any]]

    def _options(self) -> dict[str, Any]:
        return super()._options() | self.peculiarities


class _Scram(_Peculiar):
    peculiarities: ClassVar[dict[str, Any]] = {"properties": {"authenticationMethod": "SCRAM-SHA-256"}}


class _Ancient(_Peculiar):
    peculiarities: ClassVar[dict[str, Any]] = {"protocolId": "MQIsdp", "protocolVersion": 3}


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (_Scram, Reason.BAD_AUTHENTICATION_METHOD),
        (_Ancient, 1),  # "unacceptable protocol version"; MQTT 3.1 knows no other words
    ],
)
def test_mqttjs_is_told_why_it_is_refused(
    where: Where, node: Node, broker: BrokerThread, kind: type[_Peculiar], code: int
) -> None:
    with pytest.raises(MqttjsError) as caught:
        kind(where, Options(client_id="peculiar"), node)
    assert caught.value.code == code
    assert broker.ask(lambda core: "peculiar" not in core.sessions)
