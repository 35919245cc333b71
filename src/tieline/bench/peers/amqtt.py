"""amqtt, the asyncio broker from PyPI, from a virtual environment of its own."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from tieline.bench.peers.peer import Peer, Place, first_line, peers_directory

_CONFIG = """\
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
    """amqtt without its logging plugins; MQTT 3.1.1."""

    name: ClassVar[str] = "amqtt"
    install: ClassVar[str] = "tieline bench peers amqtt"
    has_v5: ClassVar[bool] = False

    def version(self) -> str | None:
        """As its environment says."""
        python = home() / "bin" / "python"
        line = first_line([str(python), "-c", _VERSION]) if (home() / "bin" / "amqtt").exists() else None
        return line if line and line[0].isdigit() else None

    def command(self, place: Place) -> list[str]:
        """Anonymous clients on one TCP listener."""
        config = place.directory / "amqtt.yaml"
        config.write_text(_CONFIG.format(port=place.port))
        return [str(home() / "bin" / "amqtt"), "-c", str(config)]


def home() -> Path:
    """The virtual environment."""
    return peers_directory() / "amqtt"
