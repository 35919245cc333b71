"""Every control packet of both versions as bytes and as the object they stand for."""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.wire.notation import packet
from tieline.wire.packets import (
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Subscription,
    Unsuback,
    Unsubscribe,
    Will,
)
from tieline.wire.reason import Reason


class Example(NamedTuple):
    """One packet, the version of its connection, and its bytes."""

    name: str
    version: int
    wire: bytes
    packet: Packet

    @property
    def label(self) -> str:
        return f"v{self.version}-{self.name}"


def _both(name: str, notation: str, value: Packet) -> list[Example]:
    return [Example(name, version, packet(notation), value) for version in (4, 5)]


def _v4(name: str, notation: str, value: Packet) -> list[Example]:
    return [Example(name, 4, packet(notation), value)]


def _v5(name: str, notation: str, value: Packet) -> list[Example]:
    return [Example(name, 5, packet(notation), value)]


EXAMPLES: Final[list[Example]] = [
    *_v4("connect", "10: 'MQTT' 04 02 003c 'c'", Connect(version=4, keep_alive=60, client_id="c")),
    *_v4("connect-empty", "10: 'MQTT' 04 00 0000 ''", Connect(version=4, clean_start=False)),
    *_v4(
        "connect-full",
        "10: 'MQTT' 04 f6 000a 'c' 'w/t' 'bye' 'user' 'pass'",
        Connect(
            version=4,
            keep_alive=10,
            client_id="c",
            will=Will(topic="w/t", payload=b"bye", qos=2, retain=True),
            username="user",
            password=b"pass",
        ),
    ),
    *_v5("connect", "10: 'MQTT' 05 02 003c 00 'c'", Connect(version=5, keep_alive=60, client_id="c")),
    *_v5(
        "connect-password-only",
        "10: 'MQTT' 05 40 0000 00 '' 0002 00ff",
        Connect(version=5, clean_start=False, password=b"\x00\xff"),
    ),
    *_v5(
        "connect-full",
        "10: 'MQTT' 05 ce 000a"
        "  30 11 ffffffff 21 0014 27 00010000 22 0005 19 01 17 00 26 'k' 'v' 26 'k' 'w' 15 'SCRAM' 16 0003 000102"
        "  'c'"
        "  1d 18 00000005 01 01 02 0000003c 03 'text' 08 'r/t' 09 0001 7f"
        "  'w/t' 'bye' 'user' 'pass'",
        Connect(
            version=5,
            keep_alive=10,
            client_id="c",
            will=Will(
                topic="w/t",
                payload=b"bye",
                qos=1,
                properties={
                    "will_delay_interval": 5,
                    "payload_format_indicator": 1,
                    "message_expiry_interval": 60,
                    "content_type": "text",
                    "response_topic": "r/t",
                    "correlation_data": b"\x7f",
                },
            ),
            username="user",
            password=b"pass",
            properties={
                "session_expiry_interval": 0xFFFFFFFF,
                "receive_maximum": 20,
                "maximum_packet_size": 65_536,
                "topic_alias_maximum": 5,
                "request_response_information": 1,
                "request_problem_information": 0,
                "user_property": [("k", "v"), ("k", "w")],
                "authentication_method": "SCRAM",
                "authentication_data": b"\x00\x01\x02",
            },
        ),
    ),
    *_v4("connack", "20: 01 00", Connack(session_present=True)),
    *_v4("connack-refused", "20: 00 05", Connack(reason=Reason.NOT_AUTHORIZED)),
    *_v5("connack", "20: 00 00 00", Connack()),
    *_v5("connack-refused", "20: 00 9f 00", Connack(reason=Reason.CONNECTION_RATE_EXCEEDED)),
    *_v5(
        "connack-full",
        "20: 01 00 4a 11 00000078 21 0001 24 01 25 00 27 00000100 12 'auto' 22 ffff 1f 'fine' 28 01 29 00 2a 01"
        "  13 001e 1a 'inf' 1c 'ref' 15 'm' 16 0000 26 'a' 'b' 26 '' ''",
        Connack(
            session_present=True,
            properties={
                "session_expiry_interval": 120,
                "receive_maximum": 1,
                "maximum_qos": 1,
                "retain_available": 0,
                "maximum_packet_size": 256,
                "assigned_client_identifier": "auto",
                "topic_alias_maximum": 65_535,
                "reason_string": "fine",
                "wildcard_subscription_available": 1,
                "subscription_identifier_available": 0,
                "shared_subscription_available": 1,
                "server_keep_alive": 30,
                "response_information": "inf",
                "server_reference": "ref",
                "authentication_method": "m",
                "authentication_data": b"",
                "user_property": [("a", "b"), ("", "")],
            },
        ),
    ),
    *_v4("publish", "30: 'a/b' 6869", Publish(topic="a/b", payload=b"hi")),
    *_v4("publish-empty", "31: 'a'", Publish(topic="a", retain=True)),
    *_v4(
        "publish-qos2",
        "3d: 'a/b' 0102 00",
        Publish(topic="a/b", payload=b"\0", qos=2, retain=True, dup=True, packet_id=258),
    ),
    *_v5("publish", "30: 'a/b' 00 6869", Publish(topic="a/b", payload=b"hi")),
    *_v5("publish-qos1", "32: 'ä' ffff 00", Publish(topic="ä", qos=1, packet_id=65_535)),
    *_v5(
        "publish-alias-only",
        "30: '' 03 23 0001 78",
        Publish(topic="", payload=b"x", properties={"topic_alias": 1}),
    ),
    *_v5(
        "publish-full",
        "3b: 'a/b' 0001 31 26 'z' '1' 26 'a' '2' 01 01 02 0000000a 23 0007 08 'r/t' 09 0002 0001 0b 01 0b ffffff7f"
        "  03 'text' 78",
        Publish(
            topic="a/b",
            payload=b"x",
            qos=1,
            retain=True,
            dup=True,
            packet_id=1,
            properties={
                "user_property": [("z", "1"), ("a", "2")],
                "payload_format_indicator": 1,
                "message_expiry_interval": 10,
                "topic_alias": 7,
                "response_topic": "r/t",
                "correlation_data": b"\0\1",
                "subscription_identifier": [1, 268_435_455],
                "content_type": "text",
            },
        ),
    ),
    *_both("puback", "40: 0001", Puback(packet_id=1)),
    *_both("pubrec", "50: 0002", Pubrec(packet_id=2)),
    *_both("pubrel", "62: 0003", Pubrel(packet_id=3)),
    *_both("pubcomp", "70: ffff", Pubcomp(packet_id=65_535)),
    *_v5("puback-reason", "40: 0001 10", Puback(packet_id=1, reason=Reason.NO_MATCHING_SUBSCRIBERS)),
    *_v5("pubrec-reason", "50: 0002 97", Pubrec(packet_id=2, reason=Reason.QUOTA_EXCEEDED)),
    *_v5("pubrel-reason", "62: 0003 92", Pubrel(packet_id=3, reason=Reason.PACKET_IDENTIFIER_NOT_FOUND)),
    *_v5(
        "pubcomp-full",
        "70: 0004 92 0c 1f 'why' 26 'a' ''",
        Pubcomp(
            packet_id=4,
            reason=Reason.PACKET_IDENTIFIER_NOT_FOUND,
            properties={"reason_string": "why", "user_property": [("a", "")]},
        ),
    ),
    *_v4(
        "subscribe",
        "82: 000a 'a/b' 00 '#' 01 '+/c' 02",
        Subscribe(
            packet_id=10,
            subscriptions=(
                Subscription(filter="a/b"),
                Subscription(filter="#", qos=1),
                Subscription(filter="+/c", qos=2),
            ),
        ),
    ),
    *_v5(
        "subscribe",
        "82: 000a 0a 0b 8001 26 'k' 'v' 'a/b' 2e '$share/g/#' 19",
        Subscribe(
            packet_id=10,
            subscriptions=(
                Subscription(filter="a/b", qos=2, no_local=True, retain_as_published=True, retain_handling=2),
                Subscription(filter="$share/g/#", qos=1, retain_as_published=True, retain_handling=1),
            ),
            properties={"subscription_identifier": [128], "user_property": [("k", "v")]},
        ),
    ),
    *_v4("suback", "90: 000a 00 01 02 80", Suback(packet_id=10, reasons=(0, 1, 2, 0x80))),
    *_v5("suback", "90: 000a 00 00 8f a2", Suback(packet_id=10, reasons=(0, 0x8F, 0xA2))),
    *_v4("unsubscribe", "a2: 000b 'a/b' '#'", Unsubscribe(packet_id=11, filters=("a/b", "#"))),
    *_v5("unsubscribe", "a2: 000b 00 'a/b' '#'", Unsubscribe(packet_id=11, filters=("a/b", "#"))),
    *_v4("unsuback", "b0: 000b", Unsuback(packet_id=11)),
    *_v5(
        "unsuback",
        "b0: 000b 05 1f '\u00e9' 00 11",
        Unsuback(packet_id=11, reasons=(0, 0x11), properties={"reason_string": "é"}),
    ),
    *_both("pingreq", "c0:", Pingreq()),
    *_both("pingresp", "d0:", Pingresp()),
    *_both("disconnect", "e0:", Disconnect()),
    *_v5("disconnect-will", "e0: 04", Disconnect(reason=Reason.DISCONNECT_WITH_WILL_MESSAGE)),
    *_v5(
        "disconnect-full",
        "e0: 00 0b 11 00000000 1c 'ref'",
        Disconnect(properties={"session_expiry_interval": 0, "server_reference": "ref"}),
    ),
    *_v5("auth-success", "f0:", Auth()),
    *_v5(
        "auth",
        "f0: 18 09 15 'm' 16 0002 abcd",
        Auth(
            reason=Reason.CONTINUE_AUTHENTICATION,
            properties={"authentication_method": "m", "authentication_data": b"\xab\xcd"},
        ),
    ),
]
