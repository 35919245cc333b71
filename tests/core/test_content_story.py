"""Whatever is subscribed and published, and whichever way packets take, everybody gets what every condition says."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core import content_oracle as told
from tests.core.coherence import check_routes
from tests.core.content import content_settings
from tests.core.content_oracle import CLIENTS, Action, Ledger, Received, conversations
from tests.core.conversation import _pieces, write_out
from tests.core.story import impatience
from tests.kits.examples import examples
from tests.kits.invariants import check
from tests.kits.world import GENESIS, NO_LIMIT, configured
from tieline.core.broker import Broker
from tieline.core.client import Connection
from tieline.wire.encode import encode
from tieline.wire.frames import Framer
from tieline.wire.packets import Connect, Puback, Publish, Subscribe, Subscription, Unsubscribe


class Telling:
    """One broker hears a conversation; every action is over, and written out, before the next begins."""

    def __init__(self, versions: list[int], cut: str, cache: int) -> None:
        self.broker = Broker(configured(content_settings(), route_cache=cache))
        self.versions = versions
        self._cut = cut
        self._random = Random(0)
        self._now = GENESIS
        self._packet_id = 0
        self._conns: list[Connection] = [self.broker.open(GENESIS) for _ in versions]
        self.received: list[list[Received]] = [[] for _ in versions]
        for client in range(CLIENTS):
            self._introduce(client)

    def tell(self, action: Action) -> None:
        client, version = action.client, self.versions[action.client]
        match action:
            case told.Leave():
                self.broker.closed(self._conns[client], self._now)
                self._conns[client] = self.broker.open(self._now)
                self._introduce(client)
            case told.Subscribe():
                options = Subscription(filter=action.filter, qos=action.qos, no_local=action.no_local and version == 5)
                packet = Subscribe(packet_id=9, subscriptions=(options,))
                if version == 5:
                    if action.identifier:
                        packet.properties["subscription_identifier"] = [action.identifier]
                    if action.where is not None:
                        packet.properties["user_property"] = [("$where", action.where)]
                self._send(client, encode(packet, version))
            case told.Unsubscribe():
                self._send(client, encode(Unsubscribe(packet_id=9, filters=(action.filter,)), version))
            case told.Say():
                self._send(client, b"".join(self._publish(version, *message) for message in action.messages))
        check(self.broker)
        check_routes(self.broker)

    def _introduce(self, client: int) -> None:
        version = self.versions[client]
        self._send(client, encode(Connect(version=version, client_id=f"c{client}", clean_start=True), version))

    def _publish(self, version: int, topic: str, payload: bytes, qos: int) -> bytes:
        self._packet_id += 1
        packet_id = self._packet_id if qos else 0
        return encode(Publish(topic=topic, payload=payload, qos=qos, packet_id=packet_id), version)

    def _send(self, client: int, data: bytes) -> None:
        self._now += 1
        sent = [b""] * CLIENTS
        for piece in _pieces(data, self._cut, self._random):
            self.broker.receive(self._conns[client], piece, self._now)
        write_out(self.broker, self._conns, sent, self._now)
        for number, (version, written) in enumerate(zip(self.versions, sent, strict=True)):
            for packet in Framer(NO_LIMIT, version).feed(written):
                if isinstance(packet, Publish):
                    self._note(number, packet)

    def _note(self, client: int, packet: Publish) -> None:
        identifiers = packet.properties.get("subscription_identifier", ())
        self.received[client].append(Received(packet.topic, packet.payload, packet.qos, tuple(sorted(identifiers))))
        if packet.qos:
            answer = encode(Puback(packet_id=packet.packet_id), self.versions[client])
            self.broker.receive(self._conns[client], answer, self._now)

    def end(self) -> None:
        """Everybody leaves; nothing is left."""
        for conn in self._conns:
            self.broker.closed(conn, self._now)
        routes = self.broker.routes
        assert (routes.count, routes.conditional, routes.shared, routes.weight) == (0, 0, 0, 0)
        assert self.broker.references.kept == 0
        assert self.broker.account.closed.keys() == {"connection_lost"}
        check_routes(self.broker)


def tell(actions: list[Action], versions: list[int], cut: str, *, cache: int = 1_000) -> list[list[Received]]:
    telling = Telling(versions, cut, cache)
    for action in actions:
        telling.tell(action)
    telling.end()
    return telling.received


def compare(actions: list[Action], versions: list[int]) -> None:
    ledger = Ledger(versions)
    for action in actions:
        ledger.tell(action)
    for cut, cache in (("whole", 1_000), ("anywhere", 1_000), ("bytes", 1_000), ("whole", 0), ("anywhere", 1)):
        ledger.check(tell(actions, versions, cut, cache=cache))
    with impatience():
        ledger.check(tell(actions, versions, "whole"))


_versions = st.lists(st.sampled_from((4, 5)), min_size=CLIENTS, max_size=CLIENTS)


@examples(40)
@given(conversations(), _versions)
def test_deliveries_are_those_of_the_ledger_whichever_way_packets_take(
    actions: list[Action], versions: list[int]
) -> None:
    compare(actions, versions)


@pytest.mark.slow
@examples(600)
@given(conversations(), _versions)
def test_deliveries_are_those_of_the_ledger_in_many_conversations(actions: list[Action], versions: list[int]) -> None:
    compare(actions, versions)
