from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clause.marker import clause
from tests.wire.notation import body
from tests.wire.strategies import CARRIED, VALUES, properties
from tieline.wire.errors import Malformed, ProtocolError, Violation
from tieline.wire.packet_type import WILL, PacketType
from tieline.wire.properties import Properties, decode_properties, encode_properties, forwardable, user_properties

#: One good value for each property.
SAMPLES: dict[str, Any] = {
    "payload_format_indicator": 1,
    "message_expiry_interval": 1,
    "content_type": "a",
    "response_topic": "a",
    "correlation_data": b"a",
    "subscription_identifier": [1],
    "session_expiry_interval": 1,
    "assigned_client_identifier": "a",
    "server_keep_alive": 1,
    "authentication_method": "a",
    "authentication_data": b"a",
    "request_problem_information": 1,
    "will_delay_interval": 1,
    "request_response_information": 1,
    "response_information": "a",
    "server_reference": "a",
    "reason_string": "a",
    "receive_maximum": 1,
    "topic_alias_maximum": 1,
    "topic_alias": 1,
    "maximum_qos": 1,
    "retain_available": 1,
    "user_property": [("a", "b")],
    "maximum_packet_size": 1,
    "wildcard_subscription_available": 1,
    "subscription_identifier_available": 1,
    "shared_subscription_available": 1,
}


def encoded(name: str, value: Any) -> bytes:
    return encode_properties(cast(Properties, {name: value}))


def decoded(data: bytes, packet: int) -> Properties:
    found, pos = decode_properties(data, 0, len(data), packet)
    assert pos == len(data)
    return found


def refused(data: bytes, packet: int) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        decode_properties(data, 0, len(data), packet)
    return caught.value


def test_the_samples_are_complete() -> None:
    assert SAMPLES.keys() == VALUES.keys()


@pytest.mark.parametrize("packet", CARRIED)
@pytest.mark.parametrize("name", SAMPLES)
def test_a_property_is_accepted_exactly_where_table_2_4_puts_it(name: str, packet: int) -> None:
    data = encoded(name, SAMPLES[name])
    if name in CARRIED[packet]:
        assert decoded(data, packet) == {name: SAMPLES[name]}
    else:
        error = refused(data, packet)
        assert isinstance(error, Malformed) and error.clause == "2.2.2.2"


@pytest.mark.parametrize(("packet", "name"), [(packet, name) for packet in CARRIED for name in sorted(CARRIED[packet])])
def test_a_property_given_twice_is_a_protocol_error_unless_it_may_repeat(packet: int, name: str) -> None:
    once = encoded(name, SAMPLES[name])[1:]
    twice = bytes((2 * len(once),)) + once + once
    if name == "user_property" or (name == "subscription_identifier" and packet == PacketType.PUBLISH):
        assert decoded(twice, packet) == {name: SAMPLES[name] * 2}
    else:
        assert type(refused(twice, packet)) is Violation


@pytest.mark.parametrize("identifier", [i for i in range(256) if i not in range(0x01, 0x2B)] + [0x04, 0x0A, 0x14, 0x1B])
def test_an_unknown_identifier_is_malformed(identifier: int) -> None:
    error = refused(bytes((3, identifier, 0, 0)), PacketType.CONNACK)
    assert isinstance(error, Malformed) and error.clause == "2.2.2.2"


def test_an_identifier_in_two_bytes_is_malformed() -> None:
    assert isinstance(refused(body("03 a600 00"), PacketType.PUBLISH), Malformed)


