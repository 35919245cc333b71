"""A will whose broker dies: it is published after the restart, unless its client has come back to any broker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.kits.dial import Dial, addresses, dial
from tests.kits.patience import PATIENCE_S, until
from tests.net.test_moves import knows
from tests.net.test_peers import reaches, settings
from tieline.cli.management import Management
from tieline.conf.paths import management_socket
from tieline.core.holdings import Kind
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Puback, Publish, Will
from tieline.wire.reason import Reason

#: Longer than the test: such a will is published only by mistake.
LONG_S = 3_600
GONE = b"s is gone"


class Pair:
    """A broker that is killed, here, where a client s leaves a will; and one far away, where somebody wants to know."""

    def __init__(self, folder: Path, far: BrokerThread) -> None:
        self.far = far
        self.url = ""
        self._data = folder / "here"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the broker here, and wait until both know of each other."""
        words = ("--name", "here", "--data", str(self._data), "--listen", "tcp://127.0.0.1:0")
        command = [sys.executable, "-m", "tieline", "serve", *words, "--join", self.far.urls[1]]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = addresses(self._process.stdout.readline())[0]
        until(partial(reaches, self.far, 1), "the far broker reaches the one here")

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.communicate(timeout=PATIENCE_S)
        until(partial(reaches, self.far, 0), "the far broker has lost the one here")

    def wills(self) -> int:
        """Bytes of wills that the broker here keeps."""
        with Management(management_socket(str(self._data), "here")) as broker:
            return int(broker.ask("top")["memory"][Kind.WILLS])

    def leave_a_will(self, delay_s: int) -> Dial:
        will = Will(topic="gone", payload=GONE, qos=1, properties={"will_delay_interval": delay_s})
        client, is_present = come_back(self.url, will=will)
        assert not is_present
        return client

    def heard(self, marker: bytes) -> list[bytes]:
        """What has come on the topic of the will, up to what is published there now by another client."""
        found: list[bytes] = []
        with dial(self.url, "witness") as witness:
            # in the same stream as a will of this broker, and so behind it
            witness.send(Publish(topic="gone", payload=marker, qos=1, packet_id=1))
            witness.expect(Puback)
        with listening(self.far.urls[0]) as listener:
            while not found or found[-1] != marker:
                got = listener.expect(Publish)
                found.append(got.payload)
                listener.send(Puback(packet_id=got.packet_id))
        return found[:-1]


def come_back(url: str, **fields: Any) -> tuple[Dial, bool]:
    """The client s, connected, and whether there was a session of it."""
    client = Dial(url)
    connack = client.connect("s", clean_start=False, properties={"session_expiry_interval": 2 * LONG_S}, **fields)
    assert connack.reason is Reason.SUCCESS
    return client, connack.session_present


def listening(url: str) -> Dial:
    return dial(url, "listener", clean_start=False, properties={"session_expiry_interval": LONG_S})


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    conf = replace(settings("far"), data=str(tmp_path / "far"))
    with BrokerThread(conf) as far:
        with listening(far.urls[0]) as listener:
            assert listener.subscribe("gone", 1).reasons == (1,)
        pair = Pair(tmp_path, far)
        pair.start()
        try:
            yield pair
        finally:
            pair.kill()


def test_nobody_claims_the_session_and_the_will_comes_once_after_the_restart(pair: Pair) -> None:
    with pair.leave_a_will(1):
        pair.kill()
    pair.start()
    until(lambda: not pair.wills(), "its delay is over")
    assert pair.heard(b"first") == [GONE]
    pair.kill()
    pair.start()
    assert pair.heard(b"second") == []


def test_a_claim_after_the_restart_cancels_the_will_for_ever(pair: Pair) -> None:
    with pair.leave_a_will(LONG_S):
        pair.kill()
    pair.start()
    assert pair.wills(), "it survives its broker, and waits"
    until(partial(knows, pair.far, "s"), "the far broker has heard of the session")
    client, is_present = come_back(pair.far.urls[0])
    with client:
        assert is_present
        until(lambda: not pair.wills(), "the will is cancelled")
        assert pair.heard(b"first") == []
        pair.kill()
        pair.start()
        assert not pair.wills(), "also in the store"
        assert pair.heard(b"second") == []


def test_a_claim_while_its_broker_is_dead_cancels_the_will_when_that_is_back(pair: Pair) -> None:
    with pair.leave_a_will(LONG_S):
        pair.kill()
    client, is_present = come_back(pair.far.urls[0])
    with client:
        assert not is_present, "nobody could fetch it"
        pair.start()
        until(lambda: not pair.wills(), "the will is cancelled")
        assert pair.heard(b"first") == []
        pair.kill()
        pair.start()
        assert not pair.wills(), "also in the store"
