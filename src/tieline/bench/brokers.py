"""The brokers that are compared: how each is started, which version is there, and how a missing one is installed."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any, ClassVar  # Any: values of JSON

from tieline.bench.load.job import Failure
from tieline.bench.machine import own_version
from tieline.bench.peer import InstanceResources, Peer, executable, first_line, free_ports, peers_directory

#: The broker under test, and the one that ratios are taken against.
SUBJECT, BASELINE = "tieline", "mosquitto"
_ANSWER_S = 10.0
_INSTALL_S = 600
#: A program that begins like this finds no such library, however it looks for it.
_WITHOUT = "import sys; sys.modules[{library!r}] = None; from tieline.cli.main import main; main()"


def topic_class(name: str, filter: str, level: int, *others: str) -> str:
    """A class of topics as a configuration of ours has it, with other keys as they are."""
    lines = ("[[class]]", f'name = "{name}"', f'filter = "{filter}"', f"level = {level}", *others)
    return "\n".join(lines) + "\n"


class Tieline(Peer):
    """The broker under test: default limits, unless ``configuration`` adds to them.

    It also listens at other ``addresses`` of its network namespace, and runs as if a library were not installed.
    """

    name: ClassVar[str] = "tieline"
    install: ClassVar[str] = "pip install tieline"
    has_tls: ClassVar[bool] = True
    has_store: ClassVar[bool] = True

    def __init__(self, configuration: str = "", *, addresses: Sequence[str] = (), without: str = "") -> None:
        self._configuration = configuration
        self._addresses = addresses
        self._without = without
        self._socket: Path | None = None

    def version(self) -> str | None:
        """Version, whether it is compiled, and the Python it runs on: all three decide the speed."""
        return own_version()

    def command(self, place: InstanceResources) -> list[str]:
        """A listener for each port at each address, from the environment that runs the benchmark."""
        # without a store as its peers are started here: nothing outlives the process
        lines = [] if place.store else ["[store]", 'engine = "memory"']
        for address in ("127.0.0.1", *self._addresses):
            lines += ["[[listener]]", f'url = "tcp://{address}:{place.port}"']
            if place.certificate is not None:
                lines += ["[[listener]]", f'url = "tls://{address}:{place.tls_port}"']
                lines += [f'certificate = "{place.certificate.certificate}"', f'key = "{place.certificate.key}"']
        if self._addresses:
            # the namespace is ours: nobody else is in it
            lines += ["[auth]", 'anonymous = "everywhere"']
        config = place.directory / "tieline.toml"
        config.write_text("\n".join([*lines, self._configuration]) + "\n")
        data = place.store or place.directory
        self._socket = data / "tieline.sock"
        program = ["-c", _WITHOUT.format(library=self._without)] if self._without else ["-m", "tieline"]
        # nobody writes down who comes and goes: the peers do not either
        quiet = ["--log-level", "warning"]
        return [sys.executable, *program, "serve", "--config", str(config), "--data", str(data), *quiet]

    def top(self) -> dict[str, Any]:
        """What the running broker says about itself on its management channel."""
        return self.ask("top")

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        """The running broker's answer to one question on its management channel."""
        if self._socket is None:
            raise Failure("the broker has not been started")
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(_ANSWER_S)
            # its ports answer a moment before its socket is there
            deadline = monotonic() + _ANSWER_S
            while not self._socket.exists() and monotonic() < deadline:
                sleep(0.01)
            try:
                channel.connect(str(self._socket))
                channel.sendall(json.dumps({"do": do, **more}).encode() + b"\n")
                with channel.makefile("rb") as lines:
                    answer: dict[str, Any] = json.loads(lines.readline())
            except (OSError, ValueError) as error:
                raise Failure(f"the management channel did not answer: {error}") from error
        if "error" in answer:
            raise Failure(f"the broker refused {do}: {answer['error']}")
        return answer


# Nothing is logged or dropped, and small packets leave at once: its best case.
_MOSQUITTO = """\
allow_anonymous true
log_dest none
set_tcp_nodelay true
max_queued_messages 0
max_inflight_messages 256
"""


class Mosquitto(Peer):
    """Eclipse mosquitto from the distribution, the C broker that ratios are taken against."""

    name: ClassVar[str] = "mosquitto"
    install: ClassVar[str] = "sudo apt-get install mosquitto"
    has_tls: ClassVar[bool] = True
    has_store: ClassVar[bool] = True

    def __init__(self, *, addresses: Sequence[str] = ()) -> None:
        self._addresses = addresses

    def version(self) -> str | None:
        """The version that the program prints with its help."""
        program = executable("mosquitto")
        line = first_line([program, "-h"]) if program else None
        return line.removeprefix("mosquitto version ") if line else None

    def command(self, place: InstanceResources) -> list[str]:
        """Plain and TLS listeners in one process; with a store, saved as often as it is by default."""
        lines = [_MOSQUITTO, f"persistence {'true' if place.store else 'false'}"]
        if place.store is not None:
            lines.append(f"persistence_location {place.store}/")
        if os.geteuid() == 0:
            lines.append("user root")  # it would otherwise become a user who cannot read the certificate
        lines += [f"listener {place.port} {address}" for address in ("127.0.0.1", *self._addresses)]
        if place.certificate is not None:
            lines.append(f"listener {place.tls_port} 127.0.0.1")
            lines += [f"certfile {place.certificate.certificate}", f"keyfile {place.certificate.key}"]
        config = place.directory / "mosquitto.conf"
        config.write_text("\n".join(lines) + "\n")
        return [executable("mosquitto") or "mosquitto", "-c", str(config)]


