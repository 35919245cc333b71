"""A world over real MQTT: several clients, paced by the world's own time, and an account of what was acknowledged.

One client for each feeder's meters, one for protection, one for the control room: an urgent message behind bulk on the
same connection would wait for it, whatever a broker does.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol  # Any: what paho's callbacks are given differs by version
from urllib.parse import unquote, urlsplit

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tieline.sim.microgrid.extra import Unbuildable
from tieline.sim.microgrid.messages import LEVELS, Message, MessageKind
from tieline.sim.microgrid.rows import messages
from tieline.sim.microgrid.telling import CONTROL, PROTECTION
from tieline.sim.microgrid.world import World

#: Messages of one client on their way; beyond, the world waits for the broker.
_WINDOW: Final = 1_000
#: How long a connection, or the last acknowledgements, may take.
_PATIENCE_S: Final = 15.0
#: A wait shorter than this costs more than it brings.
_SHORTEST_S: Final = 0.002


class Unpublished(Exception):
    """The broker cannot be reached, or does not take what it is sent; the text is a sentence for the user."""


class Witness(Protocol):
    """Somebody who wants to know what was published; called from several threads."""

    def sent(self, message: Message, client_id: str, seq: str | None) -> None:
        """The message has been handed to its client."""

    def acknowledged(self, message: Message, client_id: str, seq: str | None) -> None:
        """The broker has taken responsibility for a message with QoS 1 or 2."""


@dataclass(slots=True)
class Tally:
    """How many messages of each kind were published, acknowledged and refused."""

    published: Counter[MessageKind] = field(default_factory=Counter)
    acknowledged: Counter[MessageKind] = field(default_factory=Counter)
    refused: Counter[MessageKind] = field(default_factory=Counter)
    #: The furthest that publishing fell behind the time of the world, in seconds of real time.
    late_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Target:
    """The broker to publish to, and as whom."""

    host: str
    port: int
    user: str | None = None
    password: str | None = None


def target_of(url: str) -> Target:
    """Read an address of the form ``mqtt://[user:password@]host[:port]``."""
    parts = urlsplit(url)
    try:
        port = parts.port or 1883
    except ValueError:
        raise Unbuildable(f'"{url}" is refused: its port is no number.') from None
    if parts.scheme not in ("mqtt", "tcp") or not parts.hostname or parts.path not in ("", "/"):
        raise Unbuildable(f'"{url}" is refused: write it as mqtt://host:1883 or mqtt://user:password@host:1883.')
    user, password = (None if word is None else unquote(word) for word in (parts.username, parts.password))
    return Target(parts.hostname, port, user, password)


class Publisher:
    """Publishes one world; ``stop`` may be called from anywhere."""

    def __init__(  # a world, where it goes, and how a run differs from the usual one
        self,
        world: World,
        url: str,
        *,
        speed: float = 1.0,
        readings_qos: Literal[0, 1, 2] = 0,
        elsewhere: Mapping[str, str] | None = None,
        is_apart: bool = False,
        run: str | None = None,
        witness: Witness | None = None,
    ) -> None:
        """``elsewhere`` has, by their names, the addresses of those clients that connect to another broker.

        ``is_apart`` gives each meter a client of its own, in the place of one for each feeder.
        """
        self.tally = Tally()
        #: The time of the world, in seconds since 1970: what was sent last.
        self.now_s = world.start_s
        self._world = world
        self._target = target_of(url)
        self._elsewhere = {name: target_of(other) for name, other in (elsewhere or {}).items()}
        if speed <= 0:
            raise Unbuildable(f"a speed of {speed:g} is refused: it takes a number above zero.")
        self._speed = speed
        self._readings_qos = readings_qos
        #: Of each meter that is a client of its own, the client of its feeder, by node.
        self._own = dict(zip(world.nodes, world.meters, strict=True)) if is_apart else {}
        self._run = f"{world.seed}-{time.time_ns():x}" if run is None else run
        self._witness = witness
        self._stopped = threading.Event()
        self._clients: dict[str, _Client] = {}

    def stop(self) -> None:
        """End soon; what has been sent is still waited for."""
        self._stopped.set()

    def publish(self, duration_s: float | None = None) -> Tally:
        """Publish ``duration_s`` seconds of the world, or until stopped; returns when everything is acknowledged."""
        meters = self._own or {name: name for name in self._world.meters}
        clients = {**meters, PROTECTION: PROTECTION, CONTROL: CONTROL}
        batches = messages(self._world, duration_s)
        batch = next(batches, [])  # made before the clock runs
        try:
            for name, known_as in clients.items():
                target = self._elsewhere.get(known_as, self._target)
                self._clients[name] = _Client(f"{self._world.grid}-{name}", target, self.tally, self._witness)
            begun = time.monotonic()
            while batch and not self._stopped.is_set():
                self._play(batch, begun)
                batch = next(batches, [])
            for client in self._clients.values():
                client.settle()
        finally:
            for client in self._clients.values():
                client.leave()
        return self.tally

    def _play(self, batch: list[Message], begun: float) -> None:
        for message in batch:
            ahead_s = begun + (message.sent_s - self._world.start_s) / self._speed - time.monotonic()
            if ahead_s > _SHORTEST_S and self._stopped.wait(ahead_s):
                return
            if ahead_s < -self.tally.late_s:
                self.tally.late_s = -ahead_s
                if self._stopped.is_set():
                    return
            qos = 1 if LEVELS[message.kind] else self._readings_qos
            self._clients[self._client_of(message)].publish(message, qos, self._run)
            self.now_s = message.sent_s

    def _client_of(self, message: Message) -> str:
        """Who speaks: a meter that is a client of its own has the name of its node, which is a level of its topics."""
        node = message.topic.split("/")[2]
        return node if self._own.get(node) == message.client else message.client


