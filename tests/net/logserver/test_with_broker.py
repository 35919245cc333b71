"""A real broker writes the log, through load, a crash and a restart; readers get every acknowledged message from it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.kits.patience import PATIENCE_S
from tests.net.logserver.conftest import Serve

CONFIG = """
name = "edge"
data = "."
[log]
capture = ["#"]
events = "on"
[event.pcc]
topic = "grid/+/pcc"
[[event.pcc.attributes]]
name = "voltage"
bounds = [0, 500]
path = "v.rms"
"""


class Broker:
    def __init__(self, place: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tieline", "serve", "--config", str(place / "b.toml"), "--listen",
             "tcp://127.0.0.1:0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        self.port = int(re.findall(r"tcp://127\.0\.0\.1:(\d+)", ready)[0])

    def publish(self, first: int, last: int) -> None:
        """Numbered messages with QoS 1; returns when all of them are acknowledged."""
        client = mqtt.Client(CallbackAPIVersion.VERSION2, "meter", protocol=mqtt.MQTTv5)
        client.max_inflight_messages_set(100)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        waiting = []
        for number in range(first, last):
            properties = Properties(PacketTypes.PUBLISH)
            properties.UserProperty = [("seq", str(number))]
            payload = b'{"v": {"rms": %d}, "number": %d}' % (200 + number % 60, number)
            waiting.append(client.publish(f"grid/{number % 5}/pcc", payload, qos=1, properties=properties))
        for each in waiting:
            each.wait_for_publish(20)
            assert each.is_published()
        client.disconnect()
        client.loop_stop()


@pytest.fixture(name="brokers")
def _brokers(tmp_path: Path) -> Iterator[list[Broker]]:
    (tmp_path / "b.toml").write_text(CONFIG)
    brokers: list[Broker] = []
    yield brokers
    for broker in brokers:
        if broker.process.poll() is None:
            broker.process.terminate()
        broker.process.communicate(timeout=PATIENCE_S)


def test_what_was_acknowledged_can_be_read(tmp_path: Path, brokers: list[Broker], serve: Serve) -> None:
    brokers.append(Broker(tmp_path))
    brokers[0].publish(0, 400)
    server = serve(tmp_path, "--config", str(tmp_path / "b.toml"))
    found = server.read("/v1/read?from=0")
    assert found.offsets == list(range(400))
    assert found.ended["rows"] == 400 and found.asked["broker"] == "edge"
    assert [row["properties"] for row in found.rows] == [[{"key": "seq", "value": str(n)}] for n in range(400)]
    one = found.rows[17]
    assert (one["publisher"], one["qos"], one["topic"], one["event"]) == ("meter", 1, "grid/2/pcc", "pcc")
    assert dict(one["attributes"])["voltage"]["number"] == 217.0
    some = server.read("/v1/read?from=0&topics=grid/2/pcc&where=voltage%20%3E%20250&columns=offset")
    assert some.offsets == [n for n in range(400) if n % 5 == 2 and 200 + n % 60 > 250]
    bare = serve(tmp_path)  # what was declared stands in the store
    assert bare.read("/v1/read?from=0&columns=offset,attributes").rows == [
        {"offset": row["offset"], "attributes": row["attributes"]} for row in found.rows
    ]
    assert bare.read("/v1/read?from=0&where=voltage%20%3E%20250&columns=offset").offsets == [
        n for n in range(400) if 200 + n % 60 > 250
    ]
    events = server.read("/v1/read?from=0&stream=events&where=kind%20%3D%20'connect'")
    assert [row["client"] for row in events.rows] == ["meter"]

    brokers[0].process.kill()
    brokers[0].process.communicate()
    assert server.read("/v1/read?from=0&columns=offset").offsets == list(range(400))
    brokers.append(Broker(tmp_path))
    brokers[1].publish(400, 500)
    again = server.read("/v1/read?from=300")
    assert again.offsets == list(range(300, 500))
    assert [int(row["properties"][0]["value"]) for row in again.rows] == list(range(300, 500))
    assert len({row["epoch"] for row in again.rows}) == 2
