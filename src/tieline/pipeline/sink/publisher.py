"""Publishes messages over one connection and returns when the broker has acknowledged every one of them.

At most a window of messages is under way at a time: the broker's Receive Maximum, or less.  A connection that breaks is
made again, and paho sends what was not acknowledged once more, in its order.  When nothing moves for too long, or the
broker refuses, that becomes a sentence.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, NamedTuple, Self

from paho.mqtt import client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from tieline.pipeline.broker import BrokerAddress, BrokerError, leave, why
from tieline.pipeline.sink.rows import Message

#: Messages under way at a time, where the broker does not ask for fewer.
WINDOW: Final = 1_000
#: Without Receive Maximum in its CONNACK, a broker takes this many.
_NO_MAXIMUM: Final = 65_535
_SESSION_TAKEN_OVER: Final = 0x8E
_PAUSE_S: Final = 0.2


class Outgoing(NamedTuple):
    """A message and the user property that names it."""

    message: Message
    key: str
    value: str


class Publisher:
    """A connection to publish over: ``with Publisher(broker, "id") as publisher: publisher.publish(messages)``."""

    def __init__(self, broker: BrokerAddress, client_id: str, *, patience_s: float, window: int = WINDOW) -> None:
        self._broker = broker
        self._patience_s = patience_s
        self._most = window
        #: Guards everything below; notified by every event.
        self._news = threading.Condition()
        self._window = 0
        self._under_way = 0
        self._failure: str | None = None
        self._why = "it does not answer"
        #: When something last went well.
        self._moved = time.monotonic()
        self._client = broker.client(client_id)
        self._client.max_inflight_messages_set(window)
        self._client.reconnect_delay_set(1, 5)
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.on_publish = self._on_publish

    def __enter__(self) -> Self:
        until = time.monotonic() + self._patience_s
        while True:
            try:
                self._client.connect(self._broker.host, self._broker.port)
                break
            except (OSError, ValueError) as problem:
                if time.monotonic() + _PAUSE_S > until:
                    leave(self._client)
                    raise BrokerError(f"{self._broker.url} cannot be reached: {why(problem)}") from None
                time.sleep(_PAUSE_S)
        self._client.loop_start()
        try:
            self._wait(lambda: self._window > 0)
        except BaseException:
            leave(self._client)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        leave(self._client)

    def publish(self, outgoing: Iterable[Outgoing]) -> int:
        """Publish in this order, and wait for the last acknowledgement; how many there were."""
        count = 0
        for each in outgoing:
            self._wait(lambda: self._under_way < self._window)
            with self._news:
                self._under_way += 1
            self._put(each)
            count += 1
        self._wait(lambda: self._under_way == 0)
        return count

    def _put(self, each: Outgoing) -> None:
        message = each.message
        put = self._client.publish(message.topic, message.payload, message.qos, message.retain, _properties(each))
        if put.rc == paho.MQTT_ERR_NO_CONN and message.qos == 0:
            # paho keeps the others for the next connection; this one is lost, as QoS 0 may be
            with self._news:
                self._under_way -= 1

    def _wait(self, is_so: Callable[[], bool]) -> None:
        """Until something is so; gives up when nothing has gone well for too long."""
        with self._news:
            self._moved = max(self._moved, time.monotonic()) if self._under_way == 0 else self._moved
            while not is_so():
                left = self._moved + self._patience_s - time.monotonic()
                if self._failure is None and left <= 0:
                    self._failure = (
                        f"{self._broker.url} acknowledged nothing for {self._patience_s:g} s ({self._why}), and "
                        f"{self._under_way} messages are under way"
                    )
                if self._failure is not None:
                    break
                self._news.wait(left)
            if self._failure is not None:
                raise BrokerError(self._failure)

    def _on_connect(
        self, _client: paho.Client, _data: object, _flags: object, reason: ReasonCode, properties: Properties | None
    ) -> None:
        with self._news:
            if reason.is_failure:
                self._failure = f"{self._broker.url} refuses the connection: {why(reason)}"
            else:
                self._window = min(self._most, getattr(properties, "ReceiveMaximum", _NO_MAXIMUM))
                self._why = "it does not answer"
            self._news.notify_all()

    def _on_disconnect(
        self, _client: paho.Client, _data: object, _flags: object, reason: ReasonCode, _properties: Properties | None
    ) -> None:
        with self._news:
            self._why = f"the connection is lost: {why(reason)}"
            if reason.value == _SESSION_TAKEN_OVER:
                # another run of the same query has begun; connecting again would take the session from it in turn
                self._failure = f"{self._broker.url}: another process publishes under the same name"
            self._news.notify_all()

    def _on_publish(
        self, _client: paho.Client, _data: object, _mid: int, reason: ReasonCode, _properties: Properties | None
    ) -> None:
        with self._news:
            self._under_way -= 1
            self._moved = time.monotonic()
            if reason.is_failure:
                self._failure = f"{self._broker.url} refuses a message: {why(reason)}"
            self._news.notify_all()


def _properties(outgoing: Outgoing) -> Properties:
    properties = Properties(PacketTypes.PUBLISH)
    pairs = [(outgoing.key, outgoing.value)]
    if outgoing.message.level >= 0:
        pairs.append(("priority", str(outgoing.message.level)))
    properties.UserProperty = pairs
    return properties
