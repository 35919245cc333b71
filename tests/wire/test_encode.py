from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clause.marker import clause
from tests.wire.examples import EXAMPLES, Example
from tests.wire.notation import packet
from tests.wire.strategies import packets
from tieline.wire.encode import encode
from tieline.wire.frames import Framer
from tieline.wire.packets import (
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Puback,
    Publish,
    Suback,
    Subscribe,
    Subscription,
    Unsuback,
    Will,
)
from tieline.wire.reason import Reason

LIMIT = 1_000_000


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.label)
def test_an_example_encodes_to_its_bytes(example: Example) -> None:
    assert encode(example.packet, example.version) == example.wire


@given(st.sampled_from((4, 5)).flatmap(lambda version: st.tuples(st.just(version), packets(version))))
def test_what_is_encoded_decodes_again(case: tuple[int, Packet]) -> None:
    version, wanted = case
    (found,) = Framer(LIMIT, version).feed(encode(wanted, version))
    if isinstance(found, Publish):
        found.forward = b""
    assert found == wanted
    assert encode(found, version) == encode(wanted, version)


@pytest.mark.parametrize(
    ("value", "notation"),
    [
        pytest.param(
            Connack(reason=Reason.SERVER_BUSY, properties={"reason_string": "full"}), "20: 00 03", id="CONNACK"
        ),
        pytest.param(Connack(reason=Reason.BANNED), "20: 00 05", id="CONNACK of a banned client"),
        pytest.param(
            Publish(topic="a", payload=b"x", properties={"topic_alias": 1, "user_property": [("k", "v")]}),
            "30: 'a' 78",
            id="PUBLISH",
        ),
        pytest.param(Puback(packet_id=1, reason=Reason.QUOTA_EXCEEDED), "40: 0001", id="PUBACK"),
        pytest.param(
            Suback(packet_id=1, reasons=(2, 0x8F, 0x80, 0xA2, 0), properties={"reason_string": "no"}),
            "90: 0001 02 80 80 80 00",
            marks=clause("MQTT311-3.9.3-2"),
            id="SUBACK",
        ),
        pytest.param(Unsuback(packet_id=1, reasons=(0, 0x11)), "b0: 0001", id="UNSUBACK"),
        pytest.param(
            Subscribe(packet_id=1, subscriptions=(Subscription(filter="a", qos=1, no_local=True, retain_handling=2),)),
            "82: 0001 'a' 01",
            id="SUBSCRIBE",
        ),
        pytest.param(Disconnect(reason=Reason.SERVER_SHUTTING_DOWN), "e0:", id="DISCONNECT"),
        pytest.param(
            Connect(
                version=4,
                will=Will(topic="w", payload=b"", properties={"will_delay_interval": 1}),
                properties={"receive_maximum": 1},
            ),
            "10: 'MQTT' 04 06 0000 '' 'w' ''",
            id="CONNECT",
        ),
    ],
)
def test_what_311_cannot_say_is_left_out(value: Packet, notation: str) -> None:
    assert encode(value, 4) == packet(notation)


def test_311_has_no_auth() -> None:
    with pytest.raises(ValueError, match="AUTH"):
        encode(Auth(), 4)


@clause("MQTT-2.2.1-2", "MQTT311-2.3.1-5")
def test_qos_0_is_sent_without_a_packet_identifier() -> None:
    assert encode(Publish(topic="a", packet_id=7), 4) == packet("30: 'a'")


def test_a_large_packet_has_a_length_of_several_bytes() -> None:
    wire = encode(Publish(topic="a", payload=bytes(200_000)), 4)
    assert wire[:4] == bytes.fromhex("30c39a0c")
    assert len(wire) == 200_007
    (found,) = Framer(LIMIT, 4).feed(wire)
    assert found == Publish(topic="a", payload=bytes(200_000))
