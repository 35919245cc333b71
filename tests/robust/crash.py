"""A broker that is killed over and over, and clients that remember everything they were told.

Publishers and subscribers keep their own session state, as real ones would on flash memory: what was not acknowledged
is sent again after each reconnection, QoS 2 packet ids are remembered until they are released.  Every message carries
a number that counts its flow (publisher, topic, QoS).  At the end nothing that was acknowledged may be missing, nothing
at QoS 2 may have come twice, and every flow must be in order.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Final

from tests.kits.dial import Dial
from tieline.wire.codec import encode
from tieline.wire.frames import Framer
from tieline.wire.packets import (
    Connack,
    Connect,
    Packet,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Subscription,
)
from tieline.wire.reason import Reason

#: Which messages belong together: publisher, topic, QoS.
Flow = tuple[str, str, int]

_LARGEST: Final = 268_435_460
#: Unacknowledged messages of one publisher.
WINDOW: Final = 60
#: A broker that takes longer to start, or clients that take longer to settle, fail the test.
PATIENCE_S: Final = 30.0
RETAINED_TOPICS: Final = 5


class Client:
    """One MQTT client over a socket that may end at any moment; what it remembers outlives the socket."""

    def __init__(self, client_id: str, version: int) -> None:
        self.client_id = client_id
        self.version = version
        self.sock: socket.socket | None = None
        self._framer = Framer(_LARGEST, version)
        self._out = b""
        self.is_welcome = False
        #: The broker has said once that it keeps the session.
        self.is_known = False

    def connect(self, port: int) -> None:
        """Begin a connection; the answer comes later."""
        self.sock = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self._framer = Framer(_LARGEST, self.version)
        self._out = b""
        self.is_welcome = False
        connect = Connect(version=self.version, client_id=self.client_id, clean_start=False)
        if self.version == 5:
            connect.properties = {"session_expiry_interval": 100_000}
        self.send(connect)

    @property
    def is_connected(self) -> bool:
        """There is a socket."""
        return self.sock is not None

    def hang_up(self) -> None:
        """The connection is gone."""
        if self.sock is not None:
            self.sock.close()
            self.sock = None
        self.is_welcome = False

    def send(self, *packets: Packet) -> None:
        """Write what the socket takes; the rest with the next call."""
        self._out += b"".join(encode(packet, self.version) for packet in packets)
        if self.sock is not None and self._out:
            with suppress(BlockingIOError):
                try:
                    self._out = self._out[self.sock.send(self._out) :]
                except (BrokenPipeError, ConnectionResetError):
                    self.hang_up()

    def read(self) -> None:
        """Handle what has arrived."""
        assert self.sock is not None
        try:
            data = self.sock.recv(262_144)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self.hang_up()
            return
        for packet in self._framer.feed(data):
            if not self.is_connected:
                return
            if isinstance(packet, Connack):
                assert packet.session_present or not self.is_known, f"the session of {self.client_id} was lost"
                self.is_known = self.is_welcome = True
                self.welcomed()
            else:
                self.handle(packet)
        self.send()

    def welcomed(self) -> None:
        """CONNACK has come."""

    def handle(self, packet: Packet) -> None:
        """Anything else has come."""
        raise NotImplementedError


class Publisher(Client):
    """Publishes numbered messages with one QoS to a few topics, and sends again what was not acknowledged."""

    def __init__(
        self, client_id: str, version: int, qos: int, topics: tuple[str, ...], *, retain: bool = False
    ) -> None:
        super().__init__(client_id, version)
        self.qos = qos
        self.topics = topics
        self.retain = retain
        self.sent: dict[str, int] = dict.fromkeys(topics, 0)
        #: The highest number of each topic that the broker has taken over.
        self.acknowledged: dict[str, int] = dict.fromkeys(topics, -1)
        #: Unacknowledged messages by packet id, in order; None once PUBREC has come.
        self._open: dict[int, Publish | None] = {}
        self._next = 0

    @property
    def is_settled(self) -> bool:
        """Everything is acknowledged."""
        return not self._open

    def welcomed(self) -> None:
        for packet_id, message in self._open.items():
            if message is None:
                self.send(Pubrel(packet_id=packet_id))
            else:
                message.dup = True
                self.send(message)

    def publish(self, count: int) -> None:
        """Up to so many more messages, within the window."""
        if not self.is_welcome:
            return
        packets: list[Packet] = []
        for _ in range(min(count, WINDOW - len(self._open))):
            topic = self.topics[self._next % len(self.topics)]
            self._next += 1
            # the least free one: a broker that forgets that an id was released takes the next message for the last one
            packet_id = next(number for number in range(1, WINDOW + 1) if number not in self._open)
            payload = f"{self.client_id} {self.qos} {self.sent[topic]}".encode()
            self.sent[topic] += 1
            message = Publish(topic=topic, payload=payload, qos=self.qos, packet_id=packet_id, retain=self.retain)
            self._open[packet_id] = message
            packets.append(message)
        self.send(*packets)

    def handle(self, packet: Packet) -> None:
        if isinstance(packet, Puback | Pubrec) and packet.reason >= Reason.UNSPECIFIED_ERROR:
            # refused, by a broker that has just lost its writer: the message is still ours, and goes again in its place
            self.hang_up()
            return
        if isinstance(packet, Puback | Pubrec):
            message = self._open.get(packet.packet_id)
            if message is not None:
                self.acknowledged[message.topic] = int(message.payload.split()[2])
        if isinstance(packet, Puback | Pubcomp):
            self._open.pop(packet.packet_id, None)
        elif isinstance(packet, Pubrec):
            if packet.packet_id in self._open:
                self._open.pop(packet.packet_id)
                self._open[packet.packet_id] = None
            self.send(Pubrel(packet_id=packet.packet_id))


class Subscriber(Client):
    """Takes everything, acknowledges it, and remembers what it has got."""

    def __init__(self, client_id: str, version: int, qos: int, filter_: str) -> None:
        super().__init__(client_id, version)
        self.qos = qos
        self.filter = filter_
        self.is_subscribed = False
        #: Numbers in the order in which they came, by flow; with QoS 2 what the application would have seen.
        self.got: dict[Flow, list[int]] = defaultdict(list)
        #: QoS 2 packet ids that were received and not released.
        self._received: set[int] = set()

    def welcomed(self) -> None:
        if not self.is_subscribed:
            self.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter=self.filter, qos=self.qos),)))

    def handle(self, packet: Packet) -> None:
        if isinstance(packet, Suback):
            self.is_subscribed = True
        elif isinstance(packet, Publish):
            publisher, qos, number = packet.payload.decode().split()
            flow = (publisher, packet.topic, int(qos))
            if packet.qos == 1:
                self.got[flow].append(int(number))
                self.send(Puback(packet_id=packet.packet_id))
            else:
                if packet.packet_id not in self._received:
                    self._received.add(packet.packet_id)
                    self.got[flow].append(int(number))
                self.send(Pubrec(packet_id=packet.packet_id))
        elif isinstance(packet, Pubrel):
            self._received.discard(packet.packet_id)
            self.send(Pubcomp(packet_id=packet.packet_id))


class Harness:
    """One data directory, the broker on it, and its clients."""

    def __init__(self, folder: Path, seed: int, *, more: str = "") -> None:
        self._random = Random(seed)
        self._folder = folder
        self.port = _free_port()
        self._config = folder / "tieline.toml"
        self._config.write_text(
            f'data = "{folder / "data"}"\n[mqtt]\nsys_interval_s = 0\n{more}\n'
            f'[[listener]]\nurl = "tcp://127.0.0.1:{self.port}"\n'
        )
        self._process: subprocess.Popen[str] | None = None
        self.retaining = Publisher("retaining", 5, 1, tuple(f"kept/{n}" for n in range(RETAINED_TOPICS)), retain=True)
        self.publishers = [
            Publisher("one", 5, 1, ("flow/a", "flow/b")),
            Publisher("two", 5, 2, ("flow/a", "flow/c")),
            Publisher("old two", 4, 2, ("flow/d",)),
            self.retaining,
        ]
        for publisher in self.publishers:
            publisher.client_id = publisher.client_id.replace(" ", "-")
        self.subscribers = [
            Subscriber("all", 5, 2, "flow/#"),
            Subscriber("old-all", 4, 2, "flow/#"),
            Subscriber("at-least", 5, 1, "flow/#"),
            Subscriber("sleepy", 5, 2, "flow/#"),
        ]

    # -- the broker

    def start(self) -> None:
        """Start the broker and wait until it is ready."""
        self.begin()
        process = self._process
        assert process is not None and process.stdout is not None
        ready = process.stdout.readline()
        assert " ready: " in ready, f"the broker did not start: {(self._folder / 'log').read_text()[-2000:]}"

    def begin(self) -> None:
        """Start the broker and do not wait."""
        with (self._folder / "log").open("a") as log:
            command = [sys.executable, "-m", "tieline", "serve", "--config", str(self._config)]
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)

    @property
    def writer(self) -> int | None:
        """The process id of the broker's writer."""
        assert self._process is not None
        pid = self._process.pid
        with suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            return int(children[0]) if children else None
        return None

    def kill(self, how: str) -> None:
        """End the broker: ``broker``, ``both`` or ``writer`` are killed, or it is asked to ``stop``."""
        process, writer = self._process, self.writer
        assert process is not None
        if how == "stop":
            process.send_signal(signal.SIGTERM)
        else:
            if how in ("writer", "both") and writer is not None:
                with suppress(ProcessLookupError):
                    os.kill(writer, signal.SIGKILL)
            if how in ("broker", "both") or writer is None:
                process.kill()
        code = process.wait(PATIENCE_S)
        assert process.stdout is not None
        process.stdout.close()
        self._process = None
        if how == "writer" and writer is not None:
            assert code != 0, "a broker that lost its store must not say that all is well"
        if how == "stop":
            assert code == 0
        for client in (*self.publishers, *self.subscribers):
            if client.sock is not None:
                self._read_out(client)
                client.hang_up()

    @staticmethod
    def _read_out(client: Client) -> None:
        """What was in the kernel when the broker died has left it: an acknowledgement among it counts."""
        for _ in range(1_000):
            if client.sock is None:
                return
            client.sock.setblocking(True)
            client.sock.settimeout(PATIENCE_S)
            with suppress(OSError):
                client.read()

    def end(self) -> None:
        """Whatever happened, leave no process behind."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
        for client in (*self.publishers, *self.subscribers):
            client.hang_up()

    # -- the clients

    def round(self) -> None:
        """Start, let the clients talk for a random while, kill in a random way."""
        random = self._random
        if random.random() < 0.1:
            self.begin()
            sleep(random.uniform(0, 0.4))
            self.kill("both")
        self.start()
        self.check_retained()
        sleepers = {"sleepy"} if random.random() < 0.7 else set()
        for client in (*self.publishers, *self.subscribers):
            if client.client_id not in sleepers:
                client.connect(self.port)
        self.talk(random.uniform(0.0, 0.25), random.randint(1, WINDOW))
        self.kill(random.choices(["broker", "both", "writer", "stop"], [6, 6, 2, 1])[0])

    def talk(self, seconds: float, portion: int) -> None:
        """Publish and receive for a while."""
        until = monotonic() + seconds
        while monotonic() < until:
            if all(subscriber.is_subscribed for subscriber in self.subscribers[:3]):
                for publisher in self.publishers:
                    publisher.publish(portion)
            if not self._step(0.01):
                break

    def _step(self, timeout_s: float) -> bool:
        """Read whoever can be read; whether anybody is connected."""
        with selectors.DefaultSelector() as selector:
            for client in (*self.publishers, *self.subscribers):
                if client.sock is not None:
                    selector.register(client.sock, selectors.EVENT_READ, client)
            if not selector.get_map():
                return False
            for key, _ in selector.select(timeout_s):
                key.data.read()
        return True

    def finish(self) -> None:
        """Start for the last time and let everything come to an end."""
        self.start()
        self.check_retained()
        for client in (*self.publishers, *self.subscribers):
            client.connect(self.port)
        deadline = monotonic() + PATIENCE_S
        while not self.is_settled:
            assert monotonic() < deadline, f"the clients do not settle: {self.missing()}"
            self._step(0.05)
        # whatever is too much would come now
        quiet = monotonic() + 0.3
        while monotonic() < quiet:
            self._step(0.05)
        self.kill("stop")

    @property
    def is_settled(self) -> bool:
        """Every message is acknowledged and has arrived."""
        return all(publisher.is_settled for publisher in self.publishers) and not self.missing()

    def missing(self) -> dict[str, dict[Flow, int]]:
        """How many messages each subscriber lacks."""
        lacks: dict[str, dict[Flow, int]] = {}
        for subscriber in self.subscribers:
            for flow, count in self._owed(subscriber):
                lack = count - len(set(subscriber.got[flow]))
                if lack:
                    lacks.setdefault(subscriber.client_id, {})[flow] = lack
        return lacks

    def _owed(self, subscriber: Subscriber) -> Iterator[tuple[Flow, int]]:
        """Everything that was published since all had subscribed; sleepy subscribed later than that."""
        for publisher in self.publishers[:3]:
            for topic, count in publisher.sent.items():
                flow = (publisher.client_id, topic, publisher.qos)
                yield flow, count - self._before(subscriber, flow)

    @staticmethod
    def _before(subscriber: Subscriber, flow: Flow) -> int:
        """What was published before the subscriber was there: it begins with some number."""
        if subscriber.client_id == "sleepy" and subscriber.got[flow]:
            return min(subscriber.got[flow])
        return 0

    def check(self) -> None:
        """Assert that nothing is missing, too much, or out of order."""
        for subscriber in self.subscribers:
            for flow, count in self._owed(subscriber):
                got = subscriber.got[flow]
                first = self._before(subscriber, flow)
                assert sorted(set(got)) == list(range(first, first + count)), f"{subscriber.client_id} lacks {flow}"
                if flow[2] == 2 and subscriber.qos == 2:
                    assert len(got) == len(set(got)), f"{subscriber.client_id} got {flow} twice: {_twice(got)}"
                seen = list(dict.fromkeys(got))
                assert seen == sorted(seen), f"{flow} came to {subscriber.client_id} out of order"

    def check_retained(self) -> None:
        """The broker retains what was acknowledged last, or what came after it."""
        with Dial(f"tcp://127.0.0.1:{self.port}") as client:
            client.connect("onlooker")
            client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="kept/#", qos=0),)))
            client.expect(Suback)
            wanted = {topic: number for topic, number in self.retaining.acknowledged.items() if number >= 0}
            found: dict[str, int] = {}
            while wanted.keys() - found.keys():
                packet = client.expect(Publish)
                assert packet.retain
                found[packet.topic] = int(packet.payload.split()[2])
            for topic, number in wanted.items():
                assert number <= found[topic] < self.retaining.sent[topic], f"{topic} went back"

    @property
    def published(self) -> int:
        """How many messages there were."""
        return sum(sum(publisher.sent.values()) for publisher in self.publishers)


def _twice(numbers: list[int]) -> list[int]:
    return sorted({number for number in numbers if numbers.count(number) > 1})


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def crashing(folder: Path, seed: int, *, more: str = "") -> Iterator[Harness]:
    """A harness that leaves nothing behind."""
    harness = Harness(folder, seed, more=more)
    try:
        yield harness
    finally:
        harness.end()
