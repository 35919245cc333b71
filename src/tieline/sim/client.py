"""A small MQTT client in virtual time, which does what the specification asks of one and is told the rest.

It keeps its half of every exchange across connections, acknowledges what it gets, stays within the broker's Receive
Maximum, pings, and notices when no answer comes.  When to connect, subscribe and publish is said by whoever has it:
from outside, by ``clock.at``, or in ``on_message`` and ``on_end``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from tieline.core.timers import Timer
from tieline.sim.clock import Clock
from tieline.sim.endpoint import Endpoint
from tieline.wire.encode import encode
from tieline.wire.frames import Framer
from tieline.wire.packets import (
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Subscribe,
    Subscription,
    Unsubscribe,
    Will,
)
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason

#: The largest packet there can be.
_NO_LIMIT = 268_435_460
_READ = 65_536
#: Packet ids of SUBSCRIBE and UNSUBSCRIBE begin here, out of the way of messages.
_REQUESTS = 60_000


@dataclass(frozen=True, slots=True)
class Heard:
    """A packet, and when it arrived."""

    at: float
    packet: Packet


class Client:
    """One client id, with at most one connection at a time."""

    def __init__(self, clock: Clock, client_id: str, *, version: int = 5) -> None:
        self.clock = clock
        self.client_id = client_id
        self.version = version
        #: Everything that has arrived, over all connections; messages that arrived again are in it again.
        self.heard: list[Heard] = []
        #: The messages among them, each QoS 2 message once.
        self.messages: list[tuple[float, Publish]] = []
        #: Called with every message, once for each of QoS 2.
        self.on_message: Callable[[Publish, float], None] | None = None
        #: Called when a connection has ended, whoever ended it.
        self.on_end: Callable[[float], None] | None = None
        #: False for a client that has stopped reading; see :meth:`stall`.
        self.is_reading = True
        self._end: Endpoint | None = None
        self._framer = Framer(_NO_LIMIT, version)
        self._connack: Connack | None = None
        #: Bytes that the endpoint has not taken yet.
        self._unsent = b""
        self._keep_alive_s = 0
        self._ping: Timer | None = None
        self._awaits_pong = False
        self._last_id = 0
        self._last_request = _REQUESTS
        #: Messages and requests that wait for CONNACK or for the broker's window.
        self._waiting: deque[Packet] = deque()
        #: Messages sent and not finished, in the order of sending; None once PUBREC has come.
        self._outbox: dict[int, Publish | None] = {}
        #: Packet ids of QoS 2 messages that were taken and not released yet.
        self._taken: set[int] = set()
        #: Topic aliases that the broker set on this connection.
        self._aliases: dict[int, str] = {}

    def __repr__(self) -> str:
        return f"<Client {self.client_id} {'connected' if self.is_connected else 'away'}, {len(self.heard)} heard>"

    # -- what it is told to do

    def connect(
        self,
        end: Endpoint,
        *,
        clean_start: bool = True,
        keep_alive: int = 0,
        pings: bool = True,
        will: Will | None = None,
        **properties: object,
    ) -> None:
        """Speak MQTT over a new connection; without ``pings`` it forgets its keep-alive."""
        if self._end is not None:
            raise RuntimeError(f"{self} has a connection: let it disconnect or drop first")
        self._end = end
        self._framer = Framer(_NO_LIMIT, self.version)
        self._aliases.clear()
        self._connack = None
        self._keep_alive_s = keep_alive if pings else 0
        self._send(
            Connect(
                version=self.version,
                client_id=self.client_id,
                clean_start=clean_start,
                keep_alive=keep_alive,
                will=will,
                properties=cast("Properties", properties),
            )
        )
        end.watch(self._ready)

    def subscribe(self, *filters: str, qos: int = 0, **properties: object) -> None:
        wishes = tuple(Subscription(filter=filter_, qos=qos) for filter_ in filters)
        packet_id = self._request_id()
        self._put(Subscribe(packet_id=packet_id, subscriptions=wishes, properties=cast("Properties", properties)))

    def unsubscribe(self, *filters: str) -> None:
        """Ask for them no longer."""
        self._put(Unsubscribe(packet_id=self._request_id(), filters=filters))

    def publish(
        self, topic: str, payload: bytes = b"", qos: int = 0, *, retain: bool = False, **properties: object
    ) -> None:
        """Publish as soon as the broker takes it; of a client that is away, QoS 0 is lost and the rest waits."""
        message = Publish(
            topic=topic, payload=payload, qos=qos, retain=retain, properties=cast("Properties", properties)
        )
        if qos or self._end is not None:
            self._put(message)

    def disconnect(self, reason: Reason = Reason.NORMAL_DISCONNECTION) -> None:
        """Say goodbye and hang up; what the connection has not taken by now is lost."""
        if self._end is not None:
            self._send(Disconnect(reason=reason))
            self._end.finish()
            self._hang_up()

    def drop(self) -> None:
        """Lose the connection, and with it what was on its way."""
        if self._end is not None:
            self._end.reset()
            self._hang_up()

    def stall(self) -> None:
        """Stop reading, so that what the broker sends fills the buffers of the link."""
        self.is_reading = False

    def resume(self) -> None:
        """Read again, beginning with all that waits."""
        self.is_reading = True
        self._ready()

    # -- what can be seen

    @property
    def is_connected(self) -> bool:
        """Whether the broker has let it in."""
        return self._connack is not None and self._connack.reason is Reason.SUCCESS

    @property
    def is_resumed(self) -> bool:
        """Whether the broker still had its session."""
        return self._connack is not None and self._connack.session_present

    @property
    def is_idle(self) -> bool:
        """Whether everything it was told to send has been sent and acknowledged."""
        return not (self._waiting or self._outbox or self._unsent)

    # -- sending

    def _request_id(self) -> int:
        self._last_request = self._last_request + 1 if self._last_request < 65_535 else _REQUESTS
        return self._last_request

    def _put(self, packet: Packet) -> None:
        self._waiting.append(packet)
        self._advance()

    def _advance(self) -> None:
        """Send what waits, in order, while the broker's window lasts."""
        if self._connack is None or not self.is_connected:
            return
        window = min(self._connack.properties.get("receive_maximum", 65_535), _REQUESTS - 1)
        while self._waiting:
            packet = self._waiting[0]
            if isinstance(packet, Publish) and packet.qos:
                if len(self._outbox) >= window:
                    return
                packet = replace(packet, packet_id=self._free_id())
                self._outbox[packet.packet_id] = packet
            self._waiting.popleft()
            self._send(packet)

    def _free_id(self) -> int:
        while True:
            self._last_id = self._last_id + 1 if self._last_id < _REQUESTS - 1 else 1
            if self._last_id not in self._outbox:
                return self._last_id

    def _send(self, packet: Packet) -> None:
        self._unsent += encode(packet, self.version)
        self._write()

    def _write(self) -> None:
        if self._end is not None and self._unsent:
            self._unsent = self._unsent[self._end.write(self._unsent) :]

    def _beat(self, now: float) -> None:
        """A keep-alive interval is over: show that we are alive, if the broker has shown that it is."""
        if self._awaits_pong:
            self.drop()
            return
        self._awaits_pong = True
        self._ping = self.clock.after(self._keep_alive_s, self._beat)
        self._send(Pingreq())

    # -- receiving

    def _ready(self) -> None:
        self._write()
        while self.is_reading and self._end is not None and (data := self._end.read(_READ)):
            for packet in self._framer.feed(data):
                self._take(packet)
        if self.is_reading and self._end is not None and self._end.is_over:
            self._end.close()
            self._hang_up()

    def _take(self, packet: Packet) -> None:
        self.heard.append(Heard(self.clock.now, packet))
        match packet:
            case Connack():
                self._begin(packet)
            case Publish():
                self._take_message(packet)
            case Pubrel():
                self._taken.discard(packet.packet_id)
                self._send(Pubcomp(packet_id=packet.packet_id))
            case Pubrec() if packet.reason < Reason.UNSPECIFIED_ERROR:
                self._outbox[packet.packet_id] = None
                self._send(Pubrel(packet_id=packet.packet_id))
            case Puback() | Pubcomp() | Pubrec():
                self._outbox.pop(packet.packet_id, None)
                self._advance()
            case Pingresp():
                self._awaits_pong = False

    def _begin(self, connack: Connack) -> None:
        """Send again what was not finished, or all of it anew if the broker has forgotten the session."""
        self._connack = connack
        if not self.is_connected:
            return
        if self._keep_alive_s:
            self._ping = self.clock.after(self._keep_alive_s, self._beat)
        if connack.session_present:
            for packet_id, message in self._outbox.items():
                self._send(Pubrel(packet_id=packet_id) if message is None else replace(message, dup=True))
        else:
            # what it has released is the broker's; the rest was not acknowledged, and is published again
            self._waiting.extendleft(message for message in reversed(self._outbox.values()) if message is not None)
            self._outbox.clear()
            self._taken.clear()
        self._advance()

    def _take_message(self, message: Publish) -> None:
        alias = message.properties.get("topic_alias")
        if alias is not None:
            if message.topic:
                self._aliases[alias] = message.topic
            message.topic = self._aliases[alias]
        is_new = message.qos < 2 or message.packet_id not in self._taken
        if message.qos == 1:
            self._send(Puback(packet_id=message.packet_id))
        elif message.qos == 2:
            self._taken.add(message.packet_id)
            self._send(Pubrec(packet_id=message.packet_id))
        if is_new:
            self.messages.append((self.clock.now, message))
            if self.on_message is not None:
                self.on_message(message, self.clock.now)

    # -- the end

    def _hang_up(self) -> None:
        """The connection is gone, and with it everything that belongs to it alone."""
        self._end = self._connack = None
        self._unsent = b""
        self._awaits_pong = False
        self.clock.cancel(self._ping)
        self._waiting = deque(packet for packet in self._waiting if isinstance(packet, Publish) and packet.qos)
        if self.on_end is not None:
            self.on_end(self.clock.now)
