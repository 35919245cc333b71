from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clause.marker import clause
from tieline.wire.errors import Malformed
from tieline.wire.varint import MAXIMUM, decode_varint, encode_varint

#: Table 1-1 of MQTT 5: the smallest and the largest value of each length.
TABLE = [
    (0, "00"),
    (127, "7f"),
    (128, "8001"),
    (16_383, "ff7f"),
    (16_384, "808001"),
    (2_097_151, "ffff7f"),
    (2_097_152, "80808001"),
    (268_435_455, "ffffff7f"),
]


@pytest.mark.parametrize(("value", "encoded"), TABLE)
def test_the_table_of_the_specification(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert encode_varint(value) == data
    assert decode_varint(b"?" + data + b"?", 1, 1 + len(data)) == (value, 1 + len(data))


@pytest.mark.parametrize("encoded", ["8000", "ff00", "ffff8000", "80808000"])
@clause("MQTT-1.5.5-1")
def test_a_longer_encoding_than_needed_is_malformed(encoded: str) -> None:
    data = bytes.fromhex(encoded)
    with pytest.raises(Malformed) as refused:
        decode_varint(data, 0, len(data))
    assert refused.value.clause == "MQTT-1.5.5-1"


@pytest.mark.parametrize("encoded", ["", "80", "ffff", "808080", "80808080", "ffffffff7f"])
def test_an_unfinished_or_fifth_byte_is_malformed(encoded: str) -> None:
    data = bytes.fromhex(encoded)
    with pytest.raises(Malformed) as refused:
        decode_varint(data, 0, len(data))
    assert refused.value.clause == "1.5.5"


def test_what_four_bytes_cannot_hold_is_not_encoded() -> None:
    with pytest.raises(ValueError, match="268435456"):
        encode_varint(MAXIMUM + 1)


@given(st.integers(0, MAXIMUM))
def test_what_is_encoded_decodes_again(value: int) -> None:
    data = encode_varint(value)
    assert decode_varint(data, 0, len(data)) == (value, len(data))
