"""The seeds: every packet of both versions, with everything in it that it can hold."""

from __future__ import annotations

from typing import Final

from tieline.wire.encode import encode
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
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason

_PAIRS: Final = [("k", "v"), ("k", "ä")]

_MESSAGE: Final[Properties] = {
    "payload_format_indicator": 1,
    "message_expiry_interval": 9,
    "content_type": "text",
    "response_topic": "r/t",
    "correlation_data": b"\x00\xff",
    "user_property": _PAIRS,
}

#: What a client sends, after its CONNECT.
SAID_BY_CLIENTS: Final[tuple[Packet, ...]] = (
    Subscribe(packet_id=1, subscriptions=(Subscription(filter="a/#", qos=2), Subscription(filter="+/b", qos=1))),
    Subscribe(
        packet_id=2,
        subscriptions=(
            Subscription(filter="a/b", qos=1, no_local=True, retain_as_published=True, retain_handling=1),
            Subscription(filter="$share/g/a/+", qos=2, retain_handling=2),
        ),
        properties={"subscription_identifier": [7], "user_property": _PAIRS},
    ),
    Publish(topic="a/b", payload=b"hello"),
    Publish(topic="a/b", payload=b"", retain=True),
    Publish(topic="a/b", payload=b"kept", qos=1, packet_id=3, retain=True, properties=_MESSAGE),
    Publish(topic="a/c", payload=b"set", properties={"topic_alias": 1}),
    Publish(topic="a/b", payload=b"again", qos=2, packet_id=4, dup=True),
    Pubrel(packet_id=4),
    Puback(packet_id=1),
    Pubrec(packet_id=1, reason=Reason.QUOTA_EXCEEDED, properties={"reason_string": "full", "user_property": _PAIRS}),
    Pubcomp(packet_id=1, reason=Reason.PACKET_IDENTIFIER_NOT_FOUND),
    Unsubscribe(packet_id=5, filters=("a/#", "$share/g/a/+"), properties={"user_property": _PAIRS}),
    Pingreq(),
    Auth(reason=Reason.REAUTHENTICATE, properties={"authentication_method": "m", "authentication_data": b"x"}),
    Disconnect(reason=Reason.DISCONNECT_WITH_WILL_MESSAGE, properties={"session_expiry_interval": 5}),
    Disconnect(),
)

#: What only a server sends.
SAID_BY_SERVERS: Final[tuple[Packet, ...]] = (
    Connack(session_present=True),
    Connack(
        reason=Reason.NOT_AUTHORIZED,
        properties={"reason_string": "no", "server_reference": "elsewhere", "maximum_qos": 1, "server_keep_alive": 5},
    ),
    Connack(
        properties={
            "session_expiry_interval": 1,
            "receive_maximum": 2,
            "retain_available": 0,
            "maximum_packet_size": 999,
            "assigned_client_identifier": "auto",
            "topic_alias_maximum": 3,
            "wildcard_subscription_available": 0,
            "subscription_identifier_available": 1,
            "shared_subscription_available": 0,
            "response_information": "info",
        }
    ),
    Publish(topic="", payload=b"x", properties={"topic_alias": 1, "subscription_identifier": [1, 300]}),
    Suback(packet_id=1, reasons=(0, 1, 2, 0x80)),
    Unsuback(packet_id=5, reasons=(0, 0x11)),
    Pingresp(),
)


def connects(version: int) -> list[Connect]:
    """A plain CONNECT and one with everything."""
    properties: Properties = {
        "session_expiry_interval": 60,
        "receive_maximum": 2,
        "maximum_packet_size": 500,
        "topic_alias_maximum": 2,
        "request_response_information": 1,
        "request_problem_information": 1,
        "user_property": _PAIRS,
    }
    return [
        Connect(version=version, client_id="c", keep_alive=60),
        Connect(
            version=version,
            clean_start=False,
            client_id="d",
            will=Will(
                topic="w/t", payload=b"gone", qos=1, retain=True, properties={"will_delay_interval": 2, **_MESSAGE}
            ),
            username="user",
            password=b"secret",
            properties=properties,
        ),
    ]


def encoded(packets: tuple[Packet, ...], version: int) -> list[bytes]:
    """Each packet as bytes; what a version does not have is left out."""
    return [encode(packet, version) for packet in packets if version == 5 or not isinstance(packet, Auth)]
