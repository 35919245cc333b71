"""A broker, and a subscriber that remembers what it got."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from tests.kits.patience import PATIENCE_S
from tieline.pytest_plugin import BrokerThread

Collect = Callable[..., "Collector"]


class Collector:
    """Subscribes to everything."""

    def __init__(self, port: int, topics: str = "#") -> None:
        self.messages: list[mqtt.MQTTMessage] = []
        self._news = threading.Condition()
        self._subscribed = threading.Event()
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        self.client.on_message = self._on_message
        self.client.on_subscribe = lambda *_: self._subscribed.set()
        self.client.connect("127.0.0.1", port)
        self.client.subscribe(topics, qos=1)
        self.client.loop_start()
        assert self._subscribed.wait(PATIENCE_S)

    def wait(self, count: int) -> list[mqtt.MQTTMessage]:
        """All messages, when there are so many."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.messages) >= count, PATIENCE_S), len(self.messages)
            return list(self.messages)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def _on_message(self, _client: Any, _data: Any, message: mqtt.MQTTMessage) -> None:
        with self._news:
            self.messages.append(message)
            self._news.notify_all()


def properties(message: mqtt.MQTTMessage) -> dict[str, str]:
    """The user properties of a message."""
    pairs: list[tuple[str, str]] = getattr(message.properties, "UserProperty", [])
    return dict(pairs)


@pytest.fixture(name="broker")
def _broker() -> Iterator[BrokerThread]:
    with BrokerThread() as broker:
        yield broker


@pytest.fixture(name="collect")
def _collect() -> Iterator[Collect]:
    collectors: list[Collector] = []

    def collect(port: int, topics: str = "#") -> Collector:
        collectors.append(Collector(port, topics))
        return collectors[-1]

    yield collect
    for collector in collectors:
        collector.close()
