from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clause.marker import clause
from tests.wire.strategies import texts
from tieline.wire.errors import Malformed
from tieline.wire.text import (
    MAXIMUM,
    decode_binary,
    decode_pair,
    decode_utf8,
    encode_binary,
    encode_pair,
    encode_utf8,
)


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
    assert len(encode_utf8("x" * MAXIMUM)) == MAXIMUM + 2
    with pytest.raises(ValueError, match="65536 bytes"):
        encode_utf8("x" * (MAXIMUM + 1))


@given(texts, texts, st.binary(max_size=300))
def test_what_is_encoded_decodes_again(first: str, second: str, data: bytes) -> None:
    field = encode_utf8(first) + encode_pair((first, second)) + encode_binary(data)
    text, pos = decode_utf8(field, 0, len(field))
    pair, pos = decode_pair(field, pos, len(field))
    binary, pos = decode_binary(field, pos, len(field))
    assert (text, pair, binary, pos) == (first, (first, second), data, len(field))
