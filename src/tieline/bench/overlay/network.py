"""Brokers of one kind and the links between them, started as processes on free loopback ports, all ended in the end.

A :class:`~tieline.bench.overlay.relay.Relay` may stand on a link.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

from tieline.bench.brokers import Mosquitto, Nats, Tieline
from tieline.bench.load.clients import clients, subscribe
from tieline.bench.load.job import Endpoint, Failure, Stalled, TurnedDown
from tieline.bench.load.packets import publish
from tieline.bench.overlay.relay import Relay
from tieline.bench.peer import Instance, InstanceResources, Peer, free_ports

#: How long links may take to come up.
_UP_S = 30.0
_PROBE_S = 0.05
#: Which broker joins which earlier one.
Edges = Sequence[tuple[int, int]]


def line(brokers: int) -> Edges:
    """One behind the other."""
    return [(number, number - 1) for number in range(1, brokers)]


def cycle(brokers: int) -> Edges:
    """A line whose ends are joined, too."""
    return [*line(brokers), (brokers - 1, 0)]


def mesh(brokers: int) -> Edges:
    """A cycle with chords: about three links for each broker."""
    return [*cycle(brokers), *((number, number - 3) for number in range(3, brokers, 2))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Where an earlier broker can be reached: by clients, and by brokers where that is another port."""

    port: int
    peer_port: int


class Joinable(ABC):
    """A kind of broker that can be joined with others of its kind."""

    name: ClassVar[str]

    @abstractmethod
    def make(self, number: int, peer_port: int, neighbours: Sequence[Neighbour]) -> Peer:
        """The broker of a number, which listens for others and joins its neighbours."""

    @abstractmethod
    def single(self) -> Peer:
        """A broker of this kind that is joined with nobody."""

    @abstractmethod
    def target(self, neighbour: Neighbour) -> int:
        """The port that a link leads to."""


class Member(Tieline):
    """One of several joined brokers of our own, named by its number; ``joins`` are ports of brokers to connect to."""

    def __init__(self, number: int, configuration: str, *, joins: Sequence[int] = ()) -> None:
        super().__init__(configuration)
        self._number = number
        self._joins = joins

    def command(self, place: InstanceResources) -> list[str]:
        """As ever, with a name and the brokers that it joins."""
        joined = [word for port in self._joins for word in ("--join", f"peer://127.0.0.1:{port}")]
        return [*super().command(place), "--name", f"b{self._number}", *joined]

    @property
    def socket(self) -> Path:
        """Where it is asked, once it has been started."""
        if self._socket is None:
            raise Failure("the broker has not been started")
        return self._socket


class JoinedTieline(Joinable):
    """Brokers of our own."""

    name: ClassVar[str] = Tieline.name

    def __init__(self, configuration: str = "") -> None:
        self._configuration = configuration

    def make(self, number: int, peer_port: int, neighbours: Sequence[Neighbour]) -> Peer:
        """It listens for brokers on a port of its own."""
        listening = f'[[listener]]\nurl = "peer://127.0.0.1:{peer_port}"\n{self._configuration}'
        return Member(number, listening, joins=[each.peer_port for each in neighbours])

    def single(self) -> Peer:
        """It does not listen for others either."""
        return Tieline(self._configuration)

    def target(self, neighbour: Neighbour) -> int:
        """The port for brokers."""
        return neighbour.peer_port


#: Everything in both directions, at once and without notices; as fast as a bridge of it can be.
_BRIDGE = """
connection to{number}
address 127.0.0.1:{port}
topic # both {qos}
cleansession true
notifications false
restart_timeout 1
bridge_max_packet_size 0
"""


class _Bridged(Mosquitto):
    def __init__(self, number: int, ports: Sequence[int], qos: int) -> None:
        super().__init__()
        self._bridges = "".join(
            _BRIDGE.format(number=f"{number}-{place}", port=port, qos=qos) for place, port in enumerate(ports)
        )

    def command(self, place: InstanceResources) -> list[str]:
        """As ever, with a bridge to each neighbour."""
        command = super().command(place)
        config = Path(command[-1])
        config.write_text(config.read_text() + self._bridges)
        return command


