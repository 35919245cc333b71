"""Who got what: a round of a stream compared byte for byte, then every subscriber's count; and one event alone."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Sequence
from itertools import islice

from tieline.bench.load.clients import PATIENCE_S
from tieline.bench.load.ends import Client, Sink, Source
from tieline.bench.load.flow import LoadFlow
from tieline.bench.load.job import Garbled, Lost, Stalled, quantile
from tieline.bench.load.latency import passed_on
from tieline.bench.load.packets import Stream

#: Bytes under way during a compared round, and how long none may arrive.
_WINDOW = 262_144
_SILENCE_S = 10.0
#: Bytes under way during a spell: enough work for the broker until the generator looks again.
_LARGEST_WINDOW = 2 << 20


def compare_round(
    publisher: socket.socket, subscribers: Sequence[socket.socket], stream: Stream, owners: Sequence[int]
) -> int:
    """Send every message of a stream once; each must reach its owner, unchanged and in order, and nobody else.

    Returns the number of messages compared.
    """
    with contextlib.closing(select.epoll()) as poller:
        source = Source(publisher, poller, stream, qos=0)
        sinks = [Sink(sock, poller, stream.layout, 0, keep=stream.count) for sock in subscribers]
        clients: dict[int, Client] = {client.fd: client for client in (source, *sinks)}
        size, arrived, last = len(stream.data), 0, time.perf_counter()
        while arrived < size:
            room = min(size - source.sent, _WINDOW - (source.sent - arrived))
            if room > 0 and not source.blocked:
                source.publish(room)
            now = time.perf_counter()
            for fd, event in poller.poll(0.25):
                client = clients[fd]
                if event & select.EPOLLOUT:
                    client.writable()
                if event & ~select.EPOLLOUT and isinstance(client, Sink):
                    arrived += client.readable()
                    last = now
            if now - last > _SILENCE_S:
                raise Lost(
                    f"{(size - arrived) // stream.layout.packet} of {stream.count} compared messages are missing"
                )
    expected = [bytearray() for _ in subscribers]
    packet = stream.layout.packet
    for number, owner in enumerate(owners):
        expected[owner] += stream.data[number * packet : (number + 1) * packet]
    for number, (sink, owed) in enumerate(zip(sinks, expected, strict=True)):
        if sink.kept != owed:
            raise Garbled(f"subscriber {number} did not get the {len(owed) // packet} messages that it asked for")
    return stream.count


def rotated(stream: Stream, owners: Sequence[int], start: int) -> tuple[Stream, list[int]]:
    """The same messages, beginning with another one."""
    cut = start * stream.layout.packet
    data = memoryview(bytes(stream.data[cut:]) + bytes(stream.data[:cut]))
    topics = [*stream.topics[start:], *stream.topics[:start]]
    return Stream(data=data, count=stream.count, topics=topics, layout=stream.layout), [
        *owners[start:],
        *owners[:start],
    ]


class CountedFlow(LoadFlow):
    """A flow in which it is known who is to get each message."""

    def __init__(
        self,
        *,
        publishers: Sequence[tuple[socket.socket, Stream]],
        owners: Sequence[Sequence[int]],
        subscribers: Sequence[socket.socket],
    ) -> None:
        super().__init__(publishers=publishers, subscribers=[(sock, "#") for sock in subscribers], fan=1, qos=0)
        self._owners = owners
        # every message goes to one subscriber, so what each may hold is far more than all of them need
        self._largest = min(self._largest, _LARGEST_WINDOW)

    def count(self) -> int:
        """Check what every subscriber has received since the beginning; returns how many messages that is."""
        owed = [0] * len(self._sinks)
        for source, owners, stream in zip(self._sources, self._owners, self._streams, strict=True):
            rounds, rest = divmod(source.sent // self._packet, stream.count)
            for owner in owners:
                owed[owner] += rounds
            for owner in islice(owners, rest):
                owed[owner] += 1
        for number, (sink, messages) in enumerate(zip(self._sinks, owed, strict=True)):
            if sink.delivered != messages * self._packet:
                raise Garbled(
                    f"subscriber {number} was to get {messages} messages, and got {sink.delivered / self._packet:g}"
                )
        return sum(owed)


def lone_p50_us(
    publisher: socket.socket, subscribers: Sequence[socket.socket], stream: Stream, owners: Sequence[int], count: int
) -> float:
    """Median time from sending a message to its arrival at its owner, each sent when the one before has arrived."""
    took: list[int] = []
    sockets = (publisher, *subscribers)
    for sock in sockets:
        sock.settimeout(PATIENCE_S)
    try:
        for number in range(count):
            place = number % stream.count
            took.append(passed_on(publisher, subscribers[owners[place]], stream.packet(place)))
    except TimeoutError as error:
        raise Stalled(f"message {len(took)} did not reach its subscriber within {PATIENCE_S:.0f} s") from error
    finally:
        for sock in sockets:
            sock.setblocking(False)
    return quantile(sorted(took), 0.5) / 1e3
