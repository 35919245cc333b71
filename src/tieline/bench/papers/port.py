"""The papers' blocked port: a subscriber that takes 128 kB a second, whatever is sent to it.

Real sockets, no root: the subscriber's receive buffer is small and it reads at a fixed rate, so TCP holds the broker
back as a thin link would.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

from tieline.bench.load.endpoint import Endpoint
from tieline.bench.priority.nodes import Receive, SlowReader, open_node, subscribe
from tieline.bench.priority.stage import Stage

BYTES_PER_S = 128_000.0
_RECEIVE_BUFFER = 2_304
_SEGMENT = 536


def open_port(
    at: Endpoint,
    stage: Stage,
    name: str,
    filters: Sequence[str],
    receive: Receive,
    wishes: Mapping[str, str] | None = None,
) -> socket.socket:
    """A subscriber with a blocked port; ``wishes`` are the user properties of its SUBSCRIBE."""
    sock = open_node(at.host, at.port, name, receive_buffer=_RECEIVE_BUFFER, segment=_SEGMENT)
    subscribe(sock, filters, wishes)
    SlowReader(sock, stage, receive, bytes_per_s=BYTES_PER_S)
    return sock
