"""The control packet types: the number in the first four bits of every packet [2.1.2]."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class PacketType(IntEnum):
    """MQTT control packet types; 0 is reserved in both versions and AUTH exists in MQTT 5 only."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


#: The will inside a CONNECT has a property set of its own; it goes by the one number no packet type uses.
WILL: Final = 0
