"""A broker whose point of common coupling is a declared event type, for tests of content subscriptions."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
import pytest

from tests.kits.world import Client, World, payloads
from tieline.conf.schema import Attribute, Content, Event, Mqtt, Settings
from tieline.wire.packets import Publish

#: The declared topics, and one of them; every other topic is untyped.
FILTER: Final = "microgrid/+/pcc"
PCC: Final = "microgrid/7/pcc"

EVENT: Final = Event(
    topic=FILTER,
    attributes=(
        Attribute("voltage", bounds=(0.0, 400.0), unit="V"),
        Attribute("phases", "integer"),
        Attribute("mode", "category", values=("grid", "island")),
        Attribute("closed", "boolean"),
        Attribute("at", "timestamp"),
    ),
)


def content_settings(**content: Any) -> Settings:
    """No $SYS traffic; ``content`` are settings of that table."""
    return Settings(mqtt=Mqtt(sys_interval_s=0), content=Content(**content), event={"pcc": EVENT})


def content_world(*, content: dict[str, Any] | None = None, **options: Any) -> World:
    """A world with the event type; options as for ``World``."""
    return World(content_settings(**(content or {})), **options)


def said(**values: Any) -> bytes:
    """A payload, as short as JSON can be."""
    return json.dumps(values, separators=(",", ":")).encode()


def volts(*values: float) -> list[bytes]:
    """A payload for each voltage."""
    return [said(voltage=value) for value in values]


def with_mqtt(settings: Settings, **options: Any) -> Settings:
    """The same settings with some of MQTT's changed."""
    return msgspec.structs.replace(settings, mqtt=msgspec.structs.replace(settings.mqtt, **options))


#: The ways a PUBLISH can take: remembered route and batches, one byte at a time, everything looked up anew.
WAYS: list[dict[str, Any]] = [{}, {"split": True}, {"route_cache": 0}]
ways = pytest.mark.parametrize("way", WAYS, ids=["fast", "split", "general"])
versions = pytest.mark.parametrize("version", [4, 5])


def send(client: Client, *contents: bytes, topic: str = PCC, qos: int = 0) -> None:
    """All in one go: the first of a new topic is looked up, the others follow on the fast path."""
    packets = [
        Publish(topic=topic, payload=payload, qos=qos, packet_id=client.free_id() if qos else 0) for payload in contents
    ]
    client.send(*packets)


def got(client: Client) -> list[bytes]:
    """What came since the last look; messages are acknowledged."""
    messages = client.messages()
    for message in messages:
        client.acknowledge(message)
    return payloads(messages)
