"""kill -9 of joined brokers with stores: what was acknowledged arrives, once and in order, whichever of them dies."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from time import sleep
from typing import TypeVar

import pytest

from tests.kits.dial import Dial, dial
from tests.kits.patience import PATIENCE_S
from tieline.wire.packets import Puback, Pubcomp, Publish, Pubrec, Pubrel

L = TypeVar("L", bound="BrokersInLine")
NAMES = ("here", "middle", "far")
BURST = 20


class BrokersInLine:
    """Three brokers in a line, each with a data directory, and a client at either end."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = Random(seed)
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[str]] = {}
        #: Where clients find the brokers that have some.
        self.urls: dict[str, str] = {}
        self.configure(folder)
        self._published = 0
        #: By QoS, the numbers that the broker has taken responsibility for.
        self.accepted: dict[int, list[int]] = {1: [], 2: []}

    def configure(self, folder: Path) -> None:
        """Write the brokers' settings."""
        ports = {name: (free_port(), free_port()) for name in NAMES}
        self.urls = {name: f"tcp://127.0.0.1:{ports[name][0]}" for name in NAMES}
        for name, joins in zip(NAMES, ("middle", "", "middle"), strict=True):
            peer = f'[[peer]]\nurl = "peer://127.0.0.1:{ports[joins][1]}"\n' if joins else ""
            (folder / f"{name}.toml").write_text(
                f'name = "{name}"\ndata = "{folder / name}"\n[mqtt]\nsys_interval_s = 0\n'
                f'[[listener]]\nurl = "{self.urls[name]}"\n'
                f'[[listener]]\nurl = "peer://127.0.0.1:{ports[name][1]}"\n{peer}'
            )

    def start(self, name: str) -> str:
        """Start a broker; what it says when it is ready."""
        with (self._folder / f"{name}.log").open("a") as log:
            command = [sys.executable, "-m", "tieline", "serve", "--config", str(self._folder / f"{name}.toml")]
            process = self._processes[name] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert " ready: " in ready, (self._folder / f"{name}.log").read_text()[-2000:]
        return ready

    def kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        process.wait(PATIENCE_S)
        assert process.stdout is not None
        process.stdout.close()

    def end(self) -> None:
        for name in list(self._processes):
            self.kill(name)

    def subscribe(self) -> None:
        """A client of the far broker wants everything, and goes."""
        with dial(self.urls["far"], "keeper", version=4, clean_start=False) as client:
            assert client.subscribe("x/#", 2).reasons == (2,)

    def publish(self, count: int, victims: tuple[str, ...] = ()) -> None:
        """Publish a burst; some brokers die while it is under way."""
        with dial(self.urls["here"], "source", version=4, clean_start=False) as client:
            numbers = range(self._published + 1, self._published + count + 1)
            self._published += count
            for number in numbers:
                qos = 1 + number % 2
                payload = b"%d" % number
                client.send(Publish(topic=f"x/{qos}", payload=payload, qos=qos, packet_id=1 + number % 60_000))
            acknowledged = 0
            if victims:
                sleep(self.random.uniform(0, 0.03))
                for victim in victims:
                    self.kill(victim)
            for packet in _until_it_ends(client):
                if isinstance(packet, Puback | Pubrec):
                    number = next(number for number in numbers if 1 + number % 60_000 == packet.packet_id)
                    self.accepted[1 + number % 2].append(number)
                if isinstance(packet, Pubrec):
                    with suppress(OSError):
                        client.send(Pubrel(packet_id=packet.packet_id))
                acknowledged += isinstance(packet, Puback | Pubcomp)
                if acknowledged == count:
                    break

    def arrived(self) -> dict[int, list[int]]:
        """By QoS, what the far client finds waiting, up to the last two that were published."""
        found: dict[int, list[int]] = {1: [], 2: []}
        last = {self._published, self._published - 1}
        with dial(self.urls["far"], "keeper", version=4, clean_start=False) as client:
            while last:
                packet = client.receive()
                assert packet is not None
                if isinstance(packet, Publish):
                    found[packet.qos].append(int(packet.payload))
                    last.discard(int(packet.payload))
                    client.send((Puback if packet.qos == 1 else Pubrec)(packet_id=packet.packet_id))
                elif isinstance(packet, Pubrel):
                    client.send(Pubcomp(packet_id=packet.packet_id))
        return found

    def check(self) -> None:
        """Nothing that was acknowledged is missing, and nothing came twice or out of order."""
        self.publish(2)
        for qos, numbers in self.arrived().items():
            assert numbers == sorted(set(numbers)), f"QoS {qos} is out of order, or came twice"
            missing = set(self.accepted[qos]) - set(numbers)
            assert not missing, f"{len(missing)} of {len(self.accepted[qos])} with QoS {qos} are missing"


def _until_it_ends(client: Dial) -> Iterator[object]:
    with suppress(ConnectionError):
        while (packet := client.receive()) is not None:
            yield packet


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@contextmanager
def running(brokers: L) -> Iterator[L]:
    """A line of brokers, started, subscribed to, and ended in the end."""
    try:
        for name in ("middle", "here", "far"):
            brokers.start(name)
        brokers.subscribe()
        yield brokers
    finally:
        brokers.end()


def test_what_is_owed_survives_its_broker(tmp_path: Path) -> None:
    with running(BrokersInLine(tmp_path, 1)) as brokers:
        brokers.publish(BURST)
        brokers.kill("far")
        brokers.publish(BURST)
        assert sum(map(len, brokers.accepted.values())) == 2 * BURST
        brokers.kill("here")
        brokers.start("here")
        brokers.start("far")
        brokers.check()


@pytest.mark.parametrize("victim", NAMES)
def test_whoever_dies_in_the_middle_of_a_burst(tmp_path: Path, victim: str) -> None:
    with running(BrokersInLine(tmp_path, 2)) as brokers:
        for _ in range(2):
            brokers.publish(BURST, (victim,))
            brokers.start(victim)
        brokers.check()
        assert brokers.accepted[1]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(3))
def test_many_deaths(tmp_path: Path, seed: int) -> None:
    with running(BrokersInLine(tmp_path, 100 + seed)) as brokers:
        for _ in range(30):
            victims = tuple(brokers.random.sample(NAMES, brokers.random.randint(1, 3)))
            brokers.publish(BURST, victims)
            for victim in victims:
                brokers.start(victim)
        brokers.check()
