"""Publishers of numbered messages over connections that break at any moment, and what each was told.

A publisher keeps what is not acknowledged, as a device would on flash memory, and sends it again when it is back.  A
forgetful one begins anew instead: what it had sent is left in doubt, and may be in the tables once or not at all.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from tieline.bench.load.job import Failure
from tieline.bench.pipeline.readings import START_S
from tieline.wire.encode import encode
from tieline.wire.errors import ProtocolError
from tieline.wire.frames import Framer
from tieline.wire.packets import Connack, Connect, Packet, Puback, Pubcomp, Publish, Pubrec, Pubrel
from tieline.wire.reason import Reason

_HOST: Final = "127.0.0.1"
_LARGEST: Final = 268_435_460
#: Messages of one publisher that are not acknowledged, at most.
WINDOW: Final = 50
_LOOK_S: Final = 0.02
_CONNECT_S: Final = 2.0
_PAUSE_S: Final = 0.2
_EXPIRY_S: Final = 100_000


class Device:
    """One client; what it remembers outlives its connections."""

    def __init__(self, client_id: str, qos: int, *, forgets: bool = False) -> None:
        self.client_id = client_id
        self.qos = qos
        self._forgets = forgets
        self._run = 0
        self._sent = 0
        #: ``RUN/NUMBER`` of what the broker has taken over, and of what nobody can say.
        self.acknowledged: set[str] = set()
        self.doubtful: set[str] = set()
        self.sock: socket.socket | None = None
        self._framer = Framer(_LARGEST, 5)
        self._out = b""
        self._is_welcome = False
        self._retry_at = 0.0
        #: By packet id, in order: the message, or None once PUBREC has come.
        self._open: dict[int, tuple[str, Publish | None]] = {}

    @property
    def is_settled(self) -> bool:
        """Nothing waits for an answer."""
        return not self._open

    def connect(self, port: int, now: float) -> None:
        """Try to connect, not too often; the answer comes later."""
        if self.sock is not None or now < self._retry_at:
            return
        self._retry_at = now + _PAUSE_S
        with suppress(OSError):
            self.sock = socket.create_connection((_HOST, port), _CONNECT_S)
            self.sock.setblocking(False)
            self._framer, self._out = Framer(_LARGEST, 5), b""
            if self._forgets:
                self.doubtful |= {seq for seq, _message in self._open.values()}
                self._open.clear()
                self._run += 1
            properties = {} if self._forgets else {"session_expiry_interval": _EXPIRY_S}
            self._send(
                Connect(version=5, client_id=self.client_id, clean_start=self._forgets, properties=properties)  # type: ignore[arg-type]  # a literal of known keys
            )

    def hang_up(self) -> None:
        """The connection is gone."""
        if self.sock is not None:
            self.sock.close()
        self.sock = None
        self._is_welcome = False

    def publish(self, count: int) -> None:
        """So many more messages, within the window."""
        if not self._is_welcome:
            return
        for _ in range(min(count, WINDOW - len(self._open))):
            packet_id = next(number for number in range(1, WINDOW + 1) if number not in self._open)
            seq = f"{self._run}/{self._sent}"
            message = Publish(
                topic=f"grid/{self.client_id}/reading",
                payload=_payload(self.client_id, self._sent),
                qos=self.qos,
                packet_id=packet_id,
                properties={"user_property": [("seq", seq)]},
            )
            self._sent += 1
            self._open[packet_id] = (seq, message)
            self._send(message)

    def read(self) -> None:
        """Handle what has arrived."""
        assert self.sock is not None
        try:
            data = self.sock.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.hang_up()
            return
        try:
            packets = list(self._framer.feed(data))
        except ProtocolError:
            packets = []
            self.hang_up()
        for packet in packets:
            self._handle(packet)

    def write(self) -> None:
        """Give the socket what it takes."""
        if self.sock is not None and self._out:
            try:
                self._out = self._out[self.sock.send(self._out) :]
            except BlockingIOError:
                return
            except OSError:
                self.hang_up()

    def _handle(self, packet: Packet) -> None:
        if isinstance(packet, Connack):
            self._is_welcome = True
            for packet_id, (_seq, message) in self._open.items():
                if message is None:
                    self._send(Pubrel(packet_id=packet_id))
                else:
                    message.dup = True
                    self._send(message)
        elif isinstance(packet, Puback | Pubrec) and packet.reason >= Reason.UNSPECIFIED_ERROR:
            self.hang_up()  # refused by a broker that has just lost its store: the message is still ours
        elif isinstance(packet, Puback):
            self._acknowledge(packet.packet_id)
        elif isinstance(packet, Pubrec):
            # from here on the broker is responsible, though the conversation goes on
            seq, _message = self._open.pop(packet.packet_id, ("", None))
            if seq:
                self.acknowledged.add(seq)
                self._open[packet.packet_id] = (seq, None)
            self._send(Pubrel(packet_id=packet.packet_id))
        elif isinstance(packet, Pubcomp):
            self._acknowledge(packet.packet_id)

    def _acknowledge(self, packet_id: int) -> None:
        seq, _message = self._open.pop(packet_id, ("", None))
        if seq:
            self.acknowledged.add(seq)

    def _send(self, packet: Packet) -> None:
        self._out += encode(packet, 5)
        self.write()


class Crowd:
    """Publishers in a thread of their own, which goes on whatever dies."""

    def __init__(self, publishers: Sequence[Device], port: int, *, rate: float) -> None:
        """``rate`` messages a second, each of them."""
        self.publishers = tuple(publishers)
        self._port = port
        self._rate = rate
        self._is_sending = True
        self._is_over = False
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="publishers", daemon=True)

    def start(self) -> None:
        """Begin to send, in a thread."""
        self._thread.start()

    def settle(self, seconds: float) -> None:
        """Send nothing new, and wait until everything is acknowledged."""
        self._is_sending = False
        deadline = time.monotonic() + seconds
        while not all(each.is_settled for each in self.publishers):
            if self._problem is not None or time.monotonic() > deadline:
                raise Failure(f"the publishers do not settle within {seconds:.0f} s ({self._problem})")
            time.sleep(0.05)

    def end(self) -> None:
        """Stop sending and hang up."""
        self._is_over = True
        if self._thread.is_alive():
            self._thread.join(10)
        for each in self.publishers:
            each.hang_up()

    def _run(self) -> None:
        try:
            due = time.monotonic()
            while not self._is_over:
                now = time.monotonic()
                count = int((now - due) * self._rate)
                due += count / self._rate
                for each in self.publishers:
                    each.connect(self._port, now)
                    if self._is_sending:
                        each.publish(count)
                    each.write()
                self._look()
        except BaseException as problem:  # noqa: BLE001 - told to the thread that waits
            self._problem = problem

    def _look(self) -> None:
        with selectors.DefaultSelector() as selector:
            for each in self.publishers:
                if each.sock is not None:
                    selector.register(each.sock, selectors.EVENT_READ, each)
            if not selector.get_map():
                time.sleep(_LOOK_S)
                return
            for key, _events in selector.select(_LOOK_S):
                if key.data.sock is not None:
                    key.data.read()
        time.sleep(_LOOK_S / 4)


def _payload(node: str, number: int) -> bytes:
    reading = f'"voltage":{230 + number % 7},"current":{number % 50},"power":{number % 11},"frequency":50.0'
    return f'{{"time":{START_S + number},"node":"{node}",{reading}}}'.encode()
