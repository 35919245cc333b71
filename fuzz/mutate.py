"""One input from others: bit flips, lies about lengths, splices, truncations, repetitions."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

#: Bytes at which decoders change their mind: flags, continuation bits, wildcards, the ends of ranges.
_TELLING: Final = bytes.fromhex("00 01 02 03 04 05 10 20 23 24 26 2b 2f 30 32 34 40 7f 80 82 a2 c0 c1 e0 ed f0 fe ff")

#: First bytes of packets, to start a new one in the middle of an old one.
_FIRST: Final = bytes.fromhex("10 20 30 31 32 33 34 3a 3c 40 50 62 70 82 90 a2 b0 c0 d0 e0 f0")


def mutate(corpus: Sequence[bytes], chance: random.Random) -> bytes:
    """A descendant of one input, or of two."""
    data = bytearray(chance.choice(corpus))
    for _ in range(1 << chance.randrange(4)):
        if not data:
            data += chance.choice(corpus)
        chance.choice(_MUTATIONS)(data, corpus, chance)
    return bytes(data)


def _span(data: bytearray, chance: random.Random) -> slice:
    start = chance.randrange(len(data) + 1)
    return slice(start, min(len(data), start + (1 << chance.randrange(7))))


def _flip_bit(data: bytearray, _corpus: Sequence[bytes], chance: random.Random) -> None:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _set_byte(data: bytearray, _corpus: Sequence[bytes], chance: random.Random) -> None:
    data[chance.randrange(len(data))] = chance.choice(_TELLING)


def _count_up_or_down(data: bytearray, _corpus: Sequence[bytes], chance: random.Random) -> None:
    """Most bytes near the front are lengths: one more or one less is the most telling lie."""
    pos = chance.randrange(len(data))
    data[pos] = (data[pos] + chance.choice((-2, -1, 1, 2))) % 256


def _insert(data: bytearray, _corpus: Sequence[bytes], chance: random.Random) -> None:
    pos = chance.randrange(len(data) + 1)
    data[pos:pos] = bytes(chance.choice(_TELLING) for _ in range(1 << chance.randrange(4)))


def _insert_packet(data: bytearray, _corpus: Sequence[bytes], chance: random.Random) -> None:
    pos = chance.randrange(len(data) + 1)
    body = bytes(chance.choice(_TELLING) for _ in range(chance.randrange(8)))
    data[pos:pos] = bytes((chance.choice(_FIRST), len(body))) + body


def _delete(data: bytearray, _corpus: Sequence[bytes], chance: random.Random) -> None:
    del data[_span(data, chance)]


def _repeat(data: bytearray, _corpus: Sequence[bytes], chance: random.Random) -> None:
    span = _span(data, chance)
    data[span.stop : span.stop] = data[span]


def _truncate(data: bytearray, _corpus: Sequence[bytes], chance: random.Random) -> None:
    del data[chance.randrange(len(data)) + 1 :]


def _splice(data: bytearray, corpus: Sequence[bytes], chance: random.Random) -> None:
    """Our beginning and somebody else's end."""
    other = chance.choice(corpus)
    data[chance.randrange(len(data) + 1) :] = other[chance.randrange(len(other) + 1) :]


def _append(data: bytearray, corpus: Sequence[bytes], chance: random.Random) -> None:
    data += chance.choice(corpus)


_MUTATIONS: Final[tuple[Callable[[bytearray, Sequence[bytes], random.Random], None], ...]] = (
    _flip_bit,
    _set_byte,
    _count_up_or_down,
    _insert,
    _insert_packet,
    _delete,
    _repeat,
    _truncate,
    _splice,
    _append,
)
