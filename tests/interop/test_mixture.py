"""Many senders and receivers at once, on all listeners and in both versions: nothing lost, doubled or reordered.

Messages come alone, in runs, while the receiver reads and while it does not: whichever way through the broker each one
takes, a receiver must not be able to tell.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.kits.certificates import Certificates
from tests.kits.dial import Dial
from tests.kits.patience import until
from tests.kits.websocket import WebSocketDial
from tieline.pytest_plugin import BrokerThread
from tieline.wire.encode import encode
from tieline.wire.packets import Connack, Connect, Packet, Puback, Publish, Suback, Subscribe, Subscription

_SCHEMES = ("tcp", "tls", "ws", "wss")


class _Peer:
    """A raw client over any listener."""

    def __init__(self, url: str, certificates: Certificates, version: int, client_id: str) -> None:
        context = certificates.context() if url.startswith(("tls", "wss")) else None
        self._dial = (WebSocketDial if url.startswith("ws") else Dial)(url, version=version, context=context)
        self._receive: Callable[[], Packet | None] = (
            self._dial.packet if isinstance(self._dial, WebSocketDial) else self._dial.receive
        )
        self.version = version
        self.send(Connect(version=version, client_id=client_id))
        assert isinstance(self.receive(), Connack)

    def send(self, *packets: Packet) -> None:
        """All of them in one go, which over WebSocket is one frame."""
        self._dial.send(b"".join(encode(packet, self.version) for packet in packets))

    def receive(self) -> Packet:
        packet = self._receive()
        assert packet is not None, "the broker has closed the connection"
        return packet

    def subscribe(self, filter_: str, qos: int) -> None:
        self.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter=filter_, qos=qos),)))
        assert isinstance(self.receive(), Suback)

    def take(self, count: int) -> Iterator[Publish]:
        """The next messages, acknowledged."""
        while count:
            packet = self.receive()
            if isinstance(packet, Publish):
                if packet.qos:
                    self.send(Puback(packet_id=packet.packet_id))
                count -= 1
                yield packet

    def close(self) -> None:
        self._dial.sock.close()


@pytest.fixture
def peers(
    request: pytest.FixtureRequest, certificates: Certificates, topic: str
) -> Iterator[Callable[[str, int], _Peer]]:
    """Makes peers of the embedded broker, or of the one that a parameter names."""
    urls: dict[str, str] = request.getfixturevalue(getattr(request, "param", "urls"))
    with ExitStack() as stack:
        made: list[_Peer] = []

        def make(scheme: str, version: int) -> _Peer:
            peer = _Peer(urls[scheme], certificates, version, f"{topic}/{len(made)}")
            made.append(peer)
            stack.callback(peer.close)
            return peer

        yield make


@pytest.mark.parametrize("peers", ["urls", "served_urls"], indirect=True, ids=["embedded", "served"])
@pytest.mark.parametrize("qos", [0, 1])
def test_everybody_hears_everybody_in_order(peers: Callable[[str, int], _Peer], topic: str, qos: int) -> None:
    amount = 200
    kinds = [(scheme, version) for scheme in _SCHEMES for version in (4, 5)]
    receivers = [peers(*kind) for kind in kinds]
    for receiver in receivers:
        receiver.subscribe(f"{topic}/+", qos)
    senders = [peers(*kind) for kind in kinds]

    def send(number: int, sender: _Peer) -> None:
        chance = random.Random(number)
        name = f"{topic}/{number}"
        sent = 0
        while sent < amount:
            run = min(chance.choice((1, 1, 1, 2, 3, 20)), amount - sent)
            sender.send(
                *(
                    Publish(
                        topic=name,
                        payload=b"%d" % one + bytes(chance.choice((0, 10, 3_000))),
                        qos=qos,
                        packet_id=qos * (one + 1),
                    )
                    for one in range(sent, sent + run)
                )
            )
            sent += run

    threads = [threading.Thread(target=send, args=one) for one in enumerate(senders)]
    for thread in threads:
        thread.start()
    heard: list[dict[str, list[int]]] = []
    for receiver in receivers:
        mine: dict[str, list[int]] = {}
        for message in receiver.take(amount * len(senders)):
            mine.setdefault(message.topic, []).append(int(message.payload.rstrip(b"\0")))
        heard.append(mine)
    for thread in threads:
        thread.join()
    assert heard == [{f"{topic}/{number}": list(range(amount)) for number in range(len(senders))}] * len(receivers)


@pytest.mark.parametrize("scheme", _SCHEMES)
@pytest.mark.parametrize("version", [4, 5])
def test_a_receiver_that_pauses_finds_everything_in_order(
    peers: Callable[[str, int], _Peer], topic: str, broker: BrokerThread, scheme: str, version: int
) -> None:
    receiver, sender = peers(scheme, version), peers("tcp", version)
    receiver.subscribe(topic, 0)
    size, count = 50_000, 0

    def queued() -> int:
        return broker.ask(lambda core: core.queued_bytes)

    # the broker is everybody's, and what sessions of other tests left behind is not ours
    others = queued()
    # one at a time, until the kernel takes no more and messages wait in the broker
    while queued() == others:
        sender.send(Publish(topic=topic, payload=b"%06d" % count + bytes(size)))
        count += 1
    for _ in range(20):
        sender.send(*(Publish(topic=topic, payload=b"%06d" % (count + more) + bytes(size)) for more in range(2)))
        count += 2
    for _ in range(20):
        sender.send(Publish(topic=topic, payload=b"%06d" % count))
        count += 1
    assert [int(message.payload[:6]) for message in receiver.take(count)] == list(range(count))
    until(lambda: queued() == others, "nothing of ours waits")
    # and the connection is as good as new
    for number in range(count, count + 5):
        sender.send(Publish(topic=topic, payload=b"%06d" % number))
        (message,) = receiver.take(1)
        assert int(message.payload) == number