class BridgedMosquitto(Joinable):
    """A chain of mosquitto's bridges; they know no cycles."""

    name: ClassVar[str] = Mosquitto.name

    def __init__(self, qos: int) -> None:
        self._qos = qos

    def make(self, number: int, peer_port: int, neighbours: Sequence[Neighbour]) -> Peer:
        """A bridge to every neighbour."""
        return _Bridged(number, [each.port for each in neighbours], self._qos)

    def single(self) -> Peer:
        """It has no bridge."""
        return Mosquitto()

    def target(self, neighbour: Neighbour) -> int:
        """A bridge is a client."""
        return neighbour.port


class ClusteredNats(Joinable):
    """A cluster of nats-server, whose MQTT sessions are in JetStream."""

    name: ClassVar[str] = Nats.name

    def make(self, number: int, peer_port: int, neighbours: Sequence[Neighbour]) -> Peer:
        """A route to every neighbour."""
        return Nats(cluster_port=peer_port, routes=[each.peer_port for each in neighbours])

    def single(self) -> Peer:
        """It is in no cluster."""
        return Nats()

    def target(self, neighbour: Neighbour) -> int:
        """The port for others of the cluster."""
        return neighbour.peer_port


class Network:
    """Running brokers and the links between them."""

    def __init__(
        self, kind: Joinable, brokers: int, edges: Edges, *, disk: Path | None = None, counts: bool = False
    ) -> None:
        """With ``counts`` a relay stands on every link."""
        self._kind = kind
        self._brokers = brokers
        self._edges = edges
        self._disk = disk
        self._counts = counts
        self._stack = ExitStack()
        self.instances: list[Instance] = []
        self.endpoints: list[Endpoint] = []
        self.relays: list[Relay] = []

    def __enter__(self) -> Self:
        places: list[Neighbour] = []
        try:
            for number in range(self._brokers):
                (peer_port,) = free_ports(1)
                earlier = [self._via(places[other]) for one, other in self._edges if one == number]
                instance = Instance(self._kind.make(number, peer_port, earlier), None, disk=self._disk)
                self._stack.callback(instance.stop)
                self.instances.append(instance)
                self.endpoints.append(instance.start())
                places.append(Neighbour(port=self.endpoints[-1].port, peer_port=peer_port))
            self.wait()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _via(self, neighbour: Neighbour) -> Neighbour:
        if not self._counts:
            return neighbour
        relay = self._stack.enter_context(Relay(self._kind.target(neighbour)))
        self.relays.append(relay)
        return Neighbour(port=relay.port, peer_port=relay.port)

    def between(self, inlet: int, outlet: int) -> Endpoint:
        """Publishers at one broker and subscribers at another; what all brokers cost counts."""
        others = tuple(each.pid for number, each in enumerate(self.endpoints) if number != outlet)
        return replace(self.endpoints[outlet], inlet=self.endpoints[inlet].port, others=others)

    @property
    def pids(self) -> list[int]:
        """The processes of all brokers."""
        return [each.pid for each in self.endpoints]

    def wait(self, numbers: Iterable[int] | None = None) -> float:
        """See a message of each broker arrive at the first; how long that took."""
        began = time.perf_counter()
        for number in range(1, self._brokers) if numbers is None else numbers:
            self.cross(number, 0, began + _UP_S)
        return time.perf_counter() - began

    def cross(self, inlet: int, outlet: int, deadline: float) -> None:
        """See one message get from a broker to another."""
        while True:
            try:
                self._cross(inlet, outlet, deadline)
            except (TurnedDown, ConnectionError):
                # a cluster that is not complete yet lets nobody in
                if time.perf_counter() > deadline:
                    raise
                time.sleep(_PROBE_S)
            else:
                return

    def _cross(self, inlet: int, outlet: int, deadline: float) -> None:
        topic = f"probe/{inlet}/{outlet}"
        with (
            clients(self.endpoints[outlet], [f"probe-sub-{inlet}"]) as (receiver,),
            clients(self.endpoints[inlet], [f"probe-pub-{outlet}"]) as (sender,),
        ):
            subscribe(receiver, [topic])
            receiver.settimeout(_PROBE_S)
            while time.perf_counter() < deadline:
                sender.send(publish(topic, b"here"))
                try:
                    if receiver.recv(4096):
                        return
                except TimeoutError:
                    continue
        raise Stalled(f"nothing came from broker {inlet} to broker {outlet} within {_UP_S:.0f} s")
