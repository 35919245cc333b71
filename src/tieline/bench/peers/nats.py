"""NATS with its MQTT 3.1.1 front end."""

from __future__ import annotations

from typing import ClassVar

from tieline.bench.peers.peer import Peer, Place, executable, first_line
from tieline.bench.ports import free_ports

# MQTT sessions live in JetStream streams, which want a server name and a directory.
_CONFIG = """\
server_name: bench
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

    def version(self) -> str | None:
        """As the program says."""
        program = executable("nats-server")
        line = first_line([program, "--version"]) if program else None
        return line.removeprefix("nats-server: v") if line else None

    def command(self, place: Place) -> list[str]:
        """JetStream in the instance's own directory."""
        (client_port,) = free_ports(1)
        config = place.directory / "nats.conf"
        config.write_text(_CONFIG.format(client_port=client_port, port=place.port, directory=place.directory))
        return [executable("nats-server") or "nats-server", "-c", str(config)]
