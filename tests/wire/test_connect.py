from __future__ import annotations

import pytest

from tests.clause.marker import clause
from tests.wire.notation import body
from tieline.wire.connect import decode_connect
from tieline.wire.errors import Malformed, ProtocolError, Violation
from tieline.wire.reason import Reason


@pytest.mark.parametrize(
    ("notation", "kind", "broken"),
    [
        pytest.param("'MQTT' 04 03 0000 'c'", Malformed, "MQTT-3.1.2-3", marks=clause("MQTT311-3.1.2-3")),
        pytest.param("'MQTT' 05 03 0000 00 'c'", Malformed, "MQTT-3.1.2-3", marks=clause("MQTT-3.1.2-3")),
        pytest.param("'MQTT' 04 0a 0000 'c'", Violation, "MQTT-3.1.2-11", marks=clause("MQTT311-3.1.2-13")),
        pytest.param("'MQTT' 05 12 0000 00 'c'", Violation, "MQTT-3.1.2-11", marks=clause("MQTT-3.1.2-11")),
        pytest.param("'MQTT' 04 22 0000 'c'", Violation, "MQTT-3.1.2-13", marks=clause("MQTT311-3.1.2-15")),
        pytest.param("'MQTT' 05 22 0000 00 'c'", Violation, "MQTT-3.1.2-13", marks=clause("MQTT-3.1.2-13")),
        pytest.param("'MQTT' 04 1e 0000 'c' 'w' ''", Malformed, "MQTT-3.1.2-12", marks=clause("MQTT311-3.1.2-14")),
        pytest.param("'MQTT' 05 1e 0000 00 'c' 00 'w' ''", Malformed, "MQTT-3.1.2-12", marks=clause("MQTT-3.1.2-12")),
        pytest.param("'MQTT' 04 42 0000 'c' 'p'", Violation, "3.1.1 MQTT-3.1.2-22", marks=clause("MQTT311-3.1.2-22")),
        pytest.param("'MQTT' 04 06 0000 'c' 'w'", Malformed, "1.5.6", marks=clause("MQTT311-3.1.2-9")),
        pytest.param("'MQTT' 05 06 0000 00 'c' 00 'w'", Malformed, "1.5.6", marks=clause("MQTT-3.1.2-9")),
        pytest.param("'MQTT' 04 82 0000 'c'", Malformed, "1.5.4", marks=clause("MQTT311-3.1.2-19")),
        pytest.param("'MQTT' 05 82 0000 00 'c'", Malformed, "1.5.4", marks=clause("MQTT-3.1.2-19")),
        pytest.param("'MQTT' 04 c2 0000 'c' 'u'", Malformed, "1.5.6", marks=clause("MQTT311-3.1.2-21")),
        pytest.param("'MQTT' 05 42 0000 00 'c'", Malformed, "1.5.6", marks=clause("MQTT-3.1.2-21")),
        pytest.param(
            "'MQTT' 04 02 0000 'c' 'u'",
            Malformed,
            "MQTT-3.1.4-1",
            marks=clause("MQTT311-3.1.2-18", "MQTT311-3.1.2-11"),
        ),
        pytest.param("'MQTT' 05 02 0000 00 'c' 'u'", Malformed, "MQTT-3.1.4-1", marks=clause("MQTT-3.1.2-18")),
        pytest.param("'MQTT' 04 82 0000 'c' 'u' 'p'", Malformed, "MQTT-3.1.4-1", marks=clause("MQTT311-3.1.2-20")),
        pytest.param("'MQTT' 05 82 0000 00 'c' 'u' 'p'", Malformed, "MQTT-3.1.4-1", marks=clause("MQTT-3.1.2-20")),
        pytest.param("'MQTT' 04 02 0000", Malformed, "1.5.4", marks=clause("MQTT311-3.1.3-3")),
        pytest.param("'MQTT' 05 02 0000 00", Malformed, "1.5.4", marks=clause("MQTT-3.1.3-3")),
        pytest.param("'MQTT' 04 02 0000 0001 ff", Malformed, "MQTT-1.5.4-1", marks=clause("MQTT311-3.1.3-4")),
        pytest.param("'MQTT' 05 02 0000 00 0001 ff", Malformed, "MQTT-1.5.4-1", marks=clause("MQTT-3.1.3-4")),
        pytest.param("'MQTT' 04 06 0000 'c' 0001 ff ''", Malformed, "MQTT-1.5.4-1", marks=clause("MQTT311-3.1.3-10")),
        pytest.param("'MQTT' 05 06 0000 00 'c' 00 0001 ff ''", Malformed, "MQTT-1.5.4-1", marks=clause("MQTT-3.1.3-9")),
        pytest.param("'MQTT' 04 82 0000 'c' 0001 ff", Malformed, "MQTT-1.5.4-1", marks=clause("MQTT311-3.1.3-11")),
        pytest.param("'MQTT' 05 82 0000 00 'c' 0001 ff", Malformed, "MQTT-1.5.4-1", marks=clause("MQTT-3.1.3-10")),
        pytest.param("'MQTT' 04 06 0000 'c' 'w/#' ''", Violation, "MQTT-4.7.0-1", id="v4 will topic with a wildcard"),
        pytest.param(
            "'MQTT' 05 06 0000 00 'c' 00 '+' ''", Violation, "MQTT-4.7.0-1", id="v5 will topic with a wildcard"
        ),
        pytest.param("'MQTT' 05 06 0000 00 'c' 00 '' ''", Violation, "MQTT-4.7.3-1", id="empty will topic"),
        pytest.param("'MQTT' 05 02 0000 03 16 0000 'c'", Violation, "3.1.2.11.10", id="data without a method"),
        pytest.param("'MQTT' 05 02 0000 03 23 0001 'c'", Malformed, "2.2.2.2", id="a property of another packet"),
        pytest.param("'MQTT' 05 06 0000 00 'c' 03 21 0001 'w' ''", Malformed, "2.2.2.2", id="not a will property"),
        pytest.param("'MQTT' 05 02 00", Malformed, "3.1.2", id="half a keep alive"),
        pytest.param("'MQTT'", Malformed, "3.1.2.2", id="no version"),
        pytest.param("", Malformed, "1.5.4", id="nothing"),
    ],
)
def test_a_connect_is_refused(notation: str, kind: type[ProtocolError], broken: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        decode_connect(body(notation))
    assert type(refused.value) is kind
    assert refused.value.clause == broken


@pytest.mark.parametrize(
    ("notation", "broken"),
    [
        pytest.param("'MQIsdp' 03 02 0000 'c'", "MQTT-3.1.2-1", marks=clause("MQTT-3.1.2-1", "MQTT311-3.1.2-1")),
        pytest.param("'mqtt' 04 02 0000 'c'", "MQTT-3.1.2-1", marks=clause("MQTT-3.1.2-1", "MQTT311-3.1.2-1")),
        pytest.param("'MQTT' 03 02 0000 'c'", "MQTT-3.1.2-2", marks=clause("MQTT-3.1.2-2", "MQTT311-3.1.2-2")),
        pytest.param("'MQTT' 06", "MQTT-3.1.2-2", marks=clause("MQTT-3.1.2-2", "MQTT311-3.1.2-2")),
        pytest.param("'MQTT' 84 02 0000 'c'", "MQTT-3.1.2-2", marks=clause("MQTT-3.1.2-2", "MQTT311-3.1.2-2")),
    ],
)
def test_another_protocol_is_told_so(notation: str, broken: str) -> None:
    with pytest.raises(Violation) as refused:
        decode_connect(body(notation))
    assert (refused.value.clause, refused.value.reason) == (broken, Reason.UNSUPPORTED_PROTOCOL_VERSION)


@clause("MQTT-3.1.3-1", "MQTT311-3.1.3-1")
def test_the_fields_of_the_payload_come_in_their_order() -> None:
    for version, block in (("04", ""), ("05", "00")):
        connect = decode_connect(body(f"'MQTT' {version} c6 0000 {block} '1' {block} '2' '3' '4' '5'"))
        assert connect.will is not None
        fields = (connect.client_id, connect.will.topic, connect.will.payload, connect.username, connect.password)
        assert fields == ("1", "2", b"3", "4", b"5")


def test_an_empty_client_identifier_is_for_the_server_to_judge() -> None:
    assert decode_connect(body("'MQTT' 04 00 0000 ''")).client_id == ""
