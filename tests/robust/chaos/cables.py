"""A process through which brokers reach each other: it cuts links, silences one direction, and slows them down."""

from __future__ import annotations

import multiprocessing
import select
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any, Final

_CHUNK: Final = 16_384
#: How long the process sleeps at most: commands and slow links are looked after so often.
_TICK_S: Final = 0.01
#: Bytes that wait in one direction before no more are read.
_HELD: Final = 65_536
_MOST_ABANDONED: Final = 100
_RESET: Final = struct.pack("ii", 1, 0)


@dataclass(eq=False)
class Way:
    """One direction of one connection."""

    source: socket.socket
    sink: socket.socket
    is_forth: bool
    waiting: bytearray = field(default_factory=bytearray)
    #: When bytes may go on, on a slow link.
    due: float = 0.0


class Wire:
    """The connections of one link, in the process that carries them."""

    def __init__(self, port: int, target: int) -> None:
        self.listening = socket.create_server(("127.0.0.1", port))
        self._target = target
        self.ways: list[Way] = []
        self.is_cut = False
        #: Directions, as ``is_forth``, in which nothing passes; what is under way waits.
        self.silent: set[bool] = set()
        #: Bytes per second, or None.
        self.rate: float | None = None

    def accept(self) -> None:
        """Somebody connects: so do we, unless the link is cut."""
        one, _ = self.listening.accept()
        try:
            if self.is_cut:
                raise ConnectionRefusedError
            other = socket.create_connection(("127.0.0.1", self._target), 1.0)
        except OSError:
            _reset(one)
            return
        for sock in (one, other):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(False)
        self.ways += [Way(one, other, is_forth=True), Way(other, one, is_forth=False)]

    def cut(self, how: str) -> None:
        """End every connection: both ends hear of it, or the one that accepted or dialled does not."""
        self.is_cut = True
        for way in self.ways:
            if how == "both" or way.is_forth == (how == "dialler"):
                _reset(way.source)
            else:
                # it stays open and silent, as with a cable that was pulled out
                _abandoned.append(way.source)
        while len(_abandoned) > _MOST_ABANDONED:
            _reset(_abandoned.pop(0))
        self.ways.clear()

    def readable(self, now: float) -> list[socket.socket]:
        """What may be read from."""
        return [
            way.source
            for way in self.ways
            if way.is_forth not in self.silent and len(way.waiting) < _HELD and way.due <= now
        ]

    def writable(self, now: float) -> list[socket.socket]:
        """What waits to be written to."""
        return [way.sink for way in self.ways if way.waiting and way.is_forth not in self.silent and way.due <= now]

    def read(self, way: Way) -> None:
        """Take bytes; the end of one direction is that of both."""
        try:
            data = way.source.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._end(way)
        way.waiting += data

    def write(self, way: Way, now: float) -> None:
        """Pass on what waits, no faster than the link is."""
        most = len(way.waiting) if self.rate is None else max(1, int(self.rate * 0.05))
        try:
            sent = way.sink.send(way.waiting[:most])
        except BlockingIOError:
            return
        except OSError:
            self._end(way)
            return
        del way.waiting[:sent]
        if self.rate is not None:
            way.due = now + sent / self.rate

    def _end(self, way: Way) -> None:
        for each in [each for each in self.ways if each.source in (way.source, way.sink)]:
            self.ways.remove(each)
            _reset(each.source)


#: Ends of connections whose other end is gone, and which nobody tells so.
_abandoned: list[socket.socket] = []


def _reset(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    sock.close()


def _run(commands: Connection) -> None:
    wires: dict[int, Wire] = {}
    while True:
        now = monotonic()
        reading = [wire.listening for wire in wires.values()]
        writing = []
        for wire in wires.values():
            reading += wire.readable(now)
            writing += wire.writable(now)
        readers: list[Connection | socket.socket] = [commands, *reading]
        ready = select.select(readers, writing, [], _TICK_S)
        able = {*ready[0], *ready[1]}
        for wire in wires.values():
            if wire.listening in able:
                wire.accept()
            for way in list(wire.ways):
                if way in wire.ways and way.sink in ready[1]:
                    wire.write(way, now)
                if way in wire.ways and way.source in ready[0]:
                    wire.read(way)
        if commands in able:
            try:
                name, number, *rest = commands.recv()
            except EOFError:
                return
            _obey(wires, name, number, *rest)
            commands.send(None)


def _obey(wires: dict[int, Wire], name: str, number: int, *rest: Any) -> None:
    if name == "open":
        wires[number] = Wire(*rest)
    elif name == "cut":
        wires[number].cut(*rest)
    elif name == "mend":
        wires[number].is_cut = False
        wires[number].silent.clear()
        wires[number].rate = None
    elif name == "silence":
        wires[number].silent.add(*rest)
    elif name == "slow":
        (wires[number].rate,) = rest


class Cables:
    """The process, as others see it: cables by number."""

    def __init__(self) -> None:
        self._commands, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=_run, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def _do(self, *command: object) -> None:
        self._commands.send(command)
        self._commands.recv()

    def open(self, number: int, port: int, target: int) -> None:
        """Whoever connects to a port is connected with a target."""
        self._do("open", number, port, target)

    def cut(self, number: int, how: str) -> None:
        """Nothing passes; ``both`` ends hear of it at once, or only the ``dialler`` or the ``acceptor``."""
        self._do("cut", number, how)

    def silence(self, number: int, *, is_forth: bool) -> None:
        """Nothing passes in one direction, and nobody hears of it."""
        self._do("silence", number, is_forth)

    def slow(self, number: int, rate: float) -> None:
        """So many bytes per second pass in each direction of each connection."""
        self._do("slow", number, rate)

    def mend(self, number: int) -> None:
        """Everything passes again."""
        self._do("mend", number)

    def close(self) -> None:
        """End the process."""
        self._commands.close()
        self._process.join(5.0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
