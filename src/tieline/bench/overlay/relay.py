"""A relay that stands on a link between brokers: it counts the bytes that pass, and can let the link die."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from typing import Final, Self

_CHUNK: Final = 65_536
#: However little happens, it looks this often whether it is to end, to fall silent or to die.
_LOOK_UP_S: Final = 0.05


class Relay:
    """Accepts on a free loopback port, and connects each who comes with a target port."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        #: Bytes from whoever connected to the target, and back.
        self.forth = self.back = 0
        self._is_over = self._is_silent = self._is_cut = False
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._thread.join()
        self._listening.close()
        for sock in [*self._pairs]:
            sock.close()

    def silence(self) -> None:
        """Pass nothing on any more, and say nothing about it."""
        self._is_silent = True

    def cut(self) -> None:
        """Reset every connection, and those that are tried from now on."""
        self._is_cut = True

    @property
    def bytes(self) -> int:
        """Bytes in both directions."""
        return self.forth + self.back

    def _run(self) -> None:
        near: set[socket.socket] = set()
        while not self._is_over:
            if self._is_cut:
                for sock in [*self._pairs]:
                    _reset(self._pairs.pop(sock))
            if self._is_silent:
                time.sleep(_LOOK_UP_S)
                continue
            ready, _, _ = select.select([self._listening, *self._pairs], [], [], _LOOK_UP_S)
            for sock in ready:
                if sock is self._listening:
                    self._accept(near)
                elif sock in self._pairs:
                    self._pass(sock, is_forth=sock in near)

    def _accept(self, near: set[socket.socket]) -> None:
        one, _ = self._listening.accept()
        if self._is_cut:
            _reset(one)
            return
        try:
            other = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            one.close()
            return
        for sock in (one, other):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        near.add(one)
        self._pairs[one], self._pairs[other] = other, one

    def _pass(self, sock: socket.socket, *, is_forth: bool) -> None:
        other = self._pairs[sock]
        data = b""
        with contextlib.suppress(OSError):
            data = sock.recv(_CHUNK)
            other.sendall(data)
        if not data:
            for each in (sock, other):
                self._pairs.pop(each, None)
                each.close()
        elif is_forth:
            self.forth += len(data)
        else:
            self.back += len(data)


def _reset(sock: socket.socket) -> None:
    """End a connection as a router does that knows nothing of it."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
