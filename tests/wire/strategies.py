"""Hypothesis strategies for everything a packet can hold."""

from __future__ import annotations

from typing import Any, Final, get_type_hints

from hypothesis import strategies as st

from tieline.wire.packet_type import WILL, PacketType
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
from tieline.wire.reason import ALLOWED, RETURN_CODES, Reason

texts: Final = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"),
    max_size=40,
)
_levels: Final = st.text(st.characters(codec="utf-8", exclude_characters="\0+#/"), max_size=6)
topics: Final = st.lists(_levels, min_size=1, max_size=5).map("/".join).filter(bool)
payloads: Final = st.binary(max_size=200)
packet_ids: Final = st.integers(1, 65_535)
qos_levels: Final = st.integers(0, 2)
flags: Final = st.booleans()

_bytes: Final = st.binary(max_size=40)
_bit: Final = st.integers(0, 1)
_u16: Final = st.integers(0, 65_535)
_u32: Final = st.integers(0, 0xFFFFFFFF)

#: A good value for each property.
VALUES: Final[dict[str, st.SearchStrategy[Any]]] = {
    "payload_format_indicator": _bit,
    "message_expiry_interval": _u32,
    "content_type": texts,
    "response_topic": topics,
    "correlation_data": _bytes,
    "subscription_identifier": st.lists(st.integers(1, 268_435_455), min_size=1, max_size=3),
    "session_expiry_interval": _u32,
    "assigned_client_identifier": texts,
    "server_keep_alive": _u16,
    "authentication_method": texts,
    "authentication_data": _bytes,
    "request_problem_information": _bit,
    "will_delay_interval": _u32,
    "request_response_information": _bit,
    "response_information": texts,
    "server_reference": texts,
    "reason_string": texts,
    "receive_maximum": st.integers(1, 65_535),
    "topic_alias_maximum": _u16,
    "topic_alias": _u16,
    "maximum_qos": _bit,
    "retain_available": _bit,
    "user_property": st.lists(st.tuples(texts, texts), min_size=1, max_size=4),
    "maximum_packet_size": st.integers(1, 0xFFFFFFFF),
    "wildcard_subscription_available": _bit,
    "subscription_identifier_available": _bit,
    "shared_subscription_available": _bit,
}
assert VALUES.keys() == get_type_hints(Properties).keys()

_MESSAGE: Final = "payload_format_indicator message_expiry_interval content_type response_topic correlation_data"
_ANSWER: Final = "reason_string user_property"

#: Which property belongs into which packet, written down a second time from table 2-4.
CARRIED: Final[dict[int, frozenset[str]]] = {
    packet: frozenset(names.split())
    for packet, names in {
        WILL: f"{_MESSAGE} will_delay_interval user_property",
        PacketType.CONNECT: "session_expiry_interval authentication_method authentication_data receive_maximum"
        " request_problem_information request_response_information topic_alias_maximum maximum_packet_size"
        " user_property",
        PacketType.CONNACK: "session_expiry_interval assigned_client_identifier server_keep_alive authentication_method"
        " authentication_data response_information server_reference reason_string receive_maximum topic_alias_maximum"
        " maximum_qos retain_available user_property maximum_packet_size wildcard_subscription_available"
        " subscription_identifier_available shared_subscription_available",
        PacketType.PUBLISH: f"{_MESSAGE} subscription_identifier topic_alias user_property",
        PacketType.PUBACK: _ANSWER,
        PacketType.PUBREC: _ANSWER,
        PacketType.PUBREL: _ANSWER,
        PacketType.PUBCOMP: _ANSWER,
        PacketType.SUBSCRIBE: "subscription_identifier user_property",
        PacketType.SUBACK: _ANSWER,
        PacketType.UNSUBSCRIBE: "user_property",
        PacketType.UNSUBACK: _ANSWER,
        PacketType.DISCONNECT: f"{_ANSWER} session_expiry_interval server_reference",
        PacketType.AUTH: f"{_ANSWER} authentication_method authentication_data",
    }.items()
}


def properties(packet: int, version: int = 5) -> st.SearchStrategy[Any]:
    """Properties that this packet may carry, in any order; none in 3.1.1."""
    if version != 5:
        return st.just({})
    values = {name: VALUES[name] for name in sorted(CARRIED[packet])}
    if packet == PacketType.SUBSCRIBE:
        values["subscription_identifier"] = st.lists(st.integers(1, 268_435_455), min_size=1, max_size=1)
    required = {"authentication_method": values.pop("authentication_method")} if packet == PacketType.AUTH else {}
    if packet == PacketType.CONNECT:
        values["authentication_data"] = st.nothing()
    return st.fixed_dictionaries(
        required, optional={name: value for name, value in values.items() if not value.is_empty}
    )


