"""aedes, the Node.js broker, from its own directory of npm packages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

from tieline.bench.peers.peer import Peer, Place, executable, first_line, peers_directory

_SERVER = """\
import net from 'node:net'
import { Aedes } from 'aedes'
const broker = await Aedes.createBroker()
net.createServer({ noDelay: true }, broker.handle).listen(Number(process.argv[2]), '127.0.0.1')
"""


class Aedes(Peer):
    """aedes with its in-memory persistence; MQTT 3.1.1."""

    name: ClassVar[str] = "aedes"
    install: ClassVar[str] = "tieline bench peers aedes"
    has_v5: ClassVar[bool] = False

    def version(self) -> str | None:
        """From the package's own description, with the version of Node."""
        try:
            about = json.loads((home() / "node_modules" / "aedes" / "package.json").read_text())
        except OSError:
            return None
        node = executable("node")
        runtime = first_line([node, "--version"]) if node else None
        return f"{about['version']} on Node {runtime.removeprefix('v')}" if runtime else None

    def command(self, place: Place) -> list[str]:
        """The script stands beside node_modules, where Node resolves imports from."""
        script = home() / "server.mjs"
        script.write_text(_SERVER)
        return [executable("node") or "node", str(script), str(place.port)]


def home() -> Path:
    """Directory of the npm packages."""
    return peers_directory() / "aedes"
