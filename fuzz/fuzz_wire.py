"""The wire layer under random bytes.

Any bytes either parse or raise our protocol error.
What parses can be encoded again, to bytes that parse to the same packet.
Whole-buffer and byte-by-byte feeding give the same events.

``python -m fuzz.fuzz_wire --seconds 60 --seed 1``
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from dataclasses import replace
from typing import Final, NamedTuple

from fuzz import hunt
from fuzz.corpus import SAID_BY_CLIENTS, SAID_BY_SERVERS, connects, encoded
from tieline.wire.encode import encode
from tieline.wire.errors import ProtocolError
from tieline.wire.frames import Framer
from tieline.wire.packets import Connect, Packet, Publish

#: The first byte of an input chooses who listens: a server that has heard nothing yet, or one who knows the version.
_VERSIONS: Final = (0, 4, 5)
_LIMIT: Final = 1_500


class _Heard(NamedTuple):
    """The packets of a stream, the refusal that ended it, and the version it spoke."""

    packets: list[Packet]
    refusal: tuple[str, str, str] | None
    version: int


def _listen(chunks: list[bytes], version: int) -> _Heard:
    framer = Framer(_LIMIT, version)
    packets: list[Packet] = []
    for chunk in chunks:
        try:
            packets += framer.feed(chunk)
        except ProtocolError:
            break
    error = framer.error
    return _Heard(packets, None if error is None else (error.clause, error.reason.name, error.text), framer.version)


def _comparable(packet: Packet) -> Packet:
    """Encoding groups repeated properties, so the bytes to forward may come back in another order."""
    return replace(packet, forward=b"") if isinstance(packet, Publish) else packet


def check(data: bytes) -> Hashable:
    """Assert the invariant for one input; what kind of events it gave."""
    version, stream = _VERSIONS[data[0] % 3] if data else 0, data[1:]
    whole = _listen([stream], version)
    one_by_one = _listen([bytes((byte,)) for byte in stream], version)
    assert whole == one_by_one, f"whole gives {whole}, byte by byte {one_by_one}"
    spoken = version
    for packet in whole.packets:
        if isinstance(packet, Connect):
            spoken = packet.version
        again = _listen([encode(packet, spoken)], spoken)
        assert [_comparable(twin) for twin in again.packets] == [_comparable(packet)], f"{packet} became {again}"
    return tuple(type(packet) for packet in whole.packets[-2:]), whole.refusal and whole.refusal[:2], whole.version


def seeds() -> list[bytes]:
    """Every packet alone for a side that knows the version, and whole conversations for a server."""
    found = []
    for version in (4, 5):
        alone = encoded((*connects(version), *SAID_BY_CLIENTS, *SAID_BY_SERVERS), version)
        found += [bytes((_VERSIONS.index(version),)) + data for data in alone]
        talk = b"".join(encoded(SAID_BY_CLIENTS, version))
        found += [b"\0" + encode(connect, version) + talk for connect in connects(version)]
    return found


def run(seconds: float, seed: int) -> int:
    """A hunt with our own mutator; 0 when nothing broke."""
    return hunt.report("wire", hunt.hunt(check, seeds(), seconds, seed))


if __name__ == "__main__":
    sys.exit(hunt.main("wire", check, seeds()))
