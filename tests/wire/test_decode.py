from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clause.marker import clause
from tests.wire.examples import EXAMPLES, Example
from tests.wire.notation import body
from tieline.wire.decode import decode
from tieline.wire.errors import Malformed, ProtocolError, Violation
from tieline.wire.frames import find_frame
from tieline.wire.packet_type import PacketType
from tieline.wire.packets import Disconnect, Puback, Publish
from tieline.wire.reason import ALLOWED, Reason

BOTH = (4, 5)


def refused(notation: str, version: int) -> ProtocolError:
    first, _, rest = notation.partition(":")
    with pytest.raises(ProtocolError) as caught:
        decode(int(first, 16), body(rest), version)
    return caught.value


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.label)
def test_an_example_decodes(example: Example) -> None:
    frame = find_frame(example.wire, 0, 1_000)
    assert frame is not None and frame[1] == len(example.wire)
    found = decode(example.wire[0], example.wire[frame[0] :], example.version)
    if isinstance(found, Publish):
        found.forward = b""  # what goes on to the subscribers has tests of its own
    assert found == example.packet


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.label)
def test_every_shorter_body_is_refused_or_is_another_whole_packet(example: Example) -> None:
    whole = example.wire[2:]
    for length in range(len(whole)):
        try:
            found = decode(example.wire[0], whole[:length], example.version)
        except ProtocolError:
            continue
        # Only what ends in optional or repeated parts may still be whole when cut.
        assert found != example.packet
        assert PacketType(example.wire[0] >> 4).name in {
            "AUTH", "DISCONNECT", "PUBACK", "PUBCOMP", "PUBLISH", "PUBREC", "PUBREL",
            "SUBACK", "SUBSCRIBE", "UNSUBACK", "UNSUBSCRIBE",
        }  # fmt: skip


@pytest.mark.parametrize("version", BOTH)
@clause("MQTT-2.1.3-1", "MQTT-3.6.1-1", "MQTT-3.8.1-1", "MQTT-3.10.1-1", "MQTT-3.14.1-1", "MQTT-3.15.1-1")
@clause("MQTT311-2.2.2-1", "MQTT311-2.2.2-2", "MQTT311-3.6.1-1", "MQTT311-3.8.1-1", "MQTT311-3.10.1-1")
@clause("MQTT311-3.14.1-1")
def test_every_reserved_flag_pattern_is_malformed(version: int) -> None:
    own = {6: "MQTT-3.6.1-1", 8: "MQTT-3.8.1-1", 10: "MQTT-3.10.1-1", 14: "MQTT-3.14.1-1", 15: "MQTT-3.15.1-1"}
    for first in range(256):
        number, flags = divmod(first, 16)
        if number == PacketType.PUBLISH or (number and flags == (2 if number in (6, 8, 10) else 0)):
            continue
        error = refused(f"{first:02x}: 0001", version)
        assert isinstance(error, Malformed)
        assert error.clause == (own.get(number, "MQTT-2.1.3-1") if number else "2.1.2")


