"""A broker that is killed over and over, between clients that remember everything they were told.

At the end nothing that was acknowledged may be missing where the session is kept, nothing at QoS 2 may have come twice,
and every flow must be in order.  Who takes QoS 0, or begins a new session with each connection, may miss what is
published while it is away; but nobody gets what was published with QoS 2 a second time, or after a later one, unless it
asked for "at least once" itself.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Final

from tests.kits.dial import Dial
from tests.kits.patience import PATIENCE_S
from tests.robust.remembering import WINDOW, Client, Flow, Publisher, Subscriber
from tieline.wire.packets import Publish, Suback, Subscribe, Subscription

RETAINED_TOPICS: Final = 5


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
        #: Those to whom nothing is owed that was published while they were away.
        self.onlookers = [
            Subscriber("glancing", 5, 0, "flow/#"),
            Subscriber("passing", 5, 0, "flow/#", is_kept=False),
            Subscriber("forgetful", 5, 2, "flow/#", is_kept=False),
        ]

    @property
    def clients(self) -> tuple[Client, ...]:
        """Everybody."""
        return (*self.publishers, *self.subscribers, *self.onlookers)

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
        for client in self.clients:
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
        for client in self.clients:
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
        for client in self.clients:
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
            for client in self.clients:
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
        for client in self.clients:
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

        for subscriber in self.onlookers:
            flows = [flow for flow in subscriber.got if flow[2] == 2]
            assert flows, f"{subscriber.client_id} has got nothing: the test says nothing about it"
            for flow in flows:
                got = subscriber.got[flow]
                assert len(got) == len(set(got)), f"{subscriber.client_id} got {flow} twice: {_twice(got)}"
                assert got == sorted(got), f"{flow} came to {subscriber.client_id} out of order"

    def check_retained(self) -> None:
        """The broker retains what was acknowledged last, or what came after it."""
        with Dial(f"tcp://127.0.0.1:{self.port}") as client:
            client.connect("inspector")
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
