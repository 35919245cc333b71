"""A relay process between two interfaces of a namespace: each frame that comes over one leaves over the other, later.

Theory of operation
-------------------
There is no ``netem`` everywhere, so a cable is cut in two by a namespace that forwards nothing by itself, and a process
there takes every frame off one half and puts it on the other a fixed time later.  It stands below TCP: connections go
from end to end, and what a sender's kernel holds is what is seen there.  (A relay that ended connections would hide a
thin link from whoever writes to it.)  Frames are passed on with the header that says which checksums are still to be
filled in, since the ends of such cables leave those to hardware that is not there.
"""

from __future__ import annotations

import contextlib
import select
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from tieline.bench.load.job import Failure
from tieline.bench.timed.link import Namespace

#: From <linux/if_packet.h>; Python has no names for these.
_SOL_PACKET: Final = 263
_PACKET_VNET_HDR: Final = 15
_ETH_P_ALL: Final = 3
_FRAME: Final = 1 << 17
_READY: Final = b"ready\n"
_END_S: Final = 5.0


class _Late(NamedTuple):
    due: float
    frame: bytes
    to: socket.socket


def pass_on(near: str, far: str, delay_s: float) -> None:
    """Pass frames on in both directions, for ever."""
    sockets = [_open(name) for name in (near, far)]
    other = {sockets[0]: sockets[1], sockets[1]: sockets[0]}
    # every frame waits equally long: the one that came first is due first
    waiting: deque[_Late] = deque()
    sys.stdout.buffer.write(_READY)
    sys.stdout.buffer.flush()
    while True:
        patience = max(0.0, waiting[0].due - time.monotonic()) if waiting else None
        ready, _, _ = select.select(sockets, [], [], patience)
        now = time.monotonic()
        for sock in ready:
            frame, (_name, _protocol, kind, *_rest) = sock.recvfrom(_FRAME)
            if kind != socket.PACKET_OUTGOING:
                waiting.append(_Late(now + delay_s, frame, other[sock]))
        while waiting and waiting[0].due <= now:
            late = waiting.popleft()
            with contextlib.suppress(OSError):  # a cable loses what it cannot carry
                late.to.send(late.frame)


def _open(interface: str) -> socket.socket:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # it hears nothing before it knows of which interface
    sock.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
    sock.bind((interface, _ETH_P_ALL))
    return sock


@contextlib.contextmanager
def delaying(space: Namespace, near: str, far: str, delay_s: float) -> Iterator[subprocess.Popen[bytes]]:
    """A relay between two interfaces of a namespace, which has ended in the end."""
    command = [sys.executable, "-m", "tieline.bench.timed.delay", near, far, str(delay_s)]
    with space.entered():
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        if process.stdout.readline() != _READY:
            raise Failure(f"the relay between {near} and {far} did not begin")
        yield process
    finally:
        process.terminate()
        process.wait(_END_S)
        if process.stdout is not None:
            process.stdout.close()


if __name__ == "__main__":
    pass_on(sys.argv[1], sys.argv[2], float(sys.argv[3]))
