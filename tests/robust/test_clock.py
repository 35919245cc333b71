"""The wall clock leaps, between two starts or while a broker with a store runs: nothing acknowledged is lost.

What was given no time to live is there after any leap.  What was given one ends when that has passed by the wall clock,
which a broker that was not there has to believe; while it runs it believes its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time

import pytest

from tests.kits.dial import Dial, addresses, dial
from tests.kits.patience import PATIENCE_S, until
from tests.net.test_peers import publish, subscribe
from tieline.conf.schema import Listener, Settings
from tieline.net.store import keeper
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Puback, Publish, Pubrec, Pubrel
from tieline.wire.properties import Properties

YEAR_S, HOUR_S, NEVER = 365 * 86_400.0, 3_600, 0xFFFF_FFFF

#: What Python does first in the broker and in its writer, where this is in the way.
LEAPS = """\
import time
true = time.time
def wall():
    with open({path!r}) as file:
        return true() + float(file.read())
time.time = wall
time.time_ns = lambda: int(wall() * 1e9)
"""


class Clocked:
    """A data directory, and brokers on it that believe the clock of the test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clock = folder / "clock"
        (folder / "python").mkdir()
        (folder / "python" / "sitecustomize.py").write_text(LEAPS.format(path=str(self._clock)))
        self._config = folder / "tieline.toml"
        self._config.write_text(
            f'data = "{folder / "data"}"\n[mqtt]\nsys_interval_s = 0\n'
            '[log]\ncapture = ["#"]\nretention_age = "720h"\n[[listener]]\nurl = "tcp://127.0.0.1:0"\n'
        )
        self.leap(0.0)

    def leap(self, seconds: float) -> None:
        """Set the wall clock so far before or after the true time; at once, for every process."""
        new = self._clock.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self._clock)

    @contextmanager
    def broker(self, how: signal.Signals = signal.SIGTERM) -> Iterator[str]:
        """A broker that runs, and how it ends."""
        path = os.pathsep.join([str(self._folder / "python"), os.environ.get("PYTHONPATH", "")])
        with (self._folder / "log").open("a") as log:
            command = [sys.executable, "-m", "tieline", "serve", "--config", str(self._config)]
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ | {"PYTHONPATH": path}
            )
        assert process.stdout is not None
        try:
            ready = process.stdout.readline()
            assert " ready: " in ready, (self._folder / "log").read_text()
            yield addresses(ready)[0]
            assert process.poll() is None
        finally:
            process.send_signal(how)
            process.wait(PATIENCE_S)
            process.stdout.close()
        assert "internal error" not in (self._folder / "log").read_text()


def leave(url: str, client_id: str, expiry_s: int) -> None:
    """A client subscribes and goes; its session stays for so long."""
    properties = {"session_expiry_interval": expiry_s}
    with dial(url, client_id, clean_start=False, properties=properties) as client:
        subscribe(client, "t/#", 2)


def fill(url: str) -> None:
    """Messages of both kinds, half of them with a time to live, and something retained: all of it acknowledged."""
    with dial(url, "publisher") as client:
        for number in range(10):
            publish(client, f"t/{number}", b"for ever", 1 + number % 2)
            living: Properties = {"message_expiry_interval": HOUR_S}
            client.send(Publish(topic=f"t/{number}", payload=b"an hour", qos=1, packet_id=9, properties=living))
            client.expect(Puback)
        publish(client, "kept", b"retained", 1, retain=True)


def read(url: str, client_id: str, expiry_s: int, count: int) -> tuple[bool, list[Publish]]:
    """A client is back: whether its session is there, and so many messages, in the order of their topics."""
    found: list[Publish] = []
    with Dial(url) as client:
        properties = {"session_expiry_interval": expiry_s}
        is_present = client.connect(client_id, clean_start=False, properties=properties).session_present
        while is_present and len(found) < count:
            packet = client.receive()
            assert packet is not None
            if isinstance(packet, Publish):
                found.append(packet)
                answer = Puback if packet.qos == 1 else Pubrec
                client.send(answer(packet_id=packet.packet_id))
            elif isinstance(packet, Pubrec):
                client.send(Pubrel(packet_id=packet.packet_id))
    return is_present, found


def lasting(messages: list[Publish]) -> list[list[str]]:
    """The topics of those that live for ever, of each QoS in the order in which they came."""
    kept = [message for message in messages if message.payload == b"for ever"]
    return [[message.topic for message in kept if message.qos == qos] for qos in (1, 2)]


