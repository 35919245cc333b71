"""Real clients for the demonstration: paho underneath, with everything they receive remembered."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Literal  # Any: paho's callbacks have no types

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from tieline.cli.trouble import Trouble

#: Longer than any scene needs on a slow machine; a scene that waits this long has failed.
PATIENCE_S = 10.0
#: How long a broker keeps the session of a client that means to come back.
_KEPT_S = 3_600


class Actor:
    """One client, connected from the start, that remembers what it receives."""

    def __init__(  # what a client says when it connects, and what it does then
        self,
        name: str,
        *,
        port: int,
        version: Literal[4, 5] = 5,
        transport: Literal["tcp", "websockets"] = "tcp",
        will: tuple[str, str] | None = None,
        is_clean: bool = True,
        returns: bool = False,
        heard: Callable[[paho.MQTTMessage], None] | None = None,
    ) -> None:
        """``heard`` gets each message in place of the memory, in a thread of its own.

        One that ``returns`` connects again when its broker is gone, and its session is kept meanwhile.
        """
        self.name = name
        self._heard = heard
        self.received: list[paho.MQTTMessage] = []
        self._changed = threading.Condition()
        self._is_connected = False
        self._subscribed = 0
        v5 = version == 5
        self.client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id=name,
            clean_session=None if v5 else is_clean,
            protocol=MQTTProtocolVersion.MQTTv5 if v5 else MQTTProtocolVersion.MQTTv311,
            transport=transport,
            reconnect_on_failure=returns,
        )
        self.client.reconnect_delay_set(min_delay=1, max_delay=1)
        # paho sends at most 20 unacknowledged messages unless told; the demonstration is not about paho.
        self.client.max_inflight_messages_set(200)
        if will is not None:
            self.client.will_set(*will, qos=1)
        self.client.on_connect = self._on_connect
        self.client.on_subscribe = self._on_subscribe
        self.client.on_message = self._on_message
        kept = Properties(PacketTypes.CONNECT)
        kept.SessionExpiryInterval = 0 if is_clean else _KEPT_S
        self.client.connect(
            "127.0.0.1",
            port,
            clean_start=is_clean if v5 else paho.MQTT_CLEAN_START_FIRST_ONLY,
            properties=kept if v5 else None,
        )
        self.client.loop_start()
        self._wait(lambda: self._is_connected, f"{name} could not connect")

    def subscribe(self, topic: str, qos: int = 0) -> None:
        """Subscribe and wait for the broker's confirmation."""
        before = self._subscribed
        v5 = self.client.protocol == MQTTProtocolVersion.MQTTv5
        self.client.subscribe(topic, options=SubscribeOptions(qos)) if v5 else self.client.subscribe(topic, qos)
        self._wait(lambda: self._subscribed > before, f"{self.name} could not subscribe to {topic}")

    def publish(
        self, topic: str, payload: str, qos: int = 0, *, retain: bool = False, properties: Properties | None = None
    ) -> None:
        """Hand a message to paho; ``settle`` waits for its acknowledgement."""
        self._last = self.client.publish(topic, payload, qos, retain=retain, properties=properties)

    def settle(self) -> None:
        """Wait until the last message published is out and, for QoS 1 and 2, acknowledged."""
        self._last.wait_for_publish(PATIENCE_S)

    def wait_for(self, count: int) -> list[paho.MQTTMessage]:
        """The messages received, once there are ``count``; fewer if that takes too long."""
        with self._changed:
            self._changed.wait_for(lambda: len(self.received) >= count, PATIENCE_S)
            return list(self.received)

    def linger(self, seconds: float = 0.1) -> list[paho.MQTTMessage]:
        """Everything received, after a moment in which a message too many could still arrive."""
        time.sleep(seconds)
        return list(self.received)

    def forget(self) -> None:
        """Begin a new scene."""
        self.received.clear()

    def leave(self) -> None:
        """Disconnect as one should."""
        self.client.disconnect()
        self.client.loop_stop()

    def die(self) -> None:
        """Vanish: the connection ends without a DISCONNECT."""
        connection = self.client.socket()
        if isinstance(connection, socket.socket):
            connection.shutdown(socket.SHUT_RDWR)
        self.client.loop_stop()

    def _wait(self, predicate: Any, complaint: str) -> None:
        with self._changed:
            if not self._changed.wait_for(predicate, PATIENCE_S):
                raise Trouble(f"{complaint} within {PATIENCE_S:g} seconds.")

    def _on_connect(self, _client: Any, _userdata: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        with self._changed:
            self._is_connected = not reason.is_failure
            self._changed.notify_all()

    def _on_subscribe(self, _client: Any, _userdata: Any, _number: int, _reasons: Any, _properties: Any) -> None:
        with self._changed:
            self._subscribed += 1
            self._changed.notify_all()

    def _on_message(self, _client: Any, _userdata: Any, message: paho.MQTTMessage) -> None:
        if self._heard is not None:
            self._heard(message)
            return
        with self._changed:
            self.received.append(message)
            self._changed.notify_all()
