"""The codec in two functions: bytes to a packet and a packet to bytes."""

from __future__ import annotations

from tieline.wire.decode import decode
from tieline.wire.encode import encode

__all__ = ["decode", "encode"]
