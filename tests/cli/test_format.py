"""`-F` prints a message as the format says."""

from __future__ import annotations

import json
import re

import pytest
from paho.mqtt.client import MQTTMessage
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tieline.cli.format import compile_format, plain, verbose


def message(payload: bytes = b'{"a": 1}') -> MQTTMessage:
    made = MQTTMessage(mid=7, topic=b"a/b")
    made.payload, made.qos, made.retain = payload, 1, True
    made.properties = Properties(PacketTypes.PUBLISH)
    made.properties.ContentType = "json"
    made.properties.CorrelationData = b"\xff"
    made.properties.UserProperty = [("k", "v"), ("k", "w")]
    return made


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", b""),
        ("%t=%p", b'a/b={"a": 1}'),
        ("%q %r %m %l", b"1 1 7 8"),
        ("%C|%D|%E|%P", b"json|\xff||k:v k:w"),
        ("%%@@\\\\", b"%@\\"),
        ("\\t\\n\\0\\e", b"\t\n\0\x1b"),
        ("é%t", "éa/b".encode()),
    ],
)
def test_each_piece(text: str, printed: bytes) -> None:
    assert compile_format(text)(message()) == printed


def test_hexadecimal() -> None:
    assert compile_format("%x %X")(message(b"\x00\xab")) == b"00ab 00AB"


def test_times() -> None:
    assert re.fullmatch(
        rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} \d+\.\d{9} \d{4}", compile_format("%I %U @Y")(message())
    )


def test_json() -> None:
    as_text = json.loads(compile_format("%j")(message()))
    assert as_text["payload"] == '{"a": 1}' and as_text["topic"] == "a/b" and as_text["mid"] == 7
    assert as_text["properties"]["UserProperty"] == [["k", "v"], ["k", "w"]]
    assert json.loads(compile_format("%J")(message()))["payload"] == {"a": 1}
    assert json.loads(compile_format("%J")(message(b"\xff")))["payload"] == "/w=="


def test_without_a_format() -> None:
    assert plain(message(b"x")) == b"x"
    assert verbose(message(b"x")) == b"a/b x"
    assert verbose(message(b"")) == b"a/b (null)"
