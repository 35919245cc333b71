"""What the kernel holds for one socket: SIOCOUTQ counts unsent and in-flight bytes, TCP_INFO knows the round trip."""

from __future__ import annotations

import struct
from array import array
from fcntl import ioctl
from socket import IPPROTO_TCP, SocketType

_SIOCOUTQ = 0x5411
_TCP_INFO = 11
#: tcpi_min_rtt, in microseconds: its place in the structure, which has not changed since Linux 4.6.
_MIN_RTT_AT = 148
_INFO_BYTES = 152


class SocketBuffer:
    """One socket's share in the kernel."""

    __slots__ = ("_fd", "_sock")

    def __init__(self, sock: SocketType) -> None:
        self._sock = sock
        self._fd = sock.fileno()

    def count_held(self) -> int:
        """Bytes unsent and in flight."""
        answer = array("i", (0,))
        ioctl(self._fd, _SIOCOUTQ, answer)
        return answer[0]

    def round_trip_s(self) -> float:
        """The smallest round trip that the kernel has seen; 0 where it does not know."""
        try:
            info = self._sock.getsockopt(IPPROTO_TCP, _TCP_INFO, _INFO_BYTES)
        except OSError:
            return 0.0
        if len(info) < _INFO_BYTES:
            return 0.0
        (microseconds,) = struct.unpack_from("I", info, _MIN_RTT_AT)
        return float(microseconds) * 1e-6 if microseconds < 0xFFFF_FFFF else 0.0
