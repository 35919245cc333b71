"""``-D COMMAND PROPERTY VALUE``: MQTT 5 properties from words, checked against the packet they go into."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paho.mqtt import MQTTException
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

_PACKETS: dict[str, int] = {
    "connect": PacketTypes.CONNECT,
    "publish": PacketTypes.PUBLISH,
    "will": PacketTypes.WILLMESSAGE,
    "subscribe": PacketTypes.SUBSCRIBE,
    "unsubscribe": PacketTypes.UNSUBSCRIBE,
    "disconnect": PacketTypes.DISCONNECT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One property for one kind of packet."""

    command: str
    name: str
    value: str | tuple[str, str]


def words_taken(rest: Sequence[str]) -> int:
    """Three words after ``-D``, four for a user property, which is a pair."""
    return 4 if len(rest) > 1 and rest[1] == "user-property" else 3


def read(command: str, name: str, *value: str) -> Property:
    """Make a property of the words after ``-D``; ValueError says what is wrong."""
    if command not in _PACKETS:
        raise ValueError(f"the packet is one of {', '.join(_PACKETS)}")
    found = Property(command=command, name=name, value=(value[0], value[1]) if len(value) == 2 else value[0])
    build([found], command)
    return found


def build(properties: Iterable[Property], command: str) -> Properties | None:
    """The properties that belong to one kind of packet; None when there are none."""
    built = Properties(_PACKETS[command])
    for each in properties:
        if each.command == command:
            _set(built, each)
    return None if built.isEmpty() else built


def _set(built: Properties, each: Property) -> None:
    names = {name.lower().replace(" ", "-"): identifier for name, identifier in built.names.items()}
    if each.name not in names:
        raise ValueError(f'there is no property "{each.name}"')
    kind = built.types[built.properties[names[each.name]][0]]
    value: object = each.value
    if (isinstance(each.value, str) and "Integer" in kind) or kind == "Byte":
        if not str(each.value).isdigit():
            raise ValueError(f"{each.name} takes a whole number")
        value = int(str(each.value))
        if value >= {"Byte": 1 << 8, "Two Byte Integer": 1 << 16, "Variable Byte Integer": 1 << 28}.get(kind, 1 << 32):
            raise ValueError(f"{each.name} is too large")
    elif kind == "Binary Data":
        value = str(each.value).encode()
    try:
        setattr(built, each.name.title().replace("-", ""), value)
    except MQTTException as problem:
        raise ValueError(str(problem)) from None
