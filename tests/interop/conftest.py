"""One live broker with every kind of listener, and other people's clients, each behind the same face."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.conftest import need
from tests.interop.clients.client import Client, Options, Where
from tests.interop.clients.in_thread import LoopThread
from tests.interop.clients.with_aiomqtt import AiomqttClient
from tests.interop.clients.with_gmqtt import GmqttClient
from tests.interop.clients.with_mqttjs import INSTALL_S, MqttjsClient, Node, install
from tests.interop.clients.with_paho import PahoClient
from tests.kits.certificates import Certificates, issue
from tests.kits.dial import addresses
from tests.kits.patience import PATIENCE_S
from tieline import Settings
from tieline.conf.urls import parse
from tieline.pytest_plugin import BrokerThread

_HERE = Path(__file__).parent
_KINDS: tuple[type[Client], ...] = (PahoClient, AiomqttClient, GmqttClient, MqttjsClient)
_SCHEMES = ("tcp", "tls", "ws", "wss")
_serial = count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder drives a live broker."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.interop)
            if "node" in getattr(item, "fixturenames", ()) or MqttjsClient.name in item.nodeid:
                # the first of these may have to install mqtt.js
                item.add_marker(pytest.mark.timeout(INSTALL_S))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return issue(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def broker(certificates: Certificates) -> Iterator[BrokerThread]:
    listeners = certificates.listeners([f"{scheme}://127.0.0.1:0" for scheme in _SCHEMES])
    with BrokerThread(Settings(listener=listeners)) as running:
        yield running


@pytest.fixture(scope="session")
def urls(broker: BrokerThread) -> dict[str, str]:
    """The address of each listener of the embedded broker, by its scheme."""
    return {parse(url).scheme: url for url in broker.urls}


@pytest.fixture(scope="session")
def served_urls(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The same for ``tieline serve``, a process of its own, whose loop is driven in another way."""
    command = [sys.executable, "-m", "tieline", "serve", "--data", str(tmp_path_factory.mktemp("data"))]
    command += ["--certificate", str(certificates.certificate), "--key", str(certificates.key), "--log-level", "error"]
    for scheme in _SCHEMES:
        command += ["--listen", f"{scheme}://127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = addresses(process.stdout.readline())
        try:
            yield {parse(url).scheme: url for url in found}
        finally:
            process.terminate()
            output, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, output, errors) == (0, "", "")


@pytest.fixture(scope="session")
def loop_thread() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.close()


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """A Node.js process with mqtt.js, installed beside the project when it is not there yet."""
    program, npm = need("node"), need("npm")
    directory = _HERE.parent.parent / ".peers" / "mqttjs"
    try:
        install(npm, directory)
    except (subprocess.SubprocessError, OSError) as problem:
        if os.environ.get("CI") == "true":
            raise
        said = getattr(problem, "stderr", None) or problem
        pytest.skip(f"mqtt.js cannot be installed here: {said}")
    process = Node(program, directory)
    yield process
    process.close()


class Connect(Protocol):
    """Connects a client of the kind that the test is about."""

    kind: type[Client]
    version: int

    def __call__(self, client_id: str, *, version: int | None = None, **options: Any) -> Client:
        """``client_id`` is made unique, but the same within one test; options are those of ``Options``."""


class _Connector:
    def __init__(self, request: pytest.FixtureRequest, kind: type[Client], version: int, where: Where) -> None:
        self._request = request
        self._where = where
        self._prefix = f"{kind.name}-{next(_serial)}"
        self._connected: list[Client] = []
        self.kind = kind
        self.version = version

    def __call__(self, client_id: str, *, version: int | None = None, **options: Any) -> Client:
        wanted = Options(client_id=f"{self._prefix}-{client_id}", version=version or self.version, **options)
        client = self._make(wanted)
        self._connected.append(client)
        return client

    def _make(self, options: Options) -> Client:
        if self.kind is PahoClient:
            return PahoClient(self._where, options)
        if self.kind is MqttjsClient:
            return MqttjsClient(self._where, options, self._request.getfixturevalue("node"))
        thread: LoopThread = self._request.getfixturevalue("loop_thread")
        return (AiomqttClient if self.kind is AiomqttClient else GmqttClient)(self._where, options, thread)

    def close(self) -> None:
        for client in self._connected:
            client.close()


def _connector(
    request: pytest.FixtureRequest, kind: type[Client], version: int, scheme: str, urls: dict[str, str]
) -> Iterator[_Connector]:
    address = parse(urls[scheme])
    authority = request.getfixturevalue("certificates").authority
    where = Where(scheme=scheme, host=address.host, port=address.port, authority=authority)
    connector = _Connector(request, kind, version, where)
    yield connector
    connector.close()


@pytest.fixture(
    params=[pytest.param((kind, version), id=f"{kind.name}-{version}") for kind in _KINDS for version in (4, 5)]
)
def connect(request: pytest.FixtureRequest, urls: dict[str, str]) -> Iterator[Connect]:
    """Each client in both versions of the protocol, over TCP."""
    kind, version = request.param
    yield from _connector(request, kind, version, "tcp", urls)


@pytest.fixture(params=[pytest.param(kind, id=kind.name) for kind in _KINDS])
def connect_5(request: pytest.FixtureRequest, urls: dict[str, str]) -> Iterator[Connect]:
    """Each client in MQTT 5, over TCP."""
    yield from _connector(request, request.param, 5, "tcp", urls)


@pytest.fixture(
    params=[
        pytest.param((kind, version, scheme), id=f"{kind.name}-{version}-{scheme}")
        for kind in _KINDS
        for version in (4, 5)
        for scheme in kind.schemes
    ]
)
def connect_over(request: pytest.FixtureRequest, served_urls: dict[str, str]) -> Iterator[Connect]:
    """Each client in both versions over each kind of listener of ``tieline serve``."""
    kind, version, scheme = request.param
    yield from _connector(request, kind, version, scheme, served_urls)


@pytest.fixture
def topic() -> str:
    """A topic that no other test uses."""
    return f"interop/{next(_serial)}"
