"""Who must have received what: MQTT's delivery promises as a ledger, beside which a broker is held.

Theory of operation
-------------------
Every published payload is unique.  When the broker accepts a message, :meth:`Oracle.accept` enters one debt for each
session that must get it; a shared subscription enters one debt for the whole group.  A device that receives a message
shows it to :meth:`Oracle.received`, which refuses whatever was not owed: a wrong receiver, QoS, retain flag or
subscription identifier, a second copy of QoS 0 or 2, a message that overtook another of its publisher, topic and QoS.
:meth:`Oracle.check_paid` asks, once everybody has read everything, that nothing of QoS 1 or 2 is still owed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from tieline.wire.packets import Publish, Subscription
from tieline.wire.topics import matches, split_share


@dataclass
class Message:
    """One published message."""

    publisher: str
    topic: str
    payload: bytes
    qos: int
    retain: bool
    #: When it was accepted, counted in acceptances; it moves when a QoS 1 message is sent and accepted again.
    order: int = 0
    times: int = 0


class Terms(NamedTuple):
    """How a session must get a message."""

    payload: bytes
    #: It is sent because it was retained when the client subscribed.
    retained: bool
    qos: int


@dataclass
class Debt:
    """Copies of one message that one session must get on the same terms."""

    copies: int = 0
    paid: int = 0
    #: The subscription identifiers that a copy may carry; 3.1.1 has none.
    identifiers: set[tuple[int, ...]] = field(default_factory=set)


@dataclass
class Account:
    """The ledger of one session."""

    subscriptions: dict[str, tuple[Subscription, int]] = field(default_factory=dict)
    debts: dict[Terms, Debt] = field(default_factory=dict)
    #: The newest message received for the first time, by publisher, topic and QoS; ever, and on this connection.
    newest: dict[tuple[str, str, int], int] = field(default_factory=dict)
    current: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def owe(self, terms: Terms, identifiers: tuple[int, ...]) -> None:
        """One more copy."""
        debt = self.debts.setdefault(terms, Debt())
        debt.copies += 1
        debt.identifiers.add(identifiers)

    def find(self, packet: Publish, version: int) -> Debt:
        """The debt that a packet pays."""
        debt = self.debts.get(Terms(packet.payload, packet.retain, packet.qos))
        owed = [terms for terms in self.debts if terms.payload == packet.payload]
        assert debt is not None, f"{packet} was not owed; owed was {owed}"
        identifiers = tuple(sorted(packet.properties.get("subscription_identifier", [])))
        assert version == 4 or identifiers in debt.identifiers, f"{packet} was owed with {debt.identifiers}"
        return debt


@dataclass
class GroupDebt:
    """One message that one member of a group must get."""

    message: Message
    members: set[str]
    #: Members that have left the group since: what they still hold is theirs, and lost with their session.
    leavers: set[str] = field(default_factory=set)
    #: False once a member that may have held it is gone for good.
    is_certain: bool = True
    paid: int = 0


class Oracle:
    """All ledgers of one broker."""

    def __init__(self) -> None:
        self.sessions: dict[str, Account] = {}
        self.messages: dict[bytes, Message] = {}
        self.retained: dict[str, Message] = {}
        self.shared: dict[tuple[str, bytes], GroupDebt] = {}
        self.accepted = 0

    def begin(self, client_id: str, *, is_clean: bool) -> bool:
        """A client connects; whether it must be told that its session was present."""
        if is_clean:
            self.end(client_id)
        was_present = client_id in self.sessions
        account = self.sessions.setdefault(client_id, Account())
        account.current.clear()
        return was_present

    def end(self, client_id: str) -> None:
        """A session is over, and all its debts with it; a group's go to other members, if they may."""
        account = self.sessions.pop(client_id, None)
        if account is None:
            return
        for (filter_, _), debt in self.shared.items():
            if client_id in debt.members:
                heirs = {name for name, other in self.sessions.items() if filter_ in other.subscriptions}
                is_inherited = debt.message.qos == 1 and client_id not in debt.leavers and bool(heirs)
                debt.is_certain = debt.is_certain and is_inherited
                debt.members = (debt.members - {client_id}) | heirs

    def subscribe(self, client_id: str, wish: Subscription, identifier: int) -> None:
        """A subscription was granted: retained messages are owed as its options say."""
        account = self.sessions[client_id]
        is_new = wish.filter not in account.subscriptions
        account.subscriptions[wish.filter] = (wish, identifier)
        share, filter_ = split_share(wish.filter)
        if share is None and (wish.retain_handling == 0 or (wish.retain_handling == 1 and is_new)):
            for message in self.retained.values():
                # [MQTT-3.8.3-3] holds for its own retained messages, too
                if matches(filter_, message.topic) and not (wish.no_local and message.publisher == client_id):
                    identifiers = (identifier,) if identifier else ()
                    account.owe(Terms(message.payload, True, min(wish.qos, message.qos)), identifiers)

    def unsubscribe(self, client_id: str, filter_: str) -> bool:
        """A subscription was given back; whether there was one."""
        for (shared, _), debt in self.shared.items():
            if shared == filter_ and client_id in debt.members:
                debt.leavers.add(client_id)
        return self.sessions[client_id].subscriptions.pop(filter_, None) is not None

    def accept(self, message: Message, connected: set[str]) -> dict[str, int]:
        """The broker has taken a message; the QoS with which each session must get it now or later."""
        self.accepted += 1
        message.order = self.accepted
        message.times += 1
        self.messages[message.payload] = message
        if message.retain:
            self.retained[message.topic] = message
        owed: dict[str, int] = {}
        groups: dict[str, set[str]] = {}
        for client_id, account in self.sessions.items():
            wanted: list[tuple[Subscription, int]] = []
            for wish, identifier in account.subscriptions.values():
                share, filter_ = split_share(wish.filter)
                if not matches(filter_, message.topic):
                    continue
                if share is not None:
                    groups.setdefault(wish.filter, set()).add(client_id)
                elif not (wish.no_local and client_id == message.publisher):
                    wanted.append((wish, identifier))
            if not wanted:
                continue
            qos = min(message.qos, max(wish.qos for wish, _ in wanted))
            if qos or client_id in connected:
                identifiers = tuple(sorted(identifier for _, identifier in wanted if identifier))
                account.owe(Terms(message.payload, False, qos), identifiers)
                owed[client_id] = qos
        for filter_, members in groups.items():
            takers = members if message.qos else members & connected
            debt = self.shared.setdefault((filter_, message.payload), GroupDebt(message, set()))
            debt.members |= takers
            debt.is_certain = debt.is_certain and bool(takers)
        return owed

    def received(self, client_id: str, version: int, packet: Publish) -> None:
        """A client got a message: it was owed, exactly like this."""
        message = self.messages[packet.payload]
        assert packet.topic == message.topic
        if message.topic.startswith("$q/"):
            self._received_by_group(client_id, packet, message)
        else:
            self._received_by_session(self.sessions[client_id], version, packet, message)

    def _received_by_group(self, client_id: str, packet: Publish, message: Message) -> None:
        debts = [debt for (_, payload), debt in self.shared.items() if payload == packet.payload]
        assert any(client_id in debt.members for debt in debts), f"{client_id} is in no group that gets {packet}"
        assert packet.qos == message.qos
        for debt in debts:
            if client_id in debt.members:
                debt.paid += 1
                if message.qos != 1:
                    assert debt.paid <= message.times, f"{packet} went to two members"
                break

    def _received_by_session(self, account: Account, version: int, packet: Publish, message: Message) -> None:
        debt = account.find(packet, version)
        debt.paid += 1
        if packet.qos != 1:
            assert debt.paid <= debt.copies, f"copy {debt.paid} of {packet}"
        if message.times == 1 and not packet.retain:
            self._check_order(account, packet, message, is_first=debt.paid == 1)

    @staticmethod
    def _check_order(account: Account, packet: Publish, message: Message, *, is_first: bool) -> None:
        flow = (message.publisher, message.topic, packet.qos)
        if is_first:
            assert account.newest.get(flow, 0) < message.order, f"{packet} was overtaken"
            account.newest[flow] = message.order
        # [MQTT-4.6.0-1] what is sent again comes first and in its old order
        assert account.current.get(flow, 0) < message.order, f"{packet} was sent out of order"
        account.current[flow] = message.order

    def check_paid(self) -> None:
        """Everybody has read everything: nothing of QoS 1 or 2 is missing."""
        missing: Counter[str] = Counter()
        for client_id, account in self.sessions.items():
            for terms, debt in account.debts.items():
                if terms.qos and debt.paid < debt.copies:
                    missing[f"{client_id} got {terms} {debt.paid} times, not {debt.copies}"] += 1
        for (filter_, payload), group in self.shared.items():
            if group.message.qos and group.is_certain and group.members and not group.paid:
                missing[f"nobody of {filter_} got {payload!r} (QoS {group.message.qos})"] += 1
        assert not missing, dict(missing)
