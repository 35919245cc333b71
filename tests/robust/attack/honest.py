"""Honest clients: pairs that play ping-pong at a steady pace, and write down how long each round took.

A ball is thrown when its time has come, whether or not the one before is back.  A round counts from the time for which
it was planned, so that a broker that stands still for a second shows as many late rounds as there would have been.
They run in a process of their own, which does nothing else.
"""

from __future__ import annotations

import multiprocessing
import select
import struct
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from time import monotonic
from typing import Final

from tests.kits.dial import dial
from tieline.wire.encode import encode
from tieline.wire.frames import Framer
from tieline.wire.packets import Packet, Puback, Publish

#: Pairs of each QoS, and the time between two balls of a pair.
PAIRS: Final = 4
PACE_S: Final = 0.02
#: How long the last balls may take before they count as lost.
PATIENCE_S: Final = 10.0
_LARGEST: Final = 268_435_460
_BALL: Final = struct.Struct(">Qd")


@dataclass(slots=True)
class Rounds:
    """What one period of play was like."""

    #: For when each round was planned, and the seconds that it took.
    times: list[tuple[float, float]] = field(default_factory=list)
    #: Rounds that never ended.
    lost: int = 0
    #: Why a client could not go on; empty if all could.
    trouble: str = ""
    #: All rounds that were planned before have come back.
    settled: float = 0.0

    def add(self, more: Rounds) -> None:
        """The same, and what happened afterwards."""
        self.times += more.times
        self.lost += more.lost
        self.trouble = self.trouble or more.trouble
        self.settled = more.settled


class _End:
    """One client's socket."""

    def __init__(self, url: str, name: str, filter_: str, qos: int) -> None:
        client = dial(url, name, keep_alive=0)
        client.subscribe(filter_, qos)
        self.sock = client.sock
        self.sock.setblocking(False)
        self._framer = Framer(_LARGEST, 5)
        self._packet_id = 0
        self._qos = qos
        self._unsent = b""

    def throw(self, topic: str, payload: bytes) -> None:
        """Publish; what the kernel does not take now is sent later."""
        self._packet_id = self._packet_id % 65_535 + 1
        packet_id = self._packet_id if self._qos else None
        self._send(encode(Publish(topic=topic, payload=payload, qos=self._qos, packet_id=packet_id or 0), 5))

    def catch(self) -> list[bytes]:
        """The payloads that have arrived; they are acknowledged."""
        try:
            data = self.sock.recv(65_536)
        except BlockingIOError:
            return []
        if not data:
            raise ConnectionResetError("the broker has closed the connection of an honest client")
        return [payload for packet in self._framer.feed(data) for payload in self._take(packet)]

    def _take(self, packet: Packet) -> list[bytes]:
        if not isinstance(packet, Publish):
            assert isinstance(packet, Puback), f"an honest client is told {packet}"
            return []
        if packet.qos:
            self._send(encode(Puback(packet_id=packet.packet_id), 5))
        return [packet.payload]

    def _send(self, data: bytes) -> None:
        self._unsent += data
        try:
            sent = self.sock.send(self._unsent)
        except BlockingIOError:
            sent = 0
        self._unsent = self._unsent[sent:]


class _Pair:
    """Two clients that throw a ball to and fro."""

    def __init__(self, url: str, number: int, qos: int) -> None:
        name = f"honest-{qos}-{number}"
        #: Out of sight of filters that begin with a wildcard.
        self._there, self._back = f"$honest/{name}/ping", f"$honest/{name}/pong"
        self.first = _End(url, f"{name}-first", self._back, qos)
        self.second = _End(url, f"{name}-second", self._there, qos)
        self._number = 0
        #: Balls that are under way, in order, and for when they were planned.
        self.thrown: dict[int, float] = {}

    def throw(self, planned: float) -> None:
        self._number += 1
        self.thrown[self._number] = planned
        self.first.throw(self._there, _BALL.pack(self._number, planned))

    def answer(self) -> None:
        """The second client throws back whatever it has."""
        for payload in self.second.catch():
            self.second.throw(self._back, payload)

    def count(self, now: float) -> list[tuple[float, float]]:
        """The rounds that have ended: for when they were planned, and what they took."""
        times = []
        for payload in self.first.catch():
            number, planned = _BALL.unpack(payload)
            self.thrown.pop(number, None)
            times.append((planned, now - planned))
        return times


class _Players:
    """All pairs, in one thread."""

    def __init__(self, url: str) -> None:
        self._pairs = [_Pair(url, number, qos) for qos in (0, 1) for number in range(PAIRS)]
        self._poll = select.epoll()
        self._seconds: dict[int, _Pair] = {}
        self._firsts: dict[int, _Pair] = {}
        for pair in self._pairs:
            self._seconds[pair.second.sock.fileno()] = pair
            self._firsts[pair.first.sock.fileno()] = pair
            for sock in (pair.first.sock, pair.second.sock):
                self._poll.register(sock.fileno(), select.EPOLLIN)
        begin = monotonic()
        self._due = [begin + PACE_S * place / len(self._pairs) for place in range(len(self._pairs))]

    def play(self, rounds: Rounds, until: float, *, is_over: bool = False) -> None:
        """Throw and catch until a time; with ``is_over`` only catch, until nothing is under way."""
        while (now := monotonic()) < until and not (is_over and not self._under_way):
            if not is_over:
                for place, due in enumerate(self._due):
                    if due <= now:
                        self._pairs[place].throw(due)
                        self._due[place] = due + PACE_S
            for fd, _ in self._poll.poll(max(0.0, min(*self._due, until) - now) if not is_over else 0.01):
                if fd in self._seconds:
                    self._seconds[fd].answer()
                else:
                    rounds.times += self._firsts[fd].count(monotonic())

    @property
    def _under_way(self) -> int:
        return sum(len(pair.thrown) for pair in self._pairs)

    @property
    def settled(self) -> float:
        """Nothing is under way any more that was planned before."""
        return min([*self._due, *(next(iter(pair.thrown.values())) for pair in self._pairs if pair.thrown)])

    def finish(self, rounds: Rounds) -> None:
        """Wait for what is under way; the rest is lost."""
        self.play(rounds, monotonic() + PATIENCE_S, is_over=True)
        rounds.lost += self._under_way


def _run(url: str, pipe: Connection) -> None:
    players = _Players(url)
    pipe.send("ready")
    is_over = False
    while not is_over:
        rounds = Rounds()
        try:
            while not pipe.poll():
                players.play(rounds, monotonic() + 0.25)
            is_over = pipe.recv() == "end"
            if is_over:
                players.finish(rounds)
        except (OSError, AssertionError) as error:
            rounds.trouble = str(error) or repr(error)
            is_over = True
        rounds.settled = players.settled
        pipe.send(rounds)


class Honest:
    """The process of the honest clients."""

    def __init__(self, url: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_run, args=(url, theirs), daemon=True)
        self._process.start()
        theirs.close()
        assert self._pipe.recv() == "ready"

    def take(self, *, is_last: bool = False) -> Rounds:
        """What happened since the last call; with ``is_last``, to the very end."""
        try:
            self._pipe.send("end" if is_last else "go on")
            rounds: Rounds = self._pipe.recv()
        except (EOFError, BrokenPipeError):
            return Rounds(trouble="the honest clients have ended")
        return rounds

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._pipe.close()