@pytest.mark.parametrize(
    ("version", "notation", "kind", "broken"),
    [
        # CONNACK
        pytest.param(4, "20: 00", Malformed, "3.2.2", id="v4 CONNACK cut short"),
        pytest.param(4, "20: 00 06", Violation, "3.1.1 3.2.2.3", id="v4 CONNACK reserved return code"),
        pytest.param(4, "20: 00 00 00", Malformed, "2.1.4", id="v4 CONNACK with trailing bytes"),
        pytest.param(5, "20: 02 00 00", Malformed, "MQTT-3.2.2-1", id="v5 CONNACK reserved flag"),
        pytest.param(4, "20: 80 00", Malformed, "MQTT-3.2.2-1", id="v4 CONNACK reserved flag"),
        pytest.param(5, "20: 01 87 00", Violation, "MQTT-3.2.2-6", id="v5 CONNACK refusal with a session"),
        pytest.param(4, "20: 01 05", Violation, "MQTT-3.2.2-6", id="v4 CONNACK refusal with a session"),
        pytest.param(5, "20: 00 8e 00", Violation, "MQTT-3.2.2-8", id="v5 CONNACK reason of another packet"),
        pytest.param(5, "20: 00 00 00 00", Malformed, "2.1.4", id="v5 CONNACK with trailing bytes"),
        # PUBLISH
        pytest.param(4, "36: 'a' 0001", Malformed, "MQTT-3.3.1-4", marks=clause("MQTT311-3.3.1-4")),
        pytest.param(5, "3e: 'a' 0001 00", Malformed, "MQTT-3.3.1-4", marks=clause("MQTT-3.3.1-4")),
        pytest.param(4, "38: 'a'", Malformed, "MQTT-3.3.1-2", marks=clause("MQTT311-3.3.1-2")),
        pytest.param(5, "39: 'a' 00", Malformed, "MQTT-3.3.1-2", marks=clause("MQTT-3.3.1-2")),
        pytest.param(4, "32: 'a' 0000", Violation, "MQTT-2.2.1-3", marks=clause("MQTT311-2.3.1-1")),
        pytest.param(5, "34: 'a' 0000 00", Violation, "MQTT-2.2.1-3", marks=clause("MQTT-2.2.1-3")),
        pytest.param(4, "32: 'a' 00", Malformed, "2.2.1", id="v4 PUBLISH half a packet identifier"),
        pytest.param(5, "32: 'a'", Malformed, "2.2.1", id="v5 PUBLISH no packet identifier"),
        pytest.param(4, "30: 'a/+/b'", Violation, "MQTT-3.3.2-2", marks=clause("MQTT311-3.3.2-2")),
        pytest.param(5, "30: 'a/#' 00", Violation, "MQTT-3.3.2-2", marks=clause("MQTT-3.3.2-2", "MQTT-4.7.0-1")),
        pytest.param(4, "30: ''", Violation, "MQTT-4.7.3-1", marks=clause("MQTT311-4.7.3-1")),
        pytest.param(5, "30: '' 00", Violation, "3.3.2.1", id="v5 PUBLISH without topic and alias"),
        pytest.param(4, "30:", Malformed, "1.5.4", marks=clause("MQTT311-3.3.2-1")),
        pytest.param(4, "30: 0001 ff", Malformed, "MQTT-1.5.4-1", marks=clause("MQTT311-3.3.2-1")),
        pytest.param(5, "30: 0002 c080 00", Malformed, "MQTT-1.5.4-1", marks=clause("MQTT-3.3.2-1")),
        pytest.param(5, "30: 0001 00 00", Malformed, "MQTT-1.5.4-2", id="v5 PUBLISH null in the topic"),
        pytest.param(5, "30: 'a'", Malformed, "1.5.5", id="v5 PUBLISH no property length"),
        pytest.param(5, "30: 'a' 03 23 00", Malformed, "2.2.2.1", id="v5 PUBLISH properties past the end"),
        pytest.param(5, "30: 'a' 02 01 02", Violation, "3.3.2.3.2", id="v5 PUBLISH payload format 2"),
        # PUBACK, PUBREC, PUBREL, PUBCOMP
        pytest.param(4, "40: 00", Malformed, "2.2.1", id="v4 PUBACK cut short"),
        pytest.param(5, "50:", Malformed, "2.2.1", id="v5 PUBREC empty"),
        pytest.param(4, "40: 0000", Violation, "MQTT-2.2.1-3", id="v4 PUBACK identifier 0"),
        pytest.param(5, "62: 0000", Violation, "MQTT-2.2.1-3", id="v5 PUBREL identifier 0"),
        pytest.param(4, "40: 0001 00", Malformed, "2.1.4", id="v4 PUBACK with a reason code"),
        pytest.param(4, "70: 0001 00 00", Malformed, "2.1.4", id="v4 PUBCOMP with properties"),
        pytest.param(5, "40: 0001 92", Violation, "MQTT-3.4.2-1", marks=clause("MQTT-3.4.2-1")),
        pytest.param(5, "50: 0001 01", Violation, "MQTT-3.5.2-1", marks=clause("MQTT-3.5.2-1")),
        pytest.param(5, "62: 0001 80", Violation, "MQTT-3.6.2-1", marks=clause("MQTT-3.6.2-1")),
        pytest.param(5, "70: 0001 10", Violation, "MQTT-3.7.2-1", marks=clause("MQTT-3.7.2-1")),
        pytest.param(5, "40: 0001 00 00 00", Malformed, "2.1.4", id="v5 PUBACK with trailing bytes"),
        pytest.param(5, "40: 0001 00 03 23 0001", Malformed, "2.2.2.2", id="v5 PUBACK with a topic alias"),
        # SUBSCRIBE
        pytest.param(4, "82: 0001", Violation, "MQTT-3.8.3-2", marks=clause("MQTT311-3.8.3-3")),
        pytest.param(5, "82: 0001 00", Violation, "MQTT-3.8.3-2", marks=clause("MQTT-3.8.3-2")),
        pytest.param(4, "82: 0000 'a' 00", Violation, "MQTT-2.2.1-3", marks=clause("MQTT311-2.3.1-1")),
        pytest.param(5, "82: 0000 00 'a' 00", Violation, "MQTT-2.2.1-3", marks=clause("MQTT-2.2.1-3")),
        pytest.param(4, "82: 0001 'a' 03", Malformed, "3.1.1 MQTT-3.8.3-4", marks=clause("MQTT311-3.8.3-4")),
        pytest.param(4, "82: 0001 'a' 04", Malformed, "3.1.1 MQTT-3.8.3-4", marks=clause("MQTT311-3.8.3-4")),
        pytest.param(4, "82: 0001 'a' 80", Malformed, "3.1.1 MQTT-3.8.3-4", marks=clause("MQTT311-3.8.3-4")),
        pytest.param(5, "82: 0001 00 'a' 40", Malformed, "MQTT-3.8.3-5", marks=clause("MQTT-3.8.3-5")),
        pytest.param(5, "82: 0001 00 'a' 80", Malformed, "MQTT-3.8.3-5", marks=clause("MQTT-3.8.3-5")),
        pytest.param(5, "82: 0001 00 'a' 03", Violation, "3.8.3.1", id="v5 SUBSCRIBE maximum QoS 3"),
        pytest.param(5, "82: 0001 00 'a' 30", Violation, "3.8.3.1", id="v5 SUBSCRIBE retain handling 3"),
        pytest.param(5, "82: 0001 00 '$share/g/a' 04", Violation, "MQTT-3.8.3-4", marks=clause("MQTT-3.8.3-4")),
        pytest.param(4, "82: 0001 'a'", Malformed, "3.8.3", id="v4 SUBSCRIBE filter without QoS"),
        pytest.param(5, "82: 0001 00 'a' 00 'b'", Malformed, "3.8.3", id="v5 SUBSCRIBE second filter without options"),
        pytest.param(4, "82: 0001 0001 ff 00", Malformed, "MQTT-1.5.4-1", marks=clause("MQTT311-3.8.3-1")),
        pytest.param(5, "82: 0001 00 0001 ff 00", Malformed, "MQTT-1.5.4-1", marks=clause("MQTT-3.8.3-1")),
        pytest.param(5, "82: 0001 04 0b 01 0b 02 'a' 00", Violation, "3.8.2.1.2", id="v5 SUBSCRIBE two identifiers"),
        # SUBACK
        pytest.param(4, "90: 0001 03", Violation, "3.1.1 MQTT-3.9.3-2", id="v4 SUBACK reserved return code"),
        pytest.param(5, "90: 0001 00 03", Violation, "MQTT-3.9.3-2", id="v5 SUBACK reason of another packet"),
        pytest.param(5, "90: 0001 00", Violation, "MQTT-3.8.4-6", id="v5 SUBACK without a code"),
        pytest.param(4, "90: 0001", Violation, "MQTT-3.8.4-6", id="v4 SUBACK without a code"),
        # UNSUBSCRIBE, UNSUBACK
        pytest.param(4, "a2: 0001", Violation, "MQTT-3.10.3-2", marks=clause("MQTT311-3.10.3-2")),
        pytest.param(5, "a2: 0001 00", Violation, "MQTT-3.10.3-2", marks=clause("MQTT-3.10.3-2")),
        pytest.param(4, "a2: 0000 'a'", Violation, "MQTT-2.2.1-3", marks=clause("MQTT311-2.3.1-1")),
        pytest.param(5, "a2: 0000 00 'a'", Violation, "MQTT-2.2.1-3", marks=clause("MQTT-2.2.1-3")),
        pytest.param(4, "a2: 0001 'a' 00", Malformed, "1.5.4", marks=clause("MQTT311-3.10.3-1")),
        pytest.param(5, "a2: 0001 00 0001 ff", Malformed, "MQTT-1.5.4-1", marks=clause("MQTT-3.10.3-1")),
        pytest.param(4, "b0: 0001 00", Malformed, "2.1.4", id="v4 UNSUBACK with a payload"),
        pytest.param(5, "b0: 0001 00 01", Violation, "MQTT-3.11.3-2", id="v5 UNSUBACK reason of another packet"),
        pytest.param(5, "b0: 0001 00", Violation, "3.11.3", id="v5 UNSUBACK without a code"),
        # PINGREQ, PINGRESP
        pytest.param(4, "c0: 00", Malformed, "2.1.4", id="v4 PINGREQ with a body"),
        pytest.param(5, "c0: 00", Malformed, "2.1.4", id="v5 PINGREQ with a body"),
        pytest.param(5, "d0: 00", Malformed, "2.1.4", id="v5 PINGRESP with a body"),
        # DISCONNECT, AUTH
        pytest.param(4, "e0: 00", Malformed, "2.1.4", id="v4 DISCONNECT with a body"),
        pytest.param(5, "e0: 01", Violation, "MQTT-3.14.2-1", marks=clause("MQTT-3.14.2-1")),
        pytest.param(5, "e0: 00 00 00", Malformed, "2.1.4", id="v5 DISCONNECT with trailing bytes"),
        pytest.param(5, "e0: 00 05 11 0000", Malformed, "2.2.2.1", id="v5 DISCONNECT properties past the end"),
        pytest.param(4, "f0:", Malformed, "3.1.1 2.2.1", id="v4 AUTH"),
        pytest.param(5, "f0: 01 00", Violation, "MQTT-3.15.2-1", marks=clause("MQTT-3.15.2-1")),
        pytest.param(5, "f0: 18", Violation, "3.15.2.2.2", id="v5 AUTH with a reason only"),
        pytest.param(5, "f0: 18 00", Violation, "3.15.2.2.2", id="v5 AUTH without a method"),
        pytest.param(5, "f0: 18 04 15 'm' 00", Malformed, "2.1.4", id="v5 AUTH with trailing bytes"),
    ],
)
def test_a_packet_is_refused(version: int, notation: str, kind: type[ProtocolError], broken: str) -> None:
    error = refused(notation, version)
    assert type(error) is kind
    assert error.clause == broken


