"""A thin pipe: bytes from a broker to one client pass at a stated rate, as over a radio link.

The client is a stock one and knows nothing of it.  The pipe itself holds next to nothing, so that what waits does so in
the broker, where urgent messages can still overtake.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

#: Bytes taken at once, and what the kernel is asked to hold; it doubles that number.
_PORTION: Final = 512
_RECEIVE_BUFFER: Final = 2_048


class Pipe:
    """Accepts one connection on a local port, and leads it to the broker."""

    def __init__(self, port: int, *, bytes_per_s: float) -> None:
        self._broker_port = port
        self._bytes_per_s = bytes_per_s
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._lead, daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for end in (self._listening, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join(timeout=2.0)

    def _lead(self) -> None:
        try:
            client, _address = self._listening.accept()
        except OSError:
            return  # closed before anybody came
        broker = socket.socket()
        broker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)  # before connecting: it sets the window
        broker.connect(("127.0.0.1", self._broker_port))
        self._ends += [client, broker]
        upward = threading.Thread(target=_pass, args=(client, broker, None), daemon=True)
        self._threads.append(upward)
        upward.start()
        _pass(broker, client, self._bytes_per_s)


def _pass(source: socket.socket, target: socket.socket, bytes_per_s: float | None) -> None:
    """Bytes one way, until one of the ends is closed."""
    due = time.monotonic()
    with suppress(OSError):
        while data := source.recv(_PORTION if bytes_per_s else 65_536):
            target.sendall(data)
            if bytes_per_s:
                # Time in which nothing came is lost: a link does not save up its capacity.
                due = max(due, time.monotonic() - _PORTION / bytes_per_s) + len(data) / bytes_per_s
                time.sleep(max(0.0, due - time.monotonic()))
