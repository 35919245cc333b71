"""Content subscriptions as other people's clients ask for them, from a ``tieline serve`` with an event type."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.conftest import need
from tests.interop.clients.client import Client, Options, Where
from tests.interop.clients.with_aiomqtt import AiomqttClient
from tests.interop.clients.with_gmqtt import GmqttClient
from tests.interop.clients.with_mqttjs import MqttjsClient, MqttjsError
from tests.interop.clients.with_paho import PahoClient
from tests.interop.conftest import Connect, _connector
from tests.kits.dial import addresses
from tests.kits.patience import PATIENCE_S
from tieline.conf.urls import parse

CONFIGURATION = """\
[event.pcc]
topic = "microgrid/+/pcc"

[[event.pcc.attributes]]
name = "voltage"
bounds = [0, 400]
unit = "V"

[[event.pcc.attributes]]
name = "mode"
kind = "category"
values = ["grid", "island"]
"""
_serial = count(1)


@pytest.fixture(scope="session")
def content_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker that knows what its points of common coupling say."""
    directory = tmp_path_factory.mktemp("content")
    (directory / "tieline.toml").write_text(CONFIGURATION)
    command = [sys.executable, "-m", "tieline", "serve", "--config", str(directory / "tieline.toml")]
    command += ["--data", str(directory), "--log-level", "error", "--listen", "tcp://127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        (url,) = addresses(process.stdout.readline())
        try:
            yield url
        finally:
            process.terminate()
            output, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, output, errors) == (0, "", "")


@pytest.fixture
def site() -> str:
    """A microgrid that no other test knows."""
    return f"microgrid/{next(_serial)}"


@pytest.fixture
def where(content_url: str) -> Where:
    address = parse(content_url)
    return Where(scheme="tcp", host=address.host, port=address.port, authority=Path())


@pytest.fixture(
    params=[
        pytest.param((kind, version), id=f"{kind.name}-{version}")
        for kind in (PahoClient, AiomqttClient, GmqttClient, MqttjsClient)
        for version in (4, 5)
    ]
)
def connect(request: pytest.FixtureRequest, content_url: str) -> Iterator[Connect]:
    """Each client in both versions of the protocol."""
    kind, version = request.param
    yield from _connector(request, kind, version, "tcp", {"tcp": content_url})


def said(**values: Any) -> bytes:
    return json.dumps(values).encode()


def measure(client: Client, topic: str, *voltages: float, qos: int = 1) -> None:
    for voltage in voltages:
        client.publish(topic, said(voltage=voltage), qos)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_condition_behind_a_question_mark(connect: Connect, site: str, qos: int) -> None:
    subscriber, publisher = connect("s"), connect("p")
    number = site.rpartition("/")[2]
    # the other tests' microgrids are not meant
    assert subscriber.subscribe(f"microgrid/+/pcc?voltage<207 and site='{number}'", 2) == 2
    for voltage in (230, 207, 206.9, 195, 230, 0):
        publisher.publish(f"{site}/pcc", said(voltage=voltage, site=number), qos)
    assert [json.loads(message.payload)["voltage"] for message in subscriber.take(3)] == [206.9, 195, 0]


@pytest.mark.parametrize(
    "filter_", ["$where/voltage<207/{}/#", "$where/voltage<207/{}/+", "$share/g/$where/voltage%3C207/{}/pcc"]
)
def test_a_condition_before_any_filter(connect: Connect, site: str, filter_: str) -> None:
    subscriber, publisher = connect("s"), connect("p")
    assert subscriber.subscribe(filter_.format(site), 1) == 1
    measure(publisher, f"{site}/pcc", 230, 200, 240, 100)
    subscriber.expect(f"{site}/pcc", said(voltage=200), qos=1)
    subscriber.expect(f"{site}/pcc", said(voltage=100), qos=1)
    subscriber.unsubscribe(filter_.format(site))
    subscriber.subscribe(f"{site}/end")
    measure(publisher, f"{site}/pcc", 50)
    publisher.publish(f"{site}/end", b"end")
    subscriber.expect(f"{site}/end", b"end")


def test_send_on_change(connect: Connect, site: str) -> None:
    subscriber, publisher = connect("s"), connect("p")
    subscriber.subscribe(f"{site}/pcc?changed(mode) or delta(voltage)>5", 1)
    for voltage, mode in ((230, "grid"), (231, "grid"), (231, "island"), (231, "island"), (237, "island")):
        publisher.publish(f"{site}/pcc", said(voltage=voltage, mode=mode), 1)
    got = [json.loads(message.payload) for message in subscriber.take(3)]
    assert [(one["voltage"], one["mode"]) for one in got] == [(230, "grid"), (231, "island"), (237, "island")]


