"""Who gets messages, as routes see them: receivers, and how each gets the messages of a topic.

A route leads to receivers.  What kind they are, the session of a client or something else that takes messages, is
nobody's business on the way to them: whatever finds or chooses receivers uses nothing but :class:`Receiver`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tieline.core.account import Drop
from tieline.core.message import Item, Message, Queued
from tieline.match.change import LastValues, References
from tieline.wire.packets import Subscription


class Outlet(Protocol):
    """The shell's end of a connection: where bytes can be written past the queue."""

    def write(self, data: bytes, now: float) -> None:
        """Write bytes that may go at once; whoever calls this has made sure that nothing is ahead of them."""


class Receiver(Protocol):
    """Something that messages are routed to; all that routes and handlers of messages know of it."""

    #: Publishers are held until there is room here again.
    is_awaited: bool

    @property
    def is_broker(self) -> bool:
        """Whether it stands for the clients of another broker, and is not counted among those of this one."""

    @property
    def client_id(self) -> str:
        """Its name, which is the publisher of what it sends itself."""

    @property
    def user(self) -> str | None:
        """On whose behalf it reads; None for nobody in particular."""

    @property
    def is_present(self) -> bool:
        """Whether what is offered goes out now, and does not only wait."""

    def offer(self, item: Queued, grant: Grant, now: float) -> None:
        """Take a message, or name why it is not taken."""

    def has_room(self, item: Item, copies: int = 0) -> bool:
        """Whether a message can be taken without another one being dropped, once so many copies of it were."""

    def lacks_room(self, item: Item) -> bool:
        """Whether a QoS 1 or 2 message would have to be dropped here."""

    def turn_away(self, item: Item, why: Drop, now: float) -> None:
        """Name a message that it should have got and does not get."""

    @property
    def is_half_empty(self) -> bool:
        """Whether there is room worth telling those who wait for it."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and nobody need wait for it any more."""

    def promise(self, size: int) -> None:
        """Keep room for a message that will come: nothing else may take it."""

    def redeem(self, size: int) -> None:
        """The message comes now: there is room for it."""

    def ready_outlet(self, version: int, size: int, grant: Grant) -> Outlet | None:
        """Where a packet of this version can be written now, as it is; None if anything stands in its way."""


class Share(NamedTuple):
    """Which shared subscription: what ``$share/NAME/FILTER`` says."""

    name: str
    filter: str


class Grant:
    """How one receiver gets the messages of one topic: its matching subscriptions, folded into one."""

    __slots__ = (
        "identifiers",
        "keep_retain",
        "marks",
        "no_local",
        "others",
        "qos",
        "receiver",
        "set_retain",
        "share",
        "terms",
    )

    def __init__(  # one argument per subscription option
        self,
        receiver: Receiver,
        qos: int,
        *,
        identifiers: bytes = b"",
        keep_retain: bool = False,
        set_retain: bool = False,
        no_local: bool = False,
        share: Share | None = None,
    ) -> None:
        self.receiver = receiver
        self.qos = qos
        #: Subscription Identifier properties, encoded; empty in 3.1.1.
        self.identifiers = identifiers
        #: Retain As Published.
        self.keep_retain = keep_retain
        #: The message is sent because it was retained when the client subscribed.
        self.set_retain = set_retain
        #: At least one of the subscriptions has No Local.
        self.no_local = no_local
        #: With ``no_local``: the grant of the remaining subscriptions, which apply to the client's own messages.
        self.others: Grant | None = None
        #: The shared subscription that chose this receiver.
        self.share = share
        #: References to move when the message is queued: this grant is for one message.
        self.marks: tuple[Mark, ...] = ()
        #: The same in the words of facts; made when the first message is stored under it.
        self.terms: tuple[int, bytes, str] | None = None

    def __repr__(self) -> str:
        return f"<Grant {self.receiver.client_id} QoS {self.qos}>"

    def for_item(self, item: Item) -> Grant | None:
        """How this item is really got: a client's own messages go by its subscriptions without No Local, if any."""
        # [MQTT-3.8.3-3] not back to its publisher, unless another of its subscriptions asks for it
        return self.others if self.no_local and self.receiver.client_id == item.origin.publisher else self

    def unmark(self) -> None:
        """The message was dropped before it was sent."""
        for last, topic, values in self.marks:
            last.forget(topic, values)


class ActiveSubscription:
    """One subscription as its receiver holds it."""

    __slots__ = ("conditions", "grant", "identifier", "options")

    def __init__(self, options: Subscription, identifier: int) -> None:
        self.options = options
        #: Subscription Identifier; 0 for none.
        self.identifier = identifier
        #: Conditions that came with its SUBSCRIBE and are not in its filter.
        self.conditions: tuple[str, ...] = ()
        #: What this subscription alone grants; made when it is needed, shared by every route.
        self.grant: Grant | None = None


#: What a delivery changes: the references of a subscription, the topic, and its values.
Mark = tuple[LastValues, bytes, References]
#: A queue entry: the shared record and how this receiver gets it.
Entry = tuple[Queued, Grant]
#: What waits for an acknowledgement: the record, its grant, the QoS it was sent with; None after PUBREC.
Flight = tuple[Message, Grant, int] | None
