"""A house with secrets in it: a broker and a log server as processes, and somebody at each door who writes down
every byte that comes out."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

from tests.kits.dial import Dial, addresses, read_to_end
from tests.kits.patience import PATIENCE_S, until
from tests.kits.websocket import WebSocketDial
from tests.net.auth.users import write_users
from tieline.wire.encode import encode
from tieline.wire.packets import Connack, Connect, Packet

CONFIG: Final = """\
data = "data"

[[listener]]
url = "tcp://127.0.0.1:0"

[[listener]]
url = "ws://127.0.0.1:0"

[http]
url = "http://127.0.0.1:0"

[auth]
password_file = "users"
anonymous = "loopback"
failures = "none"

[mqtt]
sys_interval_s = 1

[log]
capture = ["#"]
events = "on"
period = "1s"
readers = ["onyx-reader"]

[event.gauges]
topic = "open/vault/+"
attributes = [{ name = "gauge", bounds = [0, 100] }, { name = "mode", kind = "category" }]

[[rule]]
allow = "all"
filter = "#"
users = ["boss"]

[[rule]]
allow = "all"
filter = "$SYS/#"
users = ["boss"]

[[rule]]
deny = "all"
filter = "open/vault/#"

[[rule]]
deny = ["subscribe"]
filter = "hall/onyx-cellar/#"

[[rule]]
allow = ["read", "subscribe"]
filter = "$SYS/#"
users = ["watch"]

[[rule]]
allow = "all"
filter = "open/#"

[[rule]]
allow = "all"
filter = "hall/#"

[[rule]]
allow = "all"
filter = "inbox/%u/#"
"""

#: Users and their passwords.
USERS: Final = {"boss": "b", "guest": "g", "watch": "w"}

#: In every secret topic, payload, property; in the name of every client of the boss.
TOPIC, PAYLOAD, PROPERTY, CLIENT = MARKS = (b"onyx", b"topaz", b"beryl", b"jasper")


class Ear:
    """A socket whose every received byte is kept."""

    def __init__(self, sock: socket.socket, heard: list[bytes]) -> None:
        self._sock = sock
        self._heard = heard

    def recv(self, size: int) -> bytes:
        """As a socket's."""
        data = self._sock.recv(size)
        self._heard.append(data)
        return data

    def __getattr__(self, name: str) -> Any:
        """Everything else is the socket's own."""
        return getattr(self._sock, name)


class Guest:
    """Somebody who tries doors, by user name; None is nobody in particular."""

    def __init__(self, house: House, user: str | None) -> None:
        self._house = house
        self.user = user
        self.login: dict[str, Any] = {}
        if user is not None:
            self.login = {"username": user, "password": USERS[user].encode()}
        #: Every byte that any door gave away.
        self.heard: list[bytes] = []

    def dial(self, *, version: int = 5) -> Dial:
        """An MQTT connection that has not said anything yet."""
        client = Dial(self._house.urls[0], version=version)
        client.sock = cast("socket.socket", Ear(client.sock, self.heard))
        return client

    def enter(self, client_id: str, *, version: int = 5, **fields: Any) -> Dial:
        """A client that has been let in."""
        client = self.dial(version=version)
        answer = client.connect(client_id, **self.login, **fields)
        assert answer.reason == 0, answer
        return client

    def over_websocket(self, client_id: str) -> WebSocketDial:
        """The same through the other listener."""
        client = WebSocketDial(self._house.urls[1])
        client.sock = cast("socket.socket", Ear(client.sock, self.heard))
        client.send(encode(Connect(version=5, client_id=client_id, **self.login), 5))
        answer = client.packet()
        assert isinstance(answer, Connack) and answer.reason == 0
        return client

    def fetch(self, port: int, path: str, method: str = "GET", body: bytes = b"") -> tuple[int, bytes]:
        """Status, and the whole answer as it came over the wire."""
        head = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", f"Content-Length: {len(body)}"]
        if self.user is not None:
            token = b64encode(f"{self.user}:{USERS[self.user]}".encode()).decode()
            head.append(f"Authorization: Basic {token}")
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock:
            sock.sendall("\r\n".join([*head, "", ""]).encode() + body)
            answer = read_to_end(sock)
        self.heard.append(answer)
        return int(answer.split(b" ", 2)[1]), answer

    def knows(self, *marks: bytes) -> set[bytes]:
        """Which marks are anywhere in what was heard."""
        everything = b"".join(self.heard)
        return {mark for mark in marks or MARKS if mark in everything}


class House:
    """The processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[str]] = []
        self._brokers: list[subprocess.Popen[str]] = []
        self.data = folder / "data"
        self.config = folder / "broker.toml"
        self.config.write_text(CONFIG)
        write_users(folder / "users", **USERS)
        self.urls: list[str] = []
        self.http = self.log = 0

    def open(self, *, with_log: bool = True) -> None:
        """Start, and learn where everything listens."""
        errors = self._folder / f"errors-{len(self._processes)}"
        self.urls = addresses(self._start(errors, "serve"))
        self._brokers.append(self._processes[-1])
        found = until(lambda: re.findall(r"http://127\.0\.0\.1:(\d+) answers", errors.read_text()), "HTTP is open")
        self.http = int(found[0])
        if with_log:
            url = self._start(self._folder / "log-errors", "log", "serve", "--url", "http://127.0.0.1:0").split()[-1]
            self.log = int(url.rpartition(":")[2])

    def _start(self, errors: Path, *words: str) -> str:
        command = [sys.executable, "-m", "tieline", *words, "--config", str(self.config)]
        with errors.open("w") as told:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=told, text=True)
        self._processes.append(process)
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert " ready: " in ready, errors.read_text()
        return ready

    def kill(self) -> None:
        """The broker ends in the middle of whatever it does."""
        self._brokers[-1].kill()
        self._brokers[-1].wait()

    def close(self) -> None:
        """Stop what still runs."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()


@contextmanager
def opened(folder: Path, *, with_log: bool = True) -> Iterator[House]:
    """A house, as long as the block runs."""
    house = House(folder)
    try:
        house.open(with_log=with_log)
        yield house
    finally:
        house.close()


def everything_until(client: Dial, payload: bytes) -> list[Packet]:
    """The packets up to a message with this payload, which everything else was published before."""
    got: list[Packet] = []
    while True:
        packet = client.receive()
        assert packet is not None, "the broker has closed"
        got.append(packet)
        if getattr(packet, "payload", None) == payload:
            return got