def test_a_bad_condition_is_refused_and_the_client_goes_on(connect: Connect, site: str) -> None:
    client = connect("s")
    if client.name == "mqtt.js":
        with pytest.raises(MqttjsError, match=r"Unspecified error|Topic Filter invalid"):
            client.subscribe(f"{site}/pcc?voltage<")
    else:
        assert client.subscribe(f"{site}/pcc?voltage<") == (0x80 if client.options.version == 4 else 0x8F)
    assert client.subscribe(f"{site}/pcc?voltage<207") == 0
    measure(client, f"{site}/pcc", 300, 1)
    client.expect(f"{site}/pcc", said(voltage=1))


@pytest.mark.parametrize("filter_", ["{}/+?voltage<207", "{}/#?voltage<207"])
def test_some_clients_refuse_what_follows_a_wildcard(connect: Connect, site: str, filter_: str) -> None:
    """Nothing is sent: such a client asks with $where/ instead, as above."""
    client = connect("s")
    if client.name == "gmqtt":
        assert client.subscribe(filter_.format(site)) == 0
        measure(client, f"{site}/pcc", 300, 1)
        client.expect(f"{site}/pcc", said(voltage=1))
    else:
        with pytest.raises((ValueError, MqttjsError)):
            client.subscribe(filter_.format(site))


def test_a_user_property_of_paho(where: Where, site: str) -> None:
    client = PahoClient(where, Options(client_id=f"property-{site}", version=5))
    properties = Properties(PacketTypes.SUBSCRIBE)
    properties.UserProperty = [("$where", "voltage<207")]
    client._client.subscribe([(f"{site}/#", 1), (f"{site}/pcc", 0)], properties=properties)
    assert client._answer() == [1, 0]
    measure(client, f"{site}/pcc", 300, 1)
    client.expect(f"{site}/pcc", said(voltage=1), qos=1)
    client.close()


# --- command lines --------------------------------------------------------------------------------------------------


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def _publish(where: Where, topic: str, *payloads: bytes) -> None:
    for payload in payloads:
        done = _run(need("mosquitto_pub"), "-h", where.host, "-p", str(where.port), "-t", topic, "-m", payload.decode())
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("version", ["mqttv311", "mqttv5"])
def test_mosquitto_as_the_readme_says(where: Where, site: str, version: str) -> None:
    """Retained, so that it does not matter who is there first."""
    at = ("-h", where.host, "-p", str(where.port), "-V", version)
    for number, voltage in enumerate((230, 200, 210, 190)):
        topic = f"{site}-{number}/pcc"
        done = _run(need("mosquitto_pub"), *at, "-t", topic, "-m", said(voltage=voltage).decode(), "-r", "-q", "1")
        assert (done.returncode, done.stderr) == (0, "")
    shown = _run(need("mosquitto_sub"), *at, "-v", "-t", "microgrid/+/pcc?voltage<207", "-W", "2", "-C", "2")
    assert shown.stderr == ""
    assert sorted(shown.stdout.splitlines()) == [
        f'{site}-{number}/pcc {{"voltage": {v}}}' for number, v in ((1, 200), (3, 190))
    ]
    for number in range(4):
        _run(need("mosquitto_pub"), *at, "-t", f"{site}-{number}/pcc", "-n", "-r", "-q", "1")


@pytest.mark.parametrize("filter_", ["microgrid/+?voltage<207", "#?voltage<207"])
def test_mosquitto_refuses_what_follows_a_wildcard(where: Where, filter_: str) -> None:
    at = ("-h", where.host, "-p", str(where.port))
    shown = _run(need("mosquitto_sub"), *at, "-t", filter_, "-W", "1")
    assert shown.returncode != 0
    assert "Invalid subscription topic" in shown.stderr


@pytest.mark.parametrize("version", ["311", "5"])
def test_tieline_sub_where(where: Where, site: str, version: str) -> None:
    command = [sys.executable, "-m", "tieline", "sub", "-h", where.host, "-p", str(where.port), "-V", version]
    command += ["-t", f"{site}/#", "--where", "voltage<207 and mode in (island, '50% +')", "-C", "2", "-d"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("SUBACK" in line for line in process.stderr)
        contents = [(200, "island"), (230, "island"), (200, "grid"), (100, "50% +")]
        _publish(where, f"{site}/pcc", *(said(voltage=voltage, mode=mode) for voltage, mode in contents))
        output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert [json.loads(line)["voltage"] for line in output.splitlines()] == [200, 100]
