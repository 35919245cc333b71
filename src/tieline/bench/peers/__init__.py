"""The brokers that are compared: which there are, how each is started, and how a missing one is installed."""

from __future__ import annotations

from tieline.bench.peers.brokers import Aedes, Amqtt, Mosquitto, Nats, Tieline
from tieline.bench.peers.peer import Peer

#: The broker under test.
SUBJECT = "tieline"
#: What ratios are taken against.
BASELINE = "mosquitto"


def known_peers() -> dict[str, Peer]:
    """All brokers by name, the subject and the baseline first."""
    peers: list[Peer] = [Tieline(), Mosquitto(), Nats(), Aedes(), Amqtt()]
    return {peer.name: peer for peer in peers}
