"""Takes messages from a broker into the spool, and acknowledges each when it is safely there.

Theory of operation
-------------------
paho's thread puts what arrives into a list.  A thread of our own takes the whole list, writes it to the spool in one
transaction, and acknowledges it; what arrives meanwhile is the next list, so one disk sync serves as many messages as
came during the last one.  The session persists on the broker: while nobody is connected it queues, and what was never
acknowledged is sent again after a reconnect.  So every message is in the spool at least once, and more than once if we
ended between the commit and the acknowledgement.

An acknowledgement belongs to the connection over which the message came.  After a break the broker sends the message
again, and answering the old packet id then could name another message.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from typing import Final

from paho.mqtt import client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from tieline.pipeline.broker import BrokerError, leave, why
from tieline.pipeline.foreign.options import ForeignOptions
from tieline.pipeline.foreign.spool import Arrival, Spool

log: Final = logging.getLogger("tieline.pipeline.foreign")

_PAUSE_S: Final = 0.2


class Intake:
    """A connection that fills a spool until it is closed."""

    def __init__(self, options: ForeignOptions, spool: Spool) -> None:
        self._options = options
        self._spool = spool
        #: Guards everything below; notified by every event.
        self._news = threading.Condition()
        self._arrived: list[tuple[int, int, Arrival]] = []
        #: Counts connections that have ended: over which one a message came.
        self._connection = 0
        self._is_subscribed = False
        self._is_closing = False
        self._failure: str | None = None
        self._down_since: float | None = time.monotonic()
        self._why = "it does not answer"
        #: When the last message arrived.
        self.last_arrival = time.monotonic()
        #: Messages that the broker marked as sent before; some of them are in the spool twice.
        self.repeated = 0
        client = options.broker.client(
            options.client_id or f"tieline-{spool.id}", is_version_5=options.is_version_5, is_clean=False
        )
        client.manual_ack_set(True)
        client.reconnect_delay_set(1, 10)
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        self._client = client
        self._writer = threading.Thread(target=self._write, name="tieline-spool", daemon=True)

    def open(self) -> None:
        """Connect and subscribe; returns when the broker has answered."""
        until = time.monotonic() + self._options.patience_s
        while True:
            try:
                self._connect()
                break
            except (OSError, ValueError) as problem:
                if time.monotonic() + _PAUSE_S > until:
                    raise BrokerError(f"{self._options.broker.url} cannot be reached: {why(problem)}") from None
                time.sleep(_PAUSE_S)
        self._client.loop_start()
        self._writer.start()
        with self._news:
            self._news.wait_for(lambda: self._is_subscribed or self._failure, self._options.patience_s)
        self.check()

    def close(self) -> None:
        """Disconnect; what is not in the spool yet stays unacknowledged, and the broker keeps it."""
        with self._news:
            self._is_closing = True
            self._news.notify_all()
        leave(self._client)
        if self._writer.ident is not None:
            self._writer.join()

    def check(self) -> None:
        """Raise :class:`BrokerError` if nothing can arrive any more."""
        with self._news:
            failure, down = self._failure, self._down_since
        if failure is not None:
            raise BrokerError(failure)
        if down is not None and time.monotonic() - down >= self._options.patience_s:
            raise BrokerError(
                f"{self._options.broker.url} has been away for {self._options.patience_s:g} s: {self._why}"
            )

    def drain(self, quiet_s: float) -> None:
        """Wait until nothing has arrived for a while and everything is in the spool."""
        while True:
            self.check()
            with self._news:
                pause = self.last_arrival + quiet_s - time.monotonic()
                if pause <= 0 and not self._arrived:
                    return
            time.sleep(max(pause, 0.02))

    def _connect(self) -> None:
        broker, options = self._options.broker, self._options
        if not options.is_version_5:
            self._client.connect(broker.host, broker.port)
            return
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = options.session_expiry_s
        properties.ReceiveMaximum = options.receive_maximum
        self._client.connect(broker.host, broker.port, clean_start=False, properties=properties)

    def _on_connect(
        self,
        client: paho.Client,
        _data: object,
        flags: paho.ConnectFlags,
        reason: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        if reason.is_failure:
            self._fail(f"{self._options.broker.url} refuses the connection: {why(reason)}")
            return
        if not flags.session_present and self._spool.fact("subscribed") is not None:
            log.warning(
                "%s has forgotten the session: what was published since the last connection is lost",
                self._options.broker.url,
            )
        with self._news:
            self._down_since = None
        # also where the session is still there: the options may name other topics than last time
        client.subscribe([(topic, self._options.qos) for topic in self._options.topics])

    def _on_subscribe(
        self, _client: paho.Client, _data: object, _mid: int, reasons: list[ReasonCode], _properties: Properties | None
    ) -> None:
        refused = [topic for topic, reason in zip(self._options.topics, reasons, strict=False) if reason.is_failure]
        if refused:
            self._fail(f"{self._options.broker.url} refuses the subscription to {', '.join(refused)}")
            return
        self._spool.remember("subscribed", "\n".join(self._options.topics))
        with self._news:
            self._is_subscribed = True
            self._news.notify_all()

    def _on_disconnect(
        self, _client: paho.Client, _data: object, _flags: object, reason: ReasonCode, _properties: Properties | None
    ) -> None:
        with self._news:
            self._connection += 1
            self._down_since = self._down_since or time.monotonic()
            self._why = f"the connection is lost: {why(reason)}"
            self._news.notify_all()

    def _on_message(self, _client: paho.Client, _data: object, message: paho.MQTTMessage) -> None:
        pairs = getattr(message.properties, "UserProperty", []) if message.properties is not None else []
        arrival = Arrival(
            time.time_ns() // 1_000,
            message.topic,
            bytes(message.payload),
            message.qos,
            message.retain,
            message.dup,
            pairs,
        )
        with self._news:
            self._arrived.append((self._connection, message.mid, arrival))
            self.last_arrival = time.monotonic()
            self.repeated += message.dup
            self._news.notify_all()
            # A broker stops by itself at Receive Maximum.  QoS 0 knows no such bound: there the socket is not read.
            self._news.wait_for(
                lambda: len(self._arrived) < self._options.receive_maximum or self._is_closing or self._failure
            )

    def _write(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._arrived or self._is_closing)
                if self._is_closing:
                    return
                some, self._arrived = self._arrived, []
                self._news.notify_all()
            try:
                self._wait_for_room()
                self._spool.append(arrival for _connection, _mid, arrival in some)
            except (sqlite3.Error, BrokerError) as problem:
                self._fail(f"messages cannot be kept in the spool: {problem}")
                return
            with self._news:
                for connection, mid, arrival in some:
                    if arrival.qos and connection == self._connection:
                        self._client.ack(mid, arrival.qos)

    def _wait_for_room(self) -> None:
        """While Spark is far behind, nothing is acknowledged, and the broker sends no more."""
        while not self._is_closing:
            first, last = self._spool.bounds()
            if last - first < self._options.spool_rows:
                return
            time.sleep(_PAUSE_S)

    def _fail(self, text: str) -> None:
        with self._news:
            self._failure = text
            self._news.notify_all()