def is_retained(url: str) -> None:
    with dial(url, "reader") as client:
        client.subscribe("kept")
        client.expect(Publish, topic="kept", payload=b"retained", retain=True)


ALL = [[f"t/{number}" for number in range(first, 10, 2)] for first in (0, 1)]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_year_ahead_between_two_starts(tmp_path: Path, how: signal.Signals) -> None:
    clocked = Clocked(tmp_path)
    with clocked.broker(how) as url:
        leave(url, "kept", NEVER)
        leave(url, "hour", HOUR_S)
        fill(url)
    clocked.leap(YEAR_S)
    with clocked.broker() as url:
        is_present, found = read(url, "kept", NEVER, 10)
        # what lived for an hour is over, and nothing else
        assert is_present and len(found) == 10 and lasting(found) == ALL
        assert not read(url, "hour", HOUR_S, 0)[0]
        is_retained(url)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_year_back_between_two_starts(tmp_path: Path, how: signal.Signals) -> None:
    clocked = Clocked(tmp_path)
    with clocked.broker(how) as url:
        leave(url, "kept", NEVER)
        leave(url, "hour", HOUR_S)
        fill(url)
    clocked.leap(-YEAR_S)
    with clocked.broker(how) as url:
        is_present, found = read(url, "kept", NEVER, 20)
        assert is_present and lasting(found) == ALL
        # nothing lives longer than it was given
        for message in found:
            if message.payload == b"an hour":
                assert 0 < message.properties["message_expiry_interval"] <= HOUR_S
        is_retained(url)
    # the clock is set right, and it was less than an hour
    clocked.leap(0.0)
    with clocked.broker() as url:
        is_present, found = read(url, "hour", HOUR_S, 20)
        assert is_present and len(found) == 20 and lasting(found) == ALL
        is_retained(url)


@pytest.mark.parametrize("leap_s", [YEAR_S, -YEAR_S, 56 * YEAR_S])
def test_a_leap_while_the_broker_runs(tmp_path: Path, leap_s: float) -> None:
    clocked = Clocked(tmp_path)
    with clocked.broker() as url:
        leave(url, "kept", NEVER)
        leave(url, "hour", HOUR_S)
        clocked.leap(leap_s)
        fill(url)
        for client_id, expiry_s in (("kept", NEVER), ("hour", HOUR_S)):
            is_present, found = read(url, client_id, expiry_s, 20)
            assert is_present and len(found) == 20 and lasting(found) == ALL
        is_retained(url)
    clocked.leap(2 * leap_s)
    with clocked.broker() as url:
        assert read(url, "kept", NEVER, 0)[0]
        is_retained(url)


def is_ahead(broker: BrokerThread, leap_s: float) -> bool:
    """Whether the wall is so far ahead of the store's clock, but for what the machine's own was set by meanwhile."""
    return broker.ask(lambda core: abs(core.journal.epoch_s - core.journal.kept_s - leap_s) < 60.0)


@pytest.mark.parametrize("leap_s", [YEAR_S, -YEAR_S])
def test_a_leap_that_a_broker_has_seen_is_no_time_that_has_passed(
    tmp_path: Path, leap_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device without a battery begins in 1970, and asks the network later."""
    leapt = [0.0]
    monkeypatch.setattr(keeper, "time", lambda: time() + leapt[0])
    monkeypatch.setattr(keeper, "_CLOCK_S", 0.01)
    settings = Settings(data=str(tmp_path / "data"), listener=(Listener(url="tcp://127.0.0.1:0"),))
    with BrokerThread(settings) as broker:
        leave(broker.urls[0], "before", HOUR_S)
        fill(broker.urls[0])
        leapt[0] = leap_s
        until(lambda: is_ahead(broker, leap_s), "it is seen")
        leave(broker.urls[0], "after", HOUR_S)
        fill(broker.urls[0])
    for _ in range(2):
        with BrokerThread(settings) as broker:
            assert is_ahead(broker, leap_s)
            is_retained(broker.urls[0])
    with BrokerThread(settings) as broker:
        for client_id, count in (("before", 40), ("after", 20)):
            is_present, found = read(broker.urls[0], client_id, HOUR_S, count)
            assert is_present and lasting(found) == [topics * (count // 20) for topics in ALL]
            left = [message.properties.get("message_expiry_interval", 1) for message in found]
            assert min(left) > 0 and max(left) <= HOUR_S