class _Client:
    """One connection, and the messages on their way over it."""

    def __init__(self, client_id: str, target: Target, tally: Tally, witness: Witness | None) -> None:
        self.client_id = client_id
        self._tally = tally
        self._witness = witness
        self._number = 0
        self._changed = threading.Condition()
        #: By paho's number, what has not been written (QoS 0) or acknowledged (QoS 1) yet.
        self._under_way: dict[int, tuple[Message, str | None]] = {}
        #: By the same number, verdicts that were faster than the call that asked for them.
        self._early: dict[int, bool] = {}
        self._failure: str | None = None
        self._is_connected = False
        self._paho = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id=client_id,
            protocol=MQTTProtocolVersion.MQTTv5,
            reconnect_on_failure=False,
        )
        self._paho.max_inflight_messages_set(_WINDOW)
        if target.user is not None:
            self._paho.username_pw_set(target.user, target.password)
        self._paho.on_connect = self._on_connect
        self._paho.on_publish = self._on_publish
        self._paho.on_disconnect = self._on_disconnect
        try:
            self._paho.connect(target.host, target.port, clean_start=True)
        except OSError as problem:
            why = problem.strerror or str(problem)
            raise Unpublished(f"{target.host}:{target.port} cannot be reached: {why}.") from None
        self._paho.loop_start()
        try:
            self._wait(lambda: self._is_connected, f"{target.host}:{target.port} does not answer")
        except Unpublished:
            self.leave()
            raise

    def publish(self, message: Message, qos: int, run: str) -> None:
        """Hand a message over; waits while too many are on their way."""
        seq, properties = None, None
        if qos:
            self._number += 1
            seq = f"{run}/{self._number}"
            properties = Properties(PacketTypes.PUBLISH)
            properties.UserProperty = ("seq", seq)
        self._wait(lambda: len(self._under_way) < _WINDOW, f"{self.client_id} gets nothing through")
        if self._witness is not None:
            self._witness.sent(message, self.client_id, seq)
        self._tally.published[message.kind] += 1
        handed = self._paho.publish(message.topic, message.payload, qos, properties=properties)
        if handed.rc != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise Unpublished(f"{self.client_id} cannot publish: {paho.error_string(handed.rc)}")
        with self._changed:
            is_good = self._early.pop(handed.mid, None)
            if is_good is None:
                self._under_way[handed.mid] = (message, seq)
        if is_good is not None:
            self._settled(message, seq, is_good=is_good)

    def settle(self) -> None:
        """Wait until everything is acknowledged."""
        self._wait(lambda: not self._under_way, f"{self.client_id} misses acknowledgements")

    def leave(self) -> None:
        """Disconnect, and let the sockets be closed at once."""
        self._paho.disconnect()
        self._paho.loop_stop()
        # paho closes its sockets when it is deleted: at once, and not in a circle that is found some day
        self._paho.on_connect = self._paho.on_publish = self._paho.on_disconnect = None

    def _wait(self, is_so: Callable[[], bool], complaint: str) -> None:
        with self._changed:
            found = self._changed.wait_for(lambda: self._failure is not None or is_so(), _PATIENCE_S)
            if self._failure is not None:
                raise Unpublished(self._failure)
            if not found:
                raise Unpublished(f"{complaint} within {_PATIENCE_S:g} seconds.")

    def _settled(self, message: Message, seq: str | None, *, is_good: bool) -> None:
        if seq is None:
            return
        if not is_good:
            self._tally.refused[message.kind] += 1
            return
        self._tally.acknowledged[message.kind] += 1
        if self._witness is not None:
            self._witness.acknowledged(message, self.client_id, seq)

    def _on_connect(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        with self._changed:
            if reason.is_failure:
                self._failure = f"the broker refuses {self.client_id}: {str(reason).lower()}."
            else:
                self._is_connected = True
            self._changed.notify_all()

    def _on_publish(self, _client: Any, _data: Any, mid: int, reason: Any, _properties: Any) -> None:
        is_good = not reason.is_failure
        with self._changed:
            found = self._under_way.pop(mid, None)
            if found is None:
                self._early[mid] = is_good
            self._changed.notify_all()
        if found is not None:
            self._settled(*found, is_good=is_good)

    def _on_disconnect(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        with self._changed:
            if reason.is_failure:
                self._failure = f"{self.client_id} was disconnected: {str(reason).lower()}."
            self._changed.notify_all()
