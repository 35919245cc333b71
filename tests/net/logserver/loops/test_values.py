"""What the first byte of a value says, held against what a MessagePack library reads."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.net.logserver.loops import values
from tieline.net.logserver.loops.values import Bytes

#: Enough of what may follow: as a length it is none, as a value it is 0, and there are values for every element.
AFTER = bytes(64)
KINDS = {int: values.INTEGER, str: values.TEXT, bytes: values.BINARY, bool: values.FLAG, type(None): values.NOTHING}


def blob_of(data: bytes) -> Bytes:
    return np.frombuffer(data, np.uint8)


def read(data: bytes) -> tuple[Any, int]:
    """A value, and how many bytes it takes; the decoder wants to see exactly those."""
    for size in range(1, len(data) + 1):
        try:
            return msgspec.msgpack.decode(data[:size]), size
        except msgspec.DecodeError:
            continue
    raise ValueError("no value")


def test_the_first_byte_tells_the_kind_and_mostly_the_width() -> None:
    for head in range(256):
        try:
            value, size = read(bytes([head]) + AFTER)
        except ValueError:
            assert head == 0xC1  # which means nothing
            assert values.KINDS[head] == values.WIDTHS[head] == 0
            continue
        assert values.KINDS[head] == (values.MAP if isinstance(value, dict) else KINDS.get(type(value), 0)), hex(head)
        if values.WIDTHS[head]:
            assert values.WIDTHS[head] == size, hex(head)
        else:
            assert isinstance(value, str | bytes | dict | list | msgspec.msgpack.Ext), hex(head)


@given(st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300) | st.sampled_from([2**31, 2**32, 2**63 - 1]))
def test_whole_numbers(number: int) -> None:
    data = msgspec.msgpack.encode(number)
    assert values.integer_at(blob_of(data), 0, len(data)) == (number, len(data))
    assert values.integer_at(blob_of(data), 0, len(data) - 1)[1] == -1


def test_a_number_without_room_for_its_sign_is_none() -> None:
    data = msgspec.msgpack.encode(2**63)
    assert values.integer_at(blob_of(data), 0, len(data))[1] == -1


@pytest.mark.parametrize("size", [0, 1, 31, 32, 255, 256, 65_535, 65_536])
def test_texts_and_bytes_of_every_length(size: int) -> None:
    for data in (msgspec.msgpack.encode("x" * size), msgspec.msgpack.encode(b"x" * size)):
        assert values.stretch_of(blob_of(data), 0) == (len(data) - size, size)
