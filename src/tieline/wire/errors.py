"""What a peer can do wrong: every refusal carries a reason code, a sentence and the clause that was broken.

::

    ProtocolError
    ├── Malformed   0x81  the bytes cannot be parsed as the specification says
    ├── Violation   0x82  they parse, but say something the protocol forbids (or a more exact reason code)
    └── TooLarge    0x95  the packet is larger than this side accepts

A clause is written the way MQTT 5 numbers it, ``MQTT-3.3.1-4``; a rule that the specification states without
a number is cited by its section, ``3.8.3.1``; a rule that only MQTT 3.1.1 has is marked ``3.1.1 MQTT-3.1.2-22``.
"""

from __future__ import annotations

from tieline.wire.reason import Reason


class ProtocolError(Exception):
    """The peer broke the protocol; only the subclasses are raised."""

    def __init__(self, text: str, clause: str, reason: Reason) -> None:
        super().__init__(text, clause, reason)
        self.text = text
        self.clause = clause
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.text} [{self.clause}]"


class Malformed(ProtocolError):
    """A packet that cannot be parsed [1.2]."""

    def __init__(self, text: str, clause: str) -> None:
        super().__init__(text, clause, Reason.MALFORMED_PACKET)


class Violation(ProtocolError):
    """A packet that parses and holds what the protocol does not allow [1.2]."""

    def __init__(self, text: str, clause: str, reason: Reason = Reason.PROTOCOL_ERROR) -> None:
        super().__init__(text, clause, reason)


class TooLarge(ProtocolError):
    """A packet above the size that this side announced."""

    def __init__(self, text: str, clause: str) -> None:
        super().__init__(text, clause, Reason.PACKET_TOO_LARGE)
