"""Two brokers while clients move from one to the other: the bridge that mosquitto brings along is all it takes."""

from __future__ import annotations

import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.conftest import need
from tests.kits.dial import Dial, dial
from tests.kits.patience import PATIENCE_S, until
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish


@pytest.fixture(name="new")
def _new() -> Iterator[BrokerThread]:
    with BrokerThread() as broker:
        yield broker


@contextmanager
def _mosquitto(folder: Path, port: int, *bridge: str) -> Iterator[str]:
    """A mosquitto that remembers what it retains."""
    # whom it becomes when root starts it would not find the folder
    lines = ["user root", f"listener {port} 127.0.0.1", "allow_anonymous true", "persistence true"]
    conf = folder / "mosquitto.conf"
    conf.write_text("\n".join([*lines, f"persistence_location {folder}/", *bridge, ""]))
    process = subprocess.Popen([need("mosquitto"), "-c", str(conf)], stderr=subprocess.DEVNULL)
    try:
        until(lambda: _answers(port), "mosquitto listens")
        yield f"tcp://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def _said(client: Dial, count: int) -> list[str]:
    """The payloads of so many messages, and of what comes within a moment after them."""
    heard = [client.expect(Publish).payload.decode() for _ in range(count)]
    client.sock.settimeout(1.0)
    with suppress(TimeoutError):
        while True:
            heard.append(client.expect(Publish).payload.decode())
    return heard


def test_clients_of_both_brokers_hear_each_other_once_while_they_move(new: BrokerThread, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    with _mosquitto(tmp_path, port) as old, dial(old, "before") as client:
        client.send(Publish(topic="plant/state", payload=b"running", qos=1, retain=True, packet_id=1))
        assert client.receive() is not None, "it is acknowledged"
    bridge = (
        "connection new", f"address 127.0.0.1:{new.port}", "bridge_protocol_version mqttv50", "cleansession false",
        "notifications false", "topic # both 1",
    )  # fmt: skip
    with _mosquitto(tmp_path, port, *bridge) as old:
        until(lambda: new.ask(lambda core: core.account.publishes_in) > 0, "what was retained before has come")
        with dial(new.urls[0], "first") as first:
            first.subscribe("plant/state")
            kept = first.expect(Publish)
            assert (kept.payload, kept.retain) == (b"running", True)
        with dial(old, "stayed") as stayed, dial(new.urls[0], "moved") as moved:
            stayed.subscribe("plant/+/power")
            moved.subscribe("plant/+/power")
            for number in range(5):
                topic = f"plant/{number}/power"
                stayed.send(Publish(topic=topic, payload=b"of old %d" % number))
                moved.send(Publish(topic=topic, payload=b"of new %d" % number))
            everything = Counter(f"of {broker} {number}" for number in range(5) for broker in ("old", "new"))
            assert Counter(_said(stayed, 10)) == everything
            assert Counter(_said(moved, 10)) == everything, "nothing that has crossed comes back"
            moved.send(Publish(topic="plant/state", payload=b"moved", qos=0, retain=True))
        # and so the way back is open
        with dial(old, "returned") as returned:
            returned.subscribe("plant/state")
            until(lambda: returned.expect(Publish).payload == b"moved", "what was retained since is there, too")
