"""What would become of a message at one receiver; nothing is changed by asking.

The questions are those of :mod:`tieline.core.outbound.deliver` and :mod:`tieline.core.outbound.writer`, in their order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING

from tieline.core.account import Drop
from tieline.core.message import publish_bytes
from tieline.core.outbound.deliver import KEEPS_UP

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.message import Message
    from tieline.core.session import Grant, Held


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """A subscriber of the topic, and what the message comes to there."""

    client: str
    #: ``sent``, ``waits``, ``squeezes`` (queued, and something else is dropped for it), ``dropped`` or ``passed_over``.
    fate: str
    text: str
    #: The QoS with which it would get it.
    qos: int = 0
    #: The name of the drop, if it is one.
    why: str = ""
    #: Its matching subscriptions, as it wrote them.
    filters: tuple[str, ...] = ()
    #: ``$share/NAME/FILTER`` if it gets it as a member of a group.
    group: str = ""
    #: The condition that decided, and the values that were compared.
    condition: str = ""
    values: dict[str, object] = field(default_factory=dict)
    #: What waits for it now, and how much may.
    queued: int = 0
    queued_bytes: int = 0


def fate(  # what is asked about, and what the answer shows of it
    broker: Broker,
    message: Message,
    grant: Grant,
    held: list[Held],
    now: float,
    *,
    group: str = "",
    condition: str = "",
    values: dict[str, object] | None = None,
    ahead: int = 0,
) -> Receiver:
    """What becomes of a message for a session that is to get it, and gets ``ahead`` copies of it before this one."""
    session = grant.session
    kind, why, text = _outcome(broker, message, grant, now, ahead)
    return Receiver(
        client=session.client_id,
        fate=kind,
        text=text,
        qos=min(message.qos, grant.qos),
        why="" if why is None else why.value,
        filters=tuple(one.options.filter for one in held),
        group=group,
        condition=condition,
        values=values or {},
        queued=session.queue.messages,
        queued_bytes=session.queue.bytes,
    )


def _outcome(broker: Broker, message: Message, grant: Grant, now: float, ahead: int) -> tuple[str, Drop | None, str]:
    session = grant.session
    conn, queue = session.connection, session.queue
    waiting, size = queue.messages + ahead, queue.bytes + ahead * message.size
    qos = min(message.qos, grant.qos)
    if conn is None and not qos:
        return "dropped", Drop.OFFLINE, "its client is away, and QoS 0 does not wait for it"
    if broker.queued_bytes > broker.max_queued_bytes and size > KEEPS_UP:
        return "dropped", Drop.MEMORY_FULL, "all queues together are full, and this one is behind"
    if conn is not None and (packet := _packet_bytes(message, grant, qos, conn.version, now)) > conn.max_packet:
        return "dropped", Drop.TOO_LARGE, f"the packet has {packet} bytes, the client takes {conn.max_packet}"
    if waiting + 1 > queue.max_messages or size + message.size > queue.max_bytes:
        text = f"{waiting} messages, {size} bytes wait: the queue is full, and one of them or this one goes"
        return "squeezes", Drop.QUEUE_FULL, text
    if conn is None:
        return "waits", None, "its client is away; the session keeps it"
    if queue.messages:
        return "waits", None, f"behind {queue.messages} messages" + (", by class" if session.backlog else "")
    if conn.is_blocked:
        return "waits", None, "the network has not taken what was sent before"
    if qos and not conn.quota:
        return "waits", None, f"for the acknowledgement of one of {len(session.inflight)} messages in flight"
    return "sent", None, "at once"


def _packet_bytes(message: Message, grant: Grant, qos: int, version: int, now: float) -> int:
    """What the message takes as a packet, without a topic alias."""
    properties: bytes | None = None
    if version == 5:
        properties = message.properties + grant.identifiers
        if message.expires is not None:
            properties += b"\x02" + max(0, ceil(message.expires - now)).to_bytes(4, "big")
    return len(publish_bytes(0x30 | qos << 1, message.topic, 1 if qos else 0, properties, message.payload))
