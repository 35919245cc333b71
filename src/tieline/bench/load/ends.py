"""The two ends of a flow: a publisher that goes round its stream, a subscriber that counts and acknowledges."""

from __future__ import annotations

import select
import socket

from tieline.bench.load import packets
from tieline.bench.load.job import Garbled, TurnedDown
from tieline.bench.load.packets import PacketLayout, Stream

#: Unacknowledged QoS 1 and 2 messages of one publisher; the brokers allow at least as many.
UNACKNOWLEDGED = 256
#: What a QoS 0 publisher may send as far as acknowledgements are concerned.
NO_BOUND = 1 << 62
#: Packets of this length or more are skimmed: whoever copied all of them would work as much as the broker.
SKIMMED = 1_024
_RECEIVE = 262_144
#: Every connection reads into the same memory, which therefore stays in the cache.
_ROOM = memoryview(bytearray(1 << 20))


class Client:
    """One connection with its unsent bytes."""

    def __init__(self, sock: socket.socket, poller: select.epoll) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self._poller = poller
        self._unsent = b""
        self.blocked = False
        poller.register(self.fd, select.EPOLLIN)

    def write(self, data: bytes) -> None:
        """Send small answers; what the kernel does not take leaves when it can."""
        self._unsent += data
        self._unsent = self._unsent[self.send(self._unsent) :]

    def send(self, data: bytes | memoryview) -> int:
        """How many bytes the kernel took; asks to be woken if it was not all of them."""
        try:
            taken = self.sock.send(data)
        except BlockingIOError:
            taken = 0
        if taken < len(data) and not self.blocked:
            self.blocked = True
            self._poller.modify(self.fd, select.EPOLLIN | select.EPOLLOUT)
        return taken

    def writable(self) -> None:
        """The kernel has room again."""
        self.blocked = False
        self._poller.modify(self.fd, select.EPOLLIN)
        if self._unsent:
            self.write(b"")

    def receive(self) -> bytes:
        """What has arrived; a closed connection is a failure."""
        try:
            data = self.sock.recv(_RECEIVE)
        except BlockingIOError:
            return b""
        if not data:
            raise TurnedDown("the broker closed a connection under load")
        return data


class Source(Client):
    """A publisher going round and round its stream."""

    def __init__(self, sock: socket.socket, poller: select.epoll, stream: Stream, qos: int) -> None:
        super().__init__(sock, poller)
        self._stream = stream
        self._qos = qos
        self._rest = b""
        #: Bytes handed to the kernel since the beginning, and QoS 1/2 exchanges completed.
        self.sent = 0
        self.acknowledged = 0

    @property
    def unfinished(self) -> bool:
        """A message is half sent, or an acknowledgement is due."""
        whole, part = divmod(self.sent, self._stream.layout.packet)
        return bool(part) or (self._qos > 0 and self.acknowledged < whole)

    def room(self) -> int:
        """Bytes that may be sent now; QoS 1 and 2 wait until a quarter of their window is free."""
        if self._qos == 0:
            return NO_BOUND
        packet = self._stream.layout.packet
        free = UNACKNOWLEDGED * packet - (self.sent - self.acknowledged * packet)
        return free if free >= UNACKNOWLEDGED * packet // 4 else 0

    def publish(self, most: int) -> int:
        """Send up to so many bytes of the stream; returns how many are under way."""
        data, packet = self._stream.data, self._stream.layout.packet
        start = self.sent % len(data)
        taken = self.send(data[start : start + most])
        cut = -taken % packet
        if cut and self._qos:
            # The rest of a QoS 1 or 2 message stands first in line: no PUBREL may get into its middle.
            self.write(bytes(data[start + taken : start + taken + cut]))
            taken += cut
        self.sent += taken
        return taken

    def complete(self) -> int:
        """Send what is missing of the message last begun."""
        part = self.sent % self._stream.layout.packet
        return self.publish(self._stream.layout.packet - part) if part else 0

    def readable(self) -> None:
        """Count acknowledgements; answer PUBREC with PUBREL."""
        data = self._rest + self.receive()
        whole = len(data) // packets.ACK * packets.ACK
        self._rest, data = data[whole:], data[:whole]
        if self._qos == 1:
            packets.check_acks(data, bytes([packets.PUBACK]))
            self.acknowledged += len(data) // packets.ACK
        elif self._qos == 2:
            for kind, run in packets.runs_of_acks(data):
                if kind == packets.PUBREC:
                    self.write(packets.retyped(run, packets.PUBREL))
                else:
                    self.acknowledged += len(run) // packets.ACK
        elif data:
            raise Garbled(f"a QoS 0 publisher received {data[:16].hex(' ')}")