@pytest.mark.parametrize(
    ("notation", "packet", "broken"),
    [
        pytest.param("02 01 02", PacketType.PUBLISH, "3.3.2.3.2", id="payload format indicator 2"),
        pytest.param("02 01 ff", WILL, "3.3.2.3.2", id="payload format indicator 255 in a will"),
        pytest.param("02 17 02", PacketType.CONNECT, "3.1.2.11.7", id="request problem information 2"),
        pytest.param("02 19 02", PacketType.CONNECT, "3.1.2.11.6", id="request response information 2"),
        pytest.param("03 21 0000", PacketType.CONNECT, "3.1.2.11.3", id="receive maximum 0"),
        pytest.param("05 27 00000000", PacketType.CONNECT, "3.1.2.11.4", id="maximum packet size 0"),
        pytest.param("02 24 02", PacketType.CONNACK, "3.2.2.3.4", id="maximum QoS 2"),
        pytest.param("02 25 02", PacketType.CONNACK, "3.2.2.3.5", id="retain available 2"),
        pytest.param("02 28 02", PacketType.CONNACK, "3.2.2.3.11", id="wildcard subscription available 2"),
        pytest.param("02 29 02", PacketType.CONNACK, "3.2.2.3.12", id="subscription identifier available 2"),
        pytest.param("02 2a 02", PacketType.CONNACK, "3.2.2.3.13", id="shared subscription available 2"),
        pytest.param("02 0b 00", PacketType.SUBSCRIBE, "3.8.2.1.2", id="subscription identifier 0"),
        pytest.param(
            "06 08 'a/+'",
            PacketType.PUBLISH,
            "MQTT-3.3.2-14",
            marks=clause("MQTT-3.3.2-14"),
            id="response topic with +",
        ),
        pytest.param(
            "03 08 ''",
            PacketType.PUBLISH,
            "MQTT-4.7.3-1",
            marks=clause("MQTT-4.7.3-1"),
            id="empty response topic",
        ),
        pytest.param("03 08 ''", WILL, "MQTT-4.7.3-1", marks=clause("MQTT-4.7.3-1"), id="empty response topic of will"),
        pytest.param("04 08 '#'", WILL, "MQTT-3.3.2-14", marks=clause("MQTT-3.3.2-14"), id="response topic with #"),
    ],
)
def test_a_forbidden_value_is_a_protocol_error(notation: str, packet: int, broken: str) -> None:
    error = refused(body(notation), packet)
    assert type(error) is Violation and error.clause == broken


@pytest.mark.parametrize(
    "notation",
    [
        pytest.param("", id="no length"),
        pytest.param("80", id="half a length"),
        pytest.param("01", id="length without properties"),
        pytest.param("ffffff7f 26", id="a lying length"),
        pytest.param("03 02 0000", id="half a number"),
        pytest.param("02 26 00", id="half a text length"),
        pytest.param("05 26 0001 6100", id="a pair without its value"),
        pytest.param("03 0b ffff", id="half an identifier"),
    ],
)
def test_a_block_cut_short_is_malformed(notation: str) -> None:
    assert isinstance(refused(body(notation), PacketType.PUBLISH), Malformed)


@clause("MQTT-3.3.2-13", "MQTT-3.3.2-19")
@pytest.mark.parametrize("identifier", ["08", "03"])
def test_a_text_property_is_utf8(identifier: str) -> None:
    error = refused(body(f"04 {identifier} 0001 ff"), PacketType.PUBLISH)
    assert isinstance(error, Malformed) and error.clause == "MQTT-1.5.4-1"


def test_a_value_does_not_reach_past_its_block() -> None:
    assert isinstance(refused(body("02 23 0001"), PacketType.PUBLISH), Malformed)


@clause("MQTT-2.2.2-1")
def test_no_properties_are_a_zero() -> None:
    assert encode_properties({}) == b"\0"


@clause("MQTT-3.3.2-17", "MQTT-3.3.2-18")
def test_what_is_forwarded_keeps_its_bytes_and_its_order() -> None:
    kept = [
        body("26 'z' '1'"),
        body("01 01"),
        body("26 'a' '2'"),
        body("08 'r'"),
        body("09 0001 00"),
        body("26 'z' '1'"),
    ]
    bound = [body("02 0000000a"), body("23 0007"), body("0b 05"), body("0b 8001")]
    block = b"".join((kept[0], bound[0], kept[1], bound[1], kept[2], bound[2], kept[3], kept[4], bound[3], kept[5]))
    data = b"?" + bytes((len(block),)) + block + b"payload"
    found, pos = decode_properties(data, 1, len(data), PacketType.PUBLISH)
    assert data[pos:] == b"payload"
    assert found["user_property"] == [("z", "1"), ("a", "2"), ("z", "1")]
    assert forwardable(data, 1, len(data)) == b"".join(kept)


@given(st.sampled_from(sorted(CARRIED)).flatmap(lambda packet: st.tuples(st.just(packet), properties(packet))))
def test_what_is_encoded_decodes_again(case: tuple[int, Properties]) -> None:
    packet, wanted = case
    data = encode_properties(wanted)
    found = decoded(data, packet)
    assert found == wanted
    assert list(found) == list(wanted)


def test_user_properties_come_in_their_order_and_as_often_as_they_were_sent() -> None:
    assert user_properties(body("26 'z' '1' 09 0001 00 26 'a' '2' 26 'z' '3'")) == [("z", "1"), ("a", "2"), ("z", "3")]


def test_properties_of_another_version_have_no_names() -> None:
    assert user_properties(b"\x7f\x00") == []
    assert user_properties(b"") == []
