"""A broker that means harm: it holds the key of the overlay, greets as others do, and then says what it likes."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterable
from itertools import count
from typing import Final

from tests.kits.dial import open_socket
from tieline.overlay.frames.fields import put
from tieline.overlay.frames.frame import ERRANDS, Data, Kind, Notice, Topic, frame, lane_of, numbered, place, tag_of
from tieline.overlay.frames.hello import Hello, put_names, read_hello
from tieline.overlay.frames.inbox import Inbox
from tieline.overlay.interests.entries import Entry, Form, Said, Terms, put_said
from tieline.overlay.links.greeting import Greeting, Self
from tieline.overlay.membership import LinkState

#: The key of the overlay, which one of its brokers has given away.
KEY: Final = b"a secret that somebody has given away"
CLUSTER: Final = "attacked"
#: The number by which a hostile broker means itself, the one by which it means the broker that it attacks, and those of
#: brokers that do not exist.
ME, THEM = 1, 2
GHOSTS: Final = range(3, 40)
#: The life in which it claims to live: later than everybody's.
LIFE: Final = 1 << 40
_PLAIN, _ASSURED = lane_of(0, False, 0), lane_of(0, True, 0)


class Liar:
    """Makes the frames of a hostile broker; everything it says is well formed, and none of it is meant well."""

    def __init__(self, name: str, other: Hello) -> None:
        """``other`` is what the broker that is attacked has said of itself."""
        self.name = name
        self._other = other
        self.incarnation = secrets.randbits(64)
        self._number = count(1)
        self._version = count((LIFE << 24) + 1)
        self._state = count(1)
        self._places = {_PLAIN: 1, _ASSURED: 1, ERRANDS: 1}

    def hello(self) -> bytes:
        """Who it is, and what it has heard: nothing."""
        names = {ME: self.name, THEM: self._other.name, **{number: f"ghost-{number}" for number in GHOSTS}}
        said = Hello(self.name, self.incarnation, LIFE, secrets.randbits(64), 1 << 24, names, {})
        return said.bytes + frame(Kind.RESUME, put(self._other.start, 0))

    def link_state(self, broker: int = ME, neighbours: Iterable[int] = (THEM,)) -> bytes:
        """What some broker is to have said of its links."""
        incarnation = self.incarnation if broker == ME else broker
        return LinkState(broker, LIFE, next(self._state), incarnation, dict.fromkeys(neighbours, 1)).bytes

    def interest(self, entries: Iterable[Entry], broker: int = ME) -> bytes:
        """What some broker is to want, all of it."""
        wanted = dict.fromkeys(entries, Terms(2))
        return frame(Kind.INTEREST, put_said(Said(broker, Form.WHOLE, next(self._version), 0, wanted)))

    def request(self) -> bytes:
        """It asks for everything that the other wants."""
        return frame(Kind.INTEREST, put_said(Said(THEM, Form.REQUEST, 0)))

    def names(self, names: dict[int, str]) -> bytes:
        """Brokers get numbers."""
        return frame(Kind.NAMES, put_names(names))

    def notice(self, topic: Topic, body: bytes) -> bytes:
        """One broker tells another something."""
        return self._numbered(Notice(topic, ME, THEM, body, bytes((ME,))))

    def data(  # what may be chosen of a frame
        self,
        payloads: tuple[bytes, ...] = (),
        *,
        void: int = 0,
        is_assured: bool = False,
        first: int = 0,
        destination: int = THEM,
        is_errand: bool = False,
    ) -> bytes:
        """Messages, or none, in the next place of a stream or in another one."""
        lane = ERRANDS if is_errand else _ASSURED if is_assured else _PLAIN
        count = void or len(payloads)
        if not first:
            first = self._places[lane]
            self._places[lane] += count
        there = tag_of(self._other.incarnation if destination == THEM else destination)
        tag = tag_of(self.incarnation if is_assured or is_errand else LIFE)
        path = bytes((ME,))
        return self._numbered(
            Data(lane, ME, tag, {destination: place(first, there)}, payloads, born=0, path=path, void=void)
        )

    def _numbered(self, item: Data | Notice) -> bytes:
        return b"".join(numbered(next(self._number), item, 0.0))


class HostilePeer(Liar):
    """One link to the broker at an address, which takes it for another broker."""

    def __init__(self, url: str, name: str) -> None:
        self.sock = open_socket(url)
        greeting = Greeting(Self(name, CLUSTER, (KEY,)), secrets.token_hex(16), has_dialled=True)
        rest = b""
        while not greeting.is_over or greeting.out:
            out, greeting.out = greeting.out, b""
            self.sock.sendall(out)
            if not greeting.is_over:
                rest = greeting.take(self._receive())
        inbox, other = Inbox(), None
        while other is None:
            other = next((read_hello(body) for kind, body in inbox.take(rest) if kind is Kind.HELLO), None)
            rest = b"" if other is not None else self._receive()
        super().__init__(name, other)
        self.sock.sendall(self.hello())

    def _receive(self) -> bytes:
        data = self.sock.recv(65_536)
        if not data:
            raise ConnectionResetError("the broker has closed the link")
        return data


def peer_socket(url: str, name: str) -> tuple[socket.socket, Liar]:
    """A link that is open, and who speaks on it."""
    peer = HostilePeer(url, name)
    return peer.sock, peer
