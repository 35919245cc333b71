from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clause.marker import clause
from tests.wire.strategies import texts
from tieline.wire.errors import Malformed
from tieline.wire.fields import (
    LARGEST_VARINT,
    LONGEST_FIELD,
    decode_binary,
    decode_pair,
    decode_utf8,
    decode_varint,
    encode_binary,
    encode_pair,
    encode_utf8,
    encode_varint,
)

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
        encode_varint(LARGEST_VARINT + 1)


@given(st.integers(0, LARGEST_VARINT))
def test_an_encoded_integer_decodes_again(value: int) -> None:
    data = encode_varint(value)
    assert decode_varint(data, 0, len(data)) == (value, len(data))


def utf8(data: bytes) -> str:
    field = len(data).to_bytes(2) + data
    text, pos = decode_utf8(field, 0, len(field))
    assert pos == len(field)
    return text


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xc0\x80", id="overlong null"),
        pytest.param(b"\xe0\x80\xaf", id="overlong slash"),
        pytest.param(b"\xed\xa0\x80", id="U+D800"),
        pytest.param(b"\xed\xbf\xbf", id="U+DFFF"),
        pytest.param(b"\xf4\x90\x80\x80", id="above U+10FFFF"),
        pytest.param(b"\x80", id="lone continuation"),
        pytest.param(b"a\xe2\x82", id="cut short"),
        pytest.param(b"\xff", id="never valid"),
    ],
)
@clause("MQTT-1.5.4-1", "MQTT311-1.5.3-1")
def test_ill_formed_utf8_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed) as refused:
        utf8(data)
    assert refused.value.clause == "MQTT-1.5.4-1"


@clause("MQTT-1.5.4-2", "MQTT311-1.5.3-2", "MQTT-4.7.3-2", "MQTT311-4.7.3-2")
def test_a_null_character_is_malformed() -> None:
    with pytest.raises(Malformed) as refused:
        utf8(b"a\0b")
    assert refused.value.clause == "MQTT-1.5.4-2"


@clause("MQTT-1.5.4-3", "MQTT311-1.5.3-3")
def test_a_byte_order_mark_stays() -> None:
    assert utf8(b"\xef\xbb\xbfa") == "\ufeffa"


@pytest.mark.parametrize("data", [b"\t", "\uffff".encode(), "\U0001f600".encode(), "\U0010ffff".encode(), b""])
def test_what_may_be_refused_is_accepted(data: bytes) -> None:
    assert utf8(data) == data.decode()


@pytest.mark.parametrize("decode", [decode_utf8, decode_binary])
@pytest.mark.parametrize("data", [b"", b"\0", b"\0\x01", b"\0\x03ab", b"\xff\xffab"])
def test_a_field_that_runs_past_the_end_is_malformed(decode: Callable[[bytes, int, int], object], data: bytes) -> None:
    # The bytes behind the end belong to somebody else and must not be read.
    with pytest.raises(Malformed):
        decode(data + b"more than enough", 0, len(data))


@clause("MQTT-1.5.7-1")
def test_both_halves_of_a_pair_are_checked() -> None:
    good, bad = encode_utf8("a"), b"\0\x01\xff"
    for field in (good + bad, bad + good):
        with pytest.raises(Malformed) as refused:
            decode_pair(field, 0, len(field))
        assert refused.value.clause == "MQTT-1.5.4-1"


@clause("MQTT-4.7.3-3", "MQTT311-4.7.3-3")
def test_what_the_length_cannot_say_is_not_encoded() -> None:
    assert len(encode_utf8("x" * LONGEST_FIELD)) == LONGEST_FIELD + 2
    with pytest.raises(ValueError, match="65536 bytes"):
        encode_utf8("x" * (LONGEST_FIELD + 1))


@given(texts, texts, st.binary(max_size=300))
def test_what_is_encoded_decodes_again(first: str, second: str, data: bytes) -> None:
    field = encode_utf8(first) + encode_pair((first, second)) + encode_binary(data)
    text, pos = decode_utf8(field, 0, len(field))
    pair, pos = decode_pair(field, pos, len(field))
    binary, pos = decode_binary(field, pos, len(field))
    assert (text, pair, binary, pos) == (first, (first, second), data, len(field))