@pytest.mark.parametrize("packet", [packet for packet in ALLOWED if packet is not PacketType.AUTH])
def test_exactly_the_reason_codes_of_a_packet_are_accepted(packet: PacketType) -> None:
    before, after = {
        PacketType.CONNACK: (b"\0", b"\0"),
        PacketType.SUBACK: (b"\0\1\0", b""),
        PacketType.UNSUBACK: (b"\0\1\0", b""),
        PacketType.DISCONNECT: (b"", b""),
    }.get(packet, (b"\0\1", b""))
    first = packet << 4 | (2 if packet is PacketType.PUBREL else 0)
    accepted = set()
    for code in range(256):
        try:
            decode(first, before + bytes((code,)) + after, 5)
            accepted.add(code)
        except Violation:
            pass
    assert accepted == set(ALLOWED[packet])


def test_the_short_forms_of_an_acknowledgement() -> None:
    expected = Puback(packet_id=1)
    for notation in ("0001", "0001 00", "0001 00 00"):
        assert decode(0x40, body(notation), 5) == expected


def test_the_short_forms_of_a_disconnect() -> None:
    for notation in ("", "00", "00 00"):
        assert decode(0xE0, body(notation), 5) == Disconnect(reason=Reason.NORMAL_DISCONNECTION)


@clause("MQTT-2.2.1-2", "MQTT311-2.3.1-5")
def test_qos_0_has_no_packet_identifier() -> None:
    for version, notation in ((4, "'a' 0007"), (5, "'a' 00 0007")):
        found = decode(0x30, body(notation), version)
        assert isinstance(found, Publish)
        assert (found.packet_id, found.payload) == (0, b"\0\7")


def test_forward_leaves_out_what_is_bound_anew() -> None:
    found = decode(0x30, body("'a' 11 26 'k' '1' 23 0001 02 00000009 01 00") + b"x", 5)
    assert isinstance(found, Publish)
    assert found.forward == body("26 'k' '1' 01 00")
    assert found.payload == b"x"


@given(st.integers(0, 255), st.binary(max_size=64), st.sampled_from(BOTH))
def test_any_bytes_give_a_packet_or_a_refusal(first: int, data: bytes, version: int) -> None:
    with contextlib.suppress(ProtocolError):
        decode(first, data, version)
