"""A small world worth a picture: four joined brokers, a microgrid that loses the grid, and clients of every kind.

Everything is real: brokers are ``tieline serve``, the microgrid is ``tieline sim microgrid``, clients are paho's.  One
link is thin, one subscriber reads slowly, one is away, some ask by content; so every view has something to say.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final  # Any: paho passes on what it was given

from paho.mqtt.client import Client, MQTTMessage, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tieline.sim.microgrid import World
from tieline.sim.microgrid.config import text

#: Brokers, and the links between them with what they carry in a second; who comes first is dialled.  The south asks for
#: so much that its best link is nearly full, also with a plan.
NAMES: Final = ("control", "north", "south", "harbour")
LINKS: Final = (
    ("control", "north", 1_000_000),
    ("control", "south", 112_000),
    ("control", "harbour", 512_000),
    ("north", "harbour", 256_000),
    ("harbour", "south", 64_000),
)
_READY_S: Final = 60.0
_PAUSE_S: Final = 0.02
_WORLD_STEP_S: Final = 0.25
#: When the microgrid loses the grid, after its first reading.
ISLAND_S: Final = 40


class Scene:
    """All processes and clients of the scene; ``page`` is where the control centre's broker shows itself."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._peers = {name: _free_port() for name in NAMES}
        self.ports = {name: _free_port() for name in NAMES}
        self.page = ""
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def start(self) -> None:
        """Brokers first, then whoever listens, then whoever speaks."""
        world = World(seed=1)
        for name in NAMES:
            config = self._folder / f"{name}.toml"
            config.write_text(self._settings(name, world), "utf-8")
            process = self._run(name, "serve", "--config", str(config), "--log-level", "error")
            assert process.stdout is not None
            ready = process.stdout.readline()
            if name == "control":
                self.page = ready.split("page: ")[1].split()[0]
        self._listeners()
        self._speakers()

    def stop(self, name: str) -> None:
        """End one broker, as a loss of power would."""
        self._processes[name].kill()
        self._processes[name].wait()

    def _settings(self, name: str, world: World) -> str:
        listen = [f"tcp://127.0.0.1:{self.ports[name]}", f"peer://127.0.0.1:{self._peers[name]}"]
        lines = [text(world, data=self._folder / name, name=name, listen=listen, readers=[], events=False)]
        lines += ["[http]", 'url = "http://127.0.0.1:0"', ""]
        for here, there, capacity in LINKS:
            if name not in {here, there}:
                continue
            other = there if name == here else here
            lines += ["[[peer]]", f"name = {json.dumps(other)}", f"capacity = {capacity}"]
            if name == there:
                lines.append(f'url = "peer://127.0.0.1:{self._peers[here]}"')
        return "\n".join(lines) + "\n"

    def _run(self, name: str, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-m", "tieline", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._processes[name] = process
        self._stack.callback(_end, process)
        return process

    def _listeners(self) -> None:
        asked = (
            ("control", "control-room", "$where/voltage<207/microgrid/+/+/reading", 0.0),
            ("control", "guard", "$where/frequency<49 or frequency>51/microgrid/+/+/reading", 0.0),
            ("harbour", "storage-1", "$where/delta(frequency)>0.05/microgrid/+/+/reading", 0.0),
            ("south", "maint", "microgrid/+/+/protection", 0.0),
            ("control", "historian", "microgrid/#", 0.0),
            ("harbour", "dashboard", "microgrid/+/+/reading", 0.0),
            ("south", "archive", "microgrid/#", 0.02),
            ("control", "tablet-2", "microgrid/+/+/reading", 0.04),
        )
        for broker, name, wanted, pause_s in asked:
            self._client(broker, name, wanted, pause_s=pause_s)
        self._client("control", "van-7", "microgrid/+/+/reading", qos=1, expiry_s=600).disconnect()

    def _speakers(self) -> None:
        words = ["sim", "microgrid", "--to", f"mqtt://127.0.0.1:{self.ports['north']}", "--seed", "1"]
        self._run("microgrid", *words, "--step", str(_WORLD_STEP_S), "--island", str(ISLAND_S))
        planner = ["plan", "watch", "--config", str(self._folder / "control.toml"), "--every", "10", "--least", "20"]
        self._run("planner", *planner)
        operator = self._client("control", "operator")
        stop = threading.Event()
        thread = threading.Thread(target=_command, args=(operator, stop), daemon=True)
        thread.start()
        self._stack.callback(stop.set)

    def _client(
        self, broker: str, name: str, wanted: str = "", *, qos: int = 0, pause_s: float = 0.0, expiry_s: int = 0
    ) -> Client:
        client = Client(CallbackAPIVersion.VERSION2, name, protocol=MQTTv5)
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = expiry_s
        subscribed = threading.Event()

        def received(_client: Client, _data: Any, _message: MQTTMessage) -> None:
            time.sleep(pause_s)

        def done(*_words: Any) -> None:
            subscribed.set()

        if pause_s:
            client.on_message = received
            client.on_socket_open = _take_little
        client.on_subscribe = done
        client.connect("127.0.0.1", self.ports[broker], keepalive=60, clean_start=True, properties=properties)
        client.loop_start()
        if wanted:
            client.subscribe(wanted, qos)
            if not subscribed.wait(_READY_S):
                raise TimeoutError(f"{name} was not let to subscribe")
        self._stack.callback(client.loop_stop)
        return client


@contextmanager
def playing(folder: Path) -> Iterator[Scene]:
    """The scene, from its beginning to its end; nothing of it stays."""
    with ExitStack() as stack:
        scene = Scene(folder, stack)
        scene.start()
        yield scene


def _take_little(_client: Client, _data: Any, sock: Any) -> None:
    """Have what a slow client does not read wait at its broker, and not in this machine's kernel."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)


def _command(operator: Client, stop: threading.Event) -> None:
    number = 0
    while not stop.wait(_PAUSE_S * 5):
        number += 1
        operator.publish(f"microgrid/cigre-lv/R{number % 15}/command", json.dumps({"action": "hold"}), qos=1)


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
    return port