# MQTT sessions live in JetStream streams, which want a server name and a directory.
_NATS = """\
server_name: bench-{name}
host: 127.0.0.1
port: {client_port}
jetstream {{ store_dir: "{directory}" }}
mqtt {{ host: 127.0.0.1, port: {port}, max_ack_pending: 256 }}
"""


class Nats(Peer):
    """nats-server from the distribution; version 2.9 has no QoS 2 and no MQTT 5."""

    name: ClassVar[str] = "nats"
    install: ClassVar[str] = "sudo apt-get install nats-server"
    max_qos: ClassVar[int] = 1
    has_v5: ClassVar[bool] = False

    def __init__(self, *, cluster_port: int = 0, routes: Sequence[int] = ()) -> None:
        """With a ``cluster_port`` it is one of several, and ``routes`` are such ports of others."""
        self._cluster_port = cluster_port
        self._routes = routes

    def version(self) -> str | None:
        """The version that the program prints."""
        program = executable("nats-server")
        line = first_line([program, "--version"]) if program else None
        return line.removeprefix("nats-server: v") if line else None

    def command(self, place: InstanceResources) -> list[str]:
        """The MQTT front end, with JetStream in the instance's own directory."""
        (client_port,) = free_ports(1)
        config = place.directory / "nats.conf"
        text = _NATS.format(name=place.port, client_port=client_port, port=place.port, directory=place.directory)
        if self._cluster_port:
            # one with its own port among its routes knows that it is not alone, and waits for others
            urls = ", ".join(f'"nats://127.0.0.1:{port}"' for port in (self._cluster_port, *self._routes))
            text += f"cluster {{ name: bench, listen: 127.0.0.1:{self._cluster_port}, routes: [{urls}] }}\n"
        config.write_text(text)
        return [executable("nats-server") or "nats-server", "-c", str(config)]


_AEDES = """\
import net from 'node:net'
import { Aedes } from 'aedes'
const broker = await Aedes.createBroker()
net.createServer({ noDelay: true }, broker.handle).listen(Number(process.argv[2]), '127.0.0.1')
"""


class Aedes(Peer):
    """The Node.js broker aedes with its in-memory persistence; MQTT 3.1.1."""

    name: ClassVar[str] = "aedes"
    install: ClassVar[str] = "tieline bench peers aedes"
    has_v5: ClassVar[bool] = False

    def version(self) -> str | None:
        """The version from the package's own description, with the version of Node."""
        try:
            about = json.loads((_home(self.name) / "node_modules" / "aedes" / "package.json").read_text())
        except OSError:
            return None
        node = executable("node")
        runtime = first_line([node, "--version"]) if node else None
        return f"{about['version']} on Node {runtime.removeprefix('v')}" if runtime else None

    def command(self, place: InstanceResources) -> list[str]:
        """The script stands beside node_modules, where Node resolves imports from."""
        script = _home(self.name) / "server.mjs"
        script.write_text(_AEDES)
        return [executable("node") or "node", str(script), str(place.port)]


_AMQTT = """\
listeners:
  default:
    type: tcp
    bind: 127.0.0.1:{port}
    max_connections: 20000
plugins:
  amqtt.plugins.authentication.AnonymousAuthPlugin:
    allow_anonymous: true
"""
_VERSION = "import importlib.metadata as m, platform as p; print(m.version('amqtt'), 'on Python', p.python_version())"


class Amqtt(Peer):
    """The asyncio broker amqtt from PyPI, without its logging plugins; MQTT 3.1.1."""

    name: ClassVar[str] = "amqtt"
    install: ClassVar[str] = "tieline bench peers amqtt"
    has_v5: ClassVar[bool] = False

    def version(self) -> str | None:
        """The version that its own environment knows."""
        programs = _home(self.name) / "bin"
        line = first_line([str(programs / "python"), "-c", _VERSION]) if (programs / "amqtt").exists() else None
        return line if line and line[0].isdigit() else None

    def command(self, place: InstanceResources) -> list[str]:
        """Anonymous clients on one TCP listener."""
        config = place.directory / "amqtt.yaml"
        config.write_text(_AMQTT.format(port=place.port))
        return [str(_home(self.name) / "bin" / "amqtt"), "-c", str(config)]


def known_peers() -> dict[str, Peer]:
    """All brokers by name, the subject and the baseline first."""
    peers: list[Peer] = [Tieline(), Mosquitto(), Nats(), Aedes(), Amqtt()]
    return {peer.name: peer for peer in peers}


def _home(name: str) -> Path:
    """The directory in which a broker that no system package brings is installed."""
    return peers_directory() / name


def _install_amqtt() -> None:
    """Make a virtual environment with amqtt from PyPI."""
    home = _home("amqtt")
    home.parent.mkdir(parents=True, exist_ok=True)
    venv.create(home, with_pip=True, symlinks=True)
    _run([str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "amqtt"], home)


def _install_aedes() -> None:
    """Make a directory with aedes from npm."""
    npm = executable("npm")
    if npm is None:
        raise Failure("npm is missing (sudo apt-get install npm)")
    home = _home("aedes")
    home.mkdir(parents=True, exist_ok=True)
    _run([npm, "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(home), "aedes"], home)


#: Peers that can be installed without an administrator, by name; the others are system packages.
INSTALLERS: dict[str, Callable[[], None]] = {"amqtt": _install_amqtt, "aedes": _install_aedes}


def _run(command: list[str], directory: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_INSTALL_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{command[0]} did not end within {_INSTALL_S} s") from error
    if done.returncode != 0:
        tail = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise Failure(f"{Path(command[0]).name} failed: {' / '.join(tail)}")