class Sink(Client):
    """A subscriber that counts, acknowledges and, at the beginning, keeps what it receives."""

    def __init__(self, sock: socket.socket, poller: select.epoll, layout: PacketLayout, qos: int, keep: int) -> None:
        super().__init__(sock, poller)
        self._layout = layout
        self._qos = qos
        self._keep = keep * layout.packet
        self._skims = qos == 0 and layout.packet >= SKIMMED
        self._rest = b""
        self._cut = packets.Deliveries(layout.packet)
        self.kept = bytearray()
        #: Bytes of PUBLISH packets received, and QoS 2 exchanges completed.
        self.delivered = 0
        self.released = 0

    @property
    def unfinished(self) -> bool:
        """A QoS 2 exchange waits for its PUBREL."""
        return self._qos == 2 and self.released < self.delivered // self._layout.packet

    def readable(self) -> int:
        """Take what has arrived; returns the bytes of messages in it."""
        before = self.delivered
        if self._skims and len(self.kept) >= self._keep:
            self._skim()
            return self.delivered - before
        data = self.receive()
        if self._qos == 0:
            self._count(data)
        elif self._qos == 1:
            data = self._rest + data
            whole = len(data) // self._layout.packet * self._layout.packet
            self._rest = data[whole:]
            self._take(data[:whole], packets.PUBACK)
        else:
            for first, run in self._cut.feed(data):
                if first == packets.PUBREL:
                    self.released += len(run) // packets.ACK
                    self.write(packets.retyped(run, packets.PUBCOMP))
                else:
                    self._take(run, packets.PUBREC)
        return self.delivered - before

    def _skim(self) -> None:
        """See that one packet begins where counting says; all else that has arrived is dropped by the kernel."""
        rest = -self.delivered % self._layout.packet
        if rest and self._read(rest, socket.MSG_TRUNC) < rest:
            return
        head = len(self._layout.head)
        got = self._read(head)
        self._compare(bytes(_ROOM[:got]))
        if got == head:
            self._read(len(_ROOM), socket.MSG_TRUNC)

    def _read(self, most: int, flags: int = 0) -> int:
        # MSG_TRUNC on a TCP socket (Linux): bytes are taken from the queue and counted, but not copied
        try:
            got = self.sock.recv_into(_ROOM, most, flags)
        except BlockingIOError:
            return 0
        if not got:
            raise TurnedDown("the broker closed a connection under load")
        self.delivered += got
        return got

    def _take(self, publishes: bytes, kind: int) -> None:
        self._count(publishes)
        layout = self._layout
        self.write(packets.answer(publishes, packet=layout.packet, identifier=layout.identifier, kind=kind))

    def _count(self, data: bytes) -> None:
        layout = self._layout
        # One packet of every chunk must begin where counting says: bytes of anything else would shift it.
        at = -self.delivered % layout.packet
        self._compare(data[at : at + len(layout.head)])
        if len(self.kept) < self._keep:
            self.kept += data
        self.delivered += len(data)

    def _compare(self, head: bytes) -> None:
        wanted = self._layout.head
        if not wanted.startswith(head):
            raise Garbled(f"expected a PUBLISH beginning {wanted.hex(' ')}, got {head.hex(' ')}")
