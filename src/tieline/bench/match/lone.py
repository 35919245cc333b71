"""One event at a time: nothing to be handled together with it, so nothing hides what a single one takes."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence

from tieline.bench.load.clients import PATIENCE_S
from tieline.bench.load.failure import Garbled, Refused, Stalled
from tieline.bench.load.quantile import quantile
from tieline.bench.load.stream import Stream


def lone_p50_us(
    publisher: socket.socket, subscribers: Sequence[socket.socket], stream: Stream, owners: Sequence[int], count: int
) -> float:
    """Median time from sending a message to its arrival at its owner, each sent when the one before has arrived."""
    size = stream.layout.packet
    took: list[int] = []
    sockets = (publisher, *subscribers)
    for sock in sockets:
        sock.settimeout(PATIENCE_S)
    try:
        for number in range(count):
            place = number % stream.count
            sent = bytes(stream.data[place * size : (place + 1) * size])
            receiver = subscribers[owners[place]]
            began = time.perf_counter_ns()
            publisher.sendall(sent)
            got = receiver.recv(size)
            took.append(time.perf_counter_ns() - began)
            while len(got) < size:
                more = receiver.recv(size - len(got))
                if not more:
                    raise Refused("the broker closed a subscriber's connection")
                got += more
            if got != sent:
                raise Garbled(f"message {place} differs from the one sent")
    except TimeoutError as error:
        raise Stalled(f"message {len(took)} did not reach its subscriber within {PATIENCE_S:.0f} s") from error
    finally:
        for sock in sockets:
            sock.setblocking(False)
    return quantile(sorted(took), 0.5) / 1e3
