"""Facts: what changes in a broker and has to survive it, as small tuples.

A fact is a tuple: its kind, the number of the session it is about (0 if none), then what the kind says below.  They are
plain because a busy broker makes several per message; nothing in them refers to an object, so they can be written down
as they are.  Applied in order to an empty state they give the state that :mod:`tieline.core.restore` makes a broker
from.

Times are seconds since 1970: the broker's own clock begins anew with each process.
"""

from __future__ import annotations

from typing import Final

#: A session began, or its terms changed: client_id, user, expiry_s, left, will, patience.  ``left`` is None while its
#: client is connected; ``will`` is None or (topic, payload, qos, retain, properties as on the wire); ``patience`` None
#: or (period_s, frequency, timeout_s).
SESSION: Final = 1
#: A session ended, and everything of it: nothing more.  Its number does not come back.
FORGET: Final = 2
#: filter as written, options byte of SUBSCRIBE, identifier, conditions from user properties.  The options may have the
#: bit ``REPLAYING``: the client has not got everything that was retained when it subscribed.
SUBSCRIBE: Final = 3
#: filter as written.
UNSUBSCRIBE: Final = 4
#: A message that later facts name by its number: number, topic, payload, qos, retain, properties, expires, publisher,
#: level, taxon, at, user of the publisher.
MESSAGE: Final = 5
#: topic, message.
RETAIN: Final = 6
#: topic: nothing is retained there any more.
CLEAR: Final = 7
#: A message waits for a session: message, options, identifiers, share.  ``options`` is the granted QoS, 4 for Retain As
#: Published, 8 for what was retained when the client subscribed; ``share`` the group that chose the session.
QUEUE: Final = 8
#: What waited got a packet id: message, options, identifiers, share, packet_id.
SENT: Final = 9
#: What waited was discarded: message, options, identifiers, share.
DROP: Final = 10
#: PUBREC for one of our packet ids; the message is the client's, the id is not free yet.
RECEIVED: Final = 11
#: One of our packet ids is free again.
SETTLED: Final = 12
#: An inbound QoS 2 packet id is taken.
TAKE: Final = 13
#: It is free again.
RELEASE: Final = 14
#: A message was taken over and will be routed once that is permanent: message.
UNROUTED: Final = 15
#: It has been routed: message.
ROUTED: Final = 16
#: The highest number accepted of a producer: producer, number, at.
PRODUCED: Final = 17
#: A producer is forgotten: producer.
UNPRODUCED: Final = 18
#: A message waits for a session in the store alone: message, options, identifiers, share, lane, size.
SPILL: Final = 19
#: The broker has everything again that waits for a session.
GATHERED: Final = 20
#: A session ended, and everything of it but what waits: client_id, user, left.  That is dropped entry by entry, or
#: handed on, and then the session is forgotten.
ENDED: Final = 21
#: Something that the core keeps for others without knowing what it means: key, value; None if nothing any more.
NOTE: Final = 22

NAMES: Final = {
    SESSION: "session",
    FORGET: "forget",
    SUBSCRIBE: "subscribe",
    UNSUBSCRIBE: "unsubscribe",
    MESSAGE: "message",
    RETAIN: "retain",
    CLEAR: "clear",
    QUEUE: "queue",
    SENT: "sent",
    DROP: "drop",
    RECEIVED: "received",
    SETTLED: "settled",
    TAKE: "take",
    RELEASE: "release",
    UNROUTED: "unrouted",
    ROUTED: "routed",
    PRODUCED: "produced",
    UNPRODUCED: "unproduced",
    SPILL: "spill",
    GATHERED: "gathered",
    ENDED: "ended",
    NOTE: "note",
}

#: What facts add up to, by name and in the order in which a new broker takes it in; a store has a table for each,
#: and of what is ``spilled`` no more than how much it is.
STATE: Final = (
    "session",
    "subscription",
    "message",
    "retained",
    "queue",
    "spilled",
    "inflight",
    "inbound",
    "unrouted",
    "producer",
    "note",
)

#: The expiry of a session that has ended and left something behind.
OVER: Final = -1

#: Bits of ``options`` beside the QoS.
KEEP_RETAIN: Final = 4
SET_RETAIN: Final = 8
#: A bit of the options of a subscription that SUBSCRIBE itself does not use.
REPLAYING: Final = 64
