"""A broker that captures what it is sent, and the log server beside it: two processes on one data directory."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from tieline.bench.load.job import Failure
from tieline.bench.peers.peer import free_ports
from tieline.bench.pipeline.processes import Process, our_path, our_program
from tieline.bench.pipeline.readings import EVENT_TYPE, Readings, payloads, topics
from tieline.wire.encode import encode
from tieline.wire.frames import Framer
from tieline.wire.packets import Connack, Connect, Packet, Puback, Publish

_HOST: Final = "127.0.0.1"
_PATIENCE_S: Final = 120.0
_LARGEST: Final = 268_435_460
#: Messages written in one go, and between two acknowledged ones: a broker is not asked to hold more than that.
_PORTION: Final = 2_000


class Station:
    """One broker, its store and its log server."""

    def __init__(self, folder: Path, *, name: str = "bench") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port, self._log_port = free_ports(2)
        self.config = folder / "tieline.toml"
        self.config.write_text(
            f'name = "{name}"\ndata = "{folder / "data"}"\n[mqtt]\nsys_interval_s = 0\n[log]\ncapture = ["#"]\n'
            f'[[listener]]\nurl = "tcp://{_HOST}:{self.port}"\n{EVENT_TYPE}'
        )
        self.broker = Process(
            "broker", our_program("serve", "--config", str(self.config)), folder / "broker.log", environment=our_path()
        )
        serve = our_program("log", "serve", "--config", str(self.config), "--url", self.url)
        self.log_server = Process("log server", serve, folder / "log-server.log", environment=our_path())

    @property
    def url(self) -> str:
        """Where the log is served."""
        return f"http://{_HOST}:{self._log_port}"

    def start(self) -> None:
        """Start both and wait until they are ready."""
        self.start_broker()
        self.start_log_server()

    def start_broker(self) -> None:
        """Start the broker alone."""
        self.broker.start()
        self.broker.wait_until_ready(" ready: ")

    def start_log_server(self) -> None:
        """Start the log server alone."""
        self.log_server.start()
        self.log_server.wait_until_ready(" ready: ")

    def stop(self) -> None:
        """End the log server and then the broker."""
        self.log_server.stop()
        self.broker.stop()


@contextmanager
def running(folder: Path, *, name: str = "bench") -> Iterator[Station]:
    """A station that ends with the block."""
    station = Station(folder, name=name)
    try:
        station.start()
        yield station
    finally:
        station.stop()


def publish(station: Station, rows: Readings) -> None:
    """Publish readings over one connection, QoS 0 with ``seq``; returns when the broker has taken all of them."""
    with closing(socket.create_connection((_HOST, station.port), _PATIENCE_S)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        framer = Framer(_LARGEST, 5)
        sock.sendall(encode(Connect(version=5, client_id="meters"), 5))
        _expect(sock, framer, Connack)
        written, waiting = 0, b""
        where, what = topics(rows).to_pylist(), payloads(rows).to_pylist()
        for place, (topic, payload) in enumerate(zip(where, what, strict=True)):
            # QoS 0 has no answer: the last one of each portion has, and behind it the broker has all of the portion
            is_last = written + 1 == _PORTION or place + 1 == len(rows)
            message = Publish(
                topic=topic,
                payload=payload,
                qos=int(is_last),
                packet_id=int(is_last),
                properties={"user_property": [("seq", f"bench/{rows.first + place}")]},
            )
            waiting += encode(message, 5)
            written += 1
            if is_last:
                sock.sendall(waiting)
                _expect(sock, framer, Puback)
                written, waiting = 0, b""


def _expect(sock: socket.socket, framer: Framer, kind: type[Packet]) -> None:
    while True:
        data = sock.recv(65_536)
        if not data:
            raise Failure("the broker closed the connection")
        for packet in framer.feed(data):
            if isinstance(packet, kind):
                return
