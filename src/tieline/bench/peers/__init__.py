"""The brokers that are compared: which there are, how each is started, and how a missing one is installed."""

from __future__ import annotations

from tieline.bench.peers.aedes import Aedes
from tieline.bench.peers.amqtt import Amqtt
from tieline.bench.peers.mosquitto import Mosquitto
from tieline.bench.peers.nats import Nats
from tieline.bench.peers.peer import Peer
from tieline.bench.peers.tieline import Tieline

#: The broker under test.
SUBJECT = "tieline"
#: What ratios are taken against.
BASELINE = "mosquitto"


def known_peers() -> dict[str, Peer]:
    """All brokers by name, the subject and the baseline first."""
    peers: list[Peer] = [Tieline(), Mosquitto(), Nats(), Aedes(), Amqtt()]
    return {peer.name: peer for peer in peers}