def _wills(version: int) -> st.SearchStrategy[Will]:
    return st.builds(
        Will, topic=topics, payload=payloads, qos=qos_levels, retain=flags, properties=properties(WILL, version)
    )


@st.composite
def connects(draw: st.DrawFn, version: int) -> Connect:
    username = draw(st.none() | texts)
    password = draw(st.none() | payloads) if version == 5 or username is not None else None
    return Connect(
        version=version,
        clean_start=draw(flags),
        keep_alive=draw(_u16),
        client_id=draw(texts),
        will=draw(st.none() | _wills(version)),
        username=username,
        password=password,
        properties=draw(properties(PacketType.CONNECT, version)),
    )


@st.composite
def connacks(draw: st.DrawFn, version: int) -> Connack:
    reason = draw(st.sampled_from(list(ALLOWED[PacketType.CONNACK].values()) if version == 5 else RETURN_CODES))
    return Connack(
        session_present=draw(flags) and reason is Reason.SUCCESS,
        reason=reason,
        properties=draw(properties(PacketType.CONNACK, version)),
    )


@st.composite
def publishes(draw: st.DrawFn, version: int) -> Publish:
    qos = draw(qos_levels)
    return Publish(
        topic=draw(topics),
        payload=draw(payloads),
        qos=qos,
        retain=draw(flags),
        dup=draw(flags) and qos > 0,
        packet_id=draw(packet_ids) if qos else 0,
        properties=draw(properties(PacketType.PUBLISH, version)),
    )


def _subscriptions(version: int) -> st.SearchStrategy[Subscription]:
    if version != 5:
        return st.builds(Subscription, filter=texts, qos=qos_levels)
    return st.builds(
        Subscription,
        filter=texts.filter(lambda text: not text.startswith("$share/")),
        qos=qos_levels,
        no_local=flags,
        retain_as_published=flags,
        retain_handling=qos_levels,
    )


def packets(version: int) -> st.SearchStrategy[Packet]:
    """Any packet that a connection of this version can carry."""

    def carrying(packet: PacketType) -> st.SearchStrategy[Any]:
        return properties(packet, version)

    def reason(packet: PacketType) -> st.SearchStrategy[Reason]:
        return st.sampled_from(list(ALLOWED[packet].values())) if version == 5 else st.just(Reason.SUCCESS)

    def codes(packet: PacketType, old: tuple[int, ...]) -> st.SearchStrategy[tuple[int, ...]]:
        return st.lists(st.sampled_from(list(ALLOWED[packet]) if version == 5 else old), min_size=1, max_size=5).map(
            tuple
        )

    kinds: list[st.SearchStrategy[Any]] = [
        connects(version),
        connacks(version),
        publishes(version),
        *(
            st.builds(make, packet_id=packet_ids, reason=reason(packet), properties=carrying(packet))
            for make, packet in (
                (Puback, PacketType.PUBACK),
                (Pubrec, PacketType.PUBREC),
                (Pubrel, PacketType.PUBREL),
                (Pubcomp, PacketType.PUBCOMP),
            )
        ),
        st.builds(
            Subscribe,
            packet_id=packet_ids,
            subscriptions=st.lists(_subscriptions(version), min_size=1, max_size=4).map(tuple),
            properties=carrying(PacketType.SUBSCRIBE),
        ),
        st.builds(
            Suback,
            packet_id=packet_ids,
            reasons=codes(PacketType.SUBACK, (0, 1, 2, 0x80)),
            properties=carrying(PacketType.SUBACK),
        ),
        st.builds(
            Unsubscribe,
            packet_id=packet_ids,
            filters=st.lists(texts, min_size=1, max_size=4).map(tuple),
            properties=carrying(PacketType.UNSUBSCRIBE),
        ),
        st.builds(
            Unsuback,
            packet_id=packet_ids,
            reasons=codes(PacketType.UNSUBACK, ()) if version == 5 else st.just(()),
            properties=carrying(PacketType.UNSUBACK),
        ),
        st.just(Pingreq()),
        st.just(Pingresp()),
        st.builds(Disconnect, reason=reason(PacketType.DISCONNECT), properties=carrying(PacketType.DISCONNECT)),
    ]
    if version == 5:
        kinds.append(st.builds(Auth, reason=reason(PacketType.AUTH), properties=carrying(PacketType.AUTH)))
    return st.one_of(kinds)
