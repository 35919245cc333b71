"""Clients that publish recorded messages when they are due, over several connections, at a chosen speed."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self  # Any: rows of Spark
from zlib import crc32

from paho.mqtt import client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from tieline.pipeline.broker import BrokerAddress, BrokerError, why

_SPEED: Final = re.compile(r"(\d+(?:\.\d+)?)x?")
#: A message that goes out later than this was late; less is the noise of any clock and scheduler.
LATE_S: Final = 0.1


class NoSpeed(ValueError):
    """A speed that cannot be meant; the text is a sentence."""


def speed_of(text: str) -> float:
    """How many times faster than recorded: ``10x``, ``0.5``, or ``max``, which never waits."""
    if text == "max":
        return math.inf
    found = _SPEED.fullmatch(text)
    if found is None or float(found[1]) == 0:
        raise NoSpeed(f'"{text}" is no speed; write 10x, 0.5x, or max.')
    return float(found[1])


class ReplayClock:
    """Turns recorded times into waiting, and counts what could not keep up.

    Falling behind does not move the schedule: what comes next is sent at once until it is made up for.
    """

    def __init__(self, speed: float, clock: Callable[[], float]) -> None:
        self._speed = speed
        self._clock = clock
        self._began: tuple[datetime, float] | None = None
        self.late = 0
        self.most_late_s = 0.0

    def wait_s(self, recorded: datetime) -> float:
        """How long to wait before a message goes out; zero if it is due or late."""
        if math.isinf(self._speed):
            return 0.0
        now = self._clock()
        if self._began is None:
            self._began = recorded, now
        first, began = self._began
        behind_s = now - (began + (recorded - first).total_seconds() / self._speed)
        if behind_s > LATE_S:
            self.late += 1
            self.most_late_s = max(self.most_late_s, behind_s)
        return max(0.0, -behind_s)


#: Messages of one client that are not written or not acknowledged yet.
WINDOW: Final = 500
#: How long a connection may take, and a broker may acknowledge nothing.
PATIENCE_S: Final = 15.0
#: User properties that number or rank messages: they belong to the publisher that sent them first.
_NOT_REPEATED: Final = frozenset({"seq", "$once", "priority"})
_LOOK_S: Final = 0.2


@dataclass(slots=True, kw_only=True)
class Played:
    """What became of a replay."""

    published: int = 0
    acknowledged: int = 0
    refused: int = 0
    late: int = 0
    most_late_s: float = 0.0
    seconds: float = 0.0
    #: It was asked to stop before the end.
    is_stopped: bool = False


class Player:
    """One connection to a broker, over which recorded messages are published."""

    def __init__(self, broker: BrokerAddress, client_id: str) -> None:
        self._broker = broker
        self._news = threading.Condition()
        self._under_way = 0
        self._is_connected = False
        self._problem: str | None = None
        self.acknowledged = 0
        self.refused = 0
        self._client = broker.client(client_id)
        self._client.max_inflight_messages_set(WINDOW)
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.on_publish = self._on_publish

    def __enter__(self) -> Self:
        try:
            self._client.connect(self._broker.host, self._broker.port)
        except (OSError, ValueError) as problem:
            raise BrokerError(f"{self._broker.url} cannot be reached: {why(problem)}") from None
        self._client.loop_start()
        try:
            self._wait(lambda: self._is_connected, lambda: False)
        except BaseException:
            self._client.loop_stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def publish(self, message: Mapping[str, Any], qos: int, is_asked: Callable[[], bool], *, levels: bool) -> bool:
        """Hand a message over as soon as the window has room; False if asked to stop meanwhile."""
        if not self._wait(lambda: self._under_way < WINDOW, is_asked):
            return False
        with self._news:
            self._under_way += 1
        sent = self._client.publish(
            message["topic"], message["payload"], qos, message["retain"], _properties(message, levels=levels)
        )
        if sent.rc == paho.MQTT_ERR_NO_CONN and qos == 0:
            # paho keeps the others for the next connection; this one is lost, as QoS 0 may be
            with self._news:
                self._under_way -= 1
        return True

    def finish(self) -> None:
        """Wait until everything that was handed over is written and acknowledged."""
        self._wait(lambda: self._under_way == 0, lambda: False)

    def _wait(self, is_so: Callable[[], bool], is_asked: Callable[[], bool]) -> bool:
        """Until something is so; False if asked to stop; gives up when nothing moves any more."""
        until, moved = time.monotonic() + PATIENCE_S, -1
        with self._news:
            while not is_so():
                done = self.acknowledged + self.refused
                if done != moved:
                    until, moved = time.monotonic() + PATIENCE_S, done
                if self._problem is not None:
                    raise BrokerError(f"{self._broker.url} {self._problem}")
                if is_asked():
                    return False
                if time.monotonic() > until:
                    raise BrokerError(f"{self._broker.url} has not answered for {PATIENCE_S:g} s")
                self._news.wait(_LOOK_S)
        return True

    def _on_connect(
        self, _client: object, _data: object, _flags: object, reason: ReasonCode, _properties: object
    ) -> None:
        with self._news:
            if reason.is_failure:
                self._problem = f"refuses the connection: {why(reason)}"
            self._is_connected = not reason.is_failure
            self._news.notify_all()

    def _on_disconnect(
        self, _client: object, _data: object, _flags: object, _reason: ReasonCode, _properties: object
    ) -> None:
        with self._news:
            self._is_connected = False
            self._news.notify_all()

    def _on_publish(
        self, _client: object, _data: object, _number: int, reason: ReasonCode, _properties: object
    ) -> None:
        with self._news:
            self._under_way -= 1
            if reason.is_failure:
                self.refused += 1
            else:
                self.acknowledged += 1
            self._news.notify_all()


def play(
    messages: Iterable[Mapping[str, Any]],
    players: list[Player],
    pace: ReplayClock,
    stop: threading.Event,
    *,
    qos: int | None = None,
    levels: bool = False,
    on_sent: Callable[[int], None] = lambda _count: None,
) -> Played:
    """Publish messages when they are due, until they end or ``stop`` is set; every player must be connected.

    All messages of a publisher go over one connection, so that they keep their order.  Without ``qos`` each has the one
    that it was recorded with.
    """
    began = time.monotonic()
    played = Played()
    for message in messages:
        if stop.wait(pace.wait_s(message["time"])):
            played.is_stopped = True
            break
        player = players[crc32((message["publisher"] or "").encode()) % len(players)]
        if not player.publish(message, message["qos"] if qos is None else qos, stop.is_set, levels=levels):
            played.is_stopped = True
            break
        played.published += 1
        on_sent(played.published)
    for player in players:
        player.finish()
    played.acknowledged = sum(player.acknowledged for player in players)
    played.refused = sum(player.refused for player in players)
    played.late, played.most_late_s = pace.late, pace.most_late_s
    played.seconds = time.monotonic() - began
    return played


def _properties(message: Mapping[str, Any], *, levels: bool) -> Properties | None:
    pairs = [(key, value) for key, value in message["properties"] or () if key not in _NOT_REPEATED]
    if levels:
        pairs.append(("priority", str(message["level"])))
    if not pairs:
        return None
    properties = Properties(PacketTypes.PUBLISH)
    properties.UserProperty = pairs
    return properties
