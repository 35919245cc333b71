"""Three brokers that behave as one: two feeders and a control centre, joined by thin links.

The links are thin because the settings say so (``[[peer]] capacity``), which takes no rights and no network of its own:
each broker gives a link no more than that, and what has to wait does so where urgent messages overtake it.  The tie
line between the feeders is dear, so that the shortest ways leave it alone; who plans may use it.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tieline.cli.demo.children import Child, Children
from tieline.cli.management import Management, RunningBroker
from tieline.cli.trouble import Trouble

if TYPE_CHECKING:
    from tieline.sim.microgrid import World

NORTH: Final = "north"
SOUTH: Final = "south"
CENTRE: Final = "centre"
NAMES: Final = (CENTRE, NORTH, SOUTH)


class Line(NamedTuple):
    """A link between two brokers: who is dialled, who dials, what it carries in a second and direction, its cost."""

    called: str
    calling: str
    bits_per_s: int
    cost: int


#: The first one carries less than the meters of its feeder say; all of them together carry more.
LINES: Final = (Line(CENTRE, NORTH, 440_000, 1), Line(CENTRE, SOUTH, 2_000_000, 1), Line(NORTH, SOUTH, 1_000_000, 3))
#: How long brokers may take to find each other.
_JOIN_S: Final = 20.0
_LOOK_S: Final = 0.05
#: Signals between devices of both feeders, which bring each other to a stop; more urgent than anything else there is.
INTERLOCK: Final = "interlock/north-south"


@dataclass(slots=True)
class _Broker:
    child: Child
    config: Path
    port: int
    log_url: str = ""


class Brokers:
    """All three, and the log server of each where somebody wants to read logs."""

    def __init__(self, children: Children, folder: Path, world: World, *, with_logs: bool, with_page: bool) -> None:
        self._children = children
        self._folder = folder
        self._world = world
        self._with_logs = with_logs
        self._brokers: dict[str, _Broker] = {}
        self._peer_ports = {line.called: _free_port() for line in LINES}
        #: Where the control centre's broker answers over HTTP, also when it has come back; empty without the extra.
        self.http = f"http://127.0.0.1:{_free_port()}" if with_page else ""

    def start(self) -> None:
        """Start them and wait until they are joined."""
        for name in NAMES:
            config = self._folder / f"{name}.toml"
            config.write_text(self._settings(name, port=0), "utf-8")
            child, port = self._serve(name, config)
            self._brokers[name] = _Broker(child, config, port)
        # a broker that comes back is to be found where it was
        centre = self._brokers[CENTRE]
        centre.config.write_text(self._settings(CENTRE, port=centre.port), "utf-8")
        self._await_links()
        if self._with_logs:
            for name, broker in self._brokers.items():
                words = ("log", "serve", "--config", str(broker.config), "--log-level", "warning")
                server = self._children.start(f"log server {name}", *words, "--url", "http://127.0.0.1:0")
                broker.log_url = f"http://127.0.0.1:{server.ready().port('http')}"

    def reach(self, name: str) -> Management:
        """An open channel to one of them."""
        return RunningBroker(data=self._data(name), name=name).reach()

    def port(self, name: str) -> int:
        """Where clients of a broker connect."""
        return self._brokers[name].port

    def config(self, name: str) -> Path:
        """The settings of a broker."""
        return self._brokers[name].config

    @property
    def log_urls(self) -> Mapping[str, str]:
        """By broker, where its log is read."""
        return {name: broker.log_url for name, broker in self._brokers.items() if broker.log_url}

    def waiting(self) -> int:
        """How many messages wait at the first feeder for its link to the control centre."""
        with self.reach(NORTH) as broker:
            links = broker.ask("net")["own"]
        return sum(each["waiting"] for link in links if link["peer"] == CENTRE for each in link["classes"])

    def kill_centre(self) -> float:
        """End the control centre's broker as a loss of power would, and start it again; seconds until it is ready."""
        broker = self._brokers[CENTRE]
        broker.child.kill()
        begun = time.monotonic()
        broker.child, broker.port = self._serve(CENTRE, broker.config)
        self._await_links()
        return time.monotonic() - begun

    def _serve(self, name: str, config: Path) -> tuple[Child, int]:
        child = self._children.start(name, "serve", "--config", str(config), "--log-level", "warning")
        return child, child.ready().port("tcp")

    def _settings(self, name: str, *, port: int) -> str:
        from tieline.sim.microgrid.config import text

        listen = [f"tcp://127.0.0.1:{port}"]
        if name in self._peer_ports:
            listen.append(f"peer://127.0.0.1:{self._peer_ports[name]}")
        lines = [
            text(self._world, data=self._data(name), name=name, listen=listen, readers=["spark"], events=False),
            "[[class]]",
            'name = "interlock"',
            f"filter = {json.dumps(INTERLOCK)}",
            "level = 3",
        ]
        if name == CENTRE and self.http:
            lines += ["", "[http]", f'url = "{self.http}"']
        for line in LINES:
            if name in (line.called, line.calling):
                other = line.calling if name == line.called else line.called
                lines += ["", "[[peer]]", f'name = "{other}"', f"capacity = {line.bits_per_s}", f"cost = {line.cost}"]
            if name == line.calling:
                lines.append(f'url = "peer://127.0.0.1:{self._peer_ports[line.called]}"')
        return "\n".join(lines) + "\n"

    def _data(self, name: str) -> Path:
        return self._folder / "data" / name

    def _await_links(self) -> None:
        """Until all three are joined with each other."""
        deadline = time.monotonic() + _JOIN_S
        while time.monotonic() < deadline:
            self._children.check()
            if all(self._joined(name) == {*NAMES} - {name} for name in (CENTRE, NORTH)):
                return
            time.sleep(_LOOK_S)
        raise Trouble(f"the brokers did not find each other within {_JOIN_S:g} seconds")

    def _joined(self, name: str) -> set[str]:
        with suppress(Trouble), self.reach(name) as broker:
            return {str(each["peer"]) for each in broker.ask("net")["own"] if each["is_up"]}
        return set()


def _free_port() -> int:
    """A port that nobody listens on; the broker that does so soon says if somebody else was faster."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
    return port
