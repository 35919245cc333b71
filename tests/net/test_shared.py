"""Shared subscriptions over real brokers: one member over all brokers gets each message, wherever it was accepted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.kits.dial import Dial, dial
from tests.kits.patience import until
from tests.net.test_peers import line, publish, subscribe
from tieline.core.broker import Broker
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Puback, Pubcomp, Publish, Pubrec, Pubrel

#: Everybody subscribes to it outside groups: what was published before it in the same lane has come by then.
END = "end"


@contextmanager
def members(filter_: str, *places: BrokerThread, qos: int = 2) -> Iterator[list[Dial]]:
    """Members of a group, one at each place."""
    with ExitStack() as stack:
        clients: list[Dial] = []
        for number, broker in enumerate(places):
            client = stack.enter_context(dial(broker.urls[0], f"member {number}"))
            subscribe(client, END, qos)
            subscribe(client, filter_, qos)
            clients.append(client)
        yield clients


def got(client: Dial) -> list[bytes]:
    """What has come before the end."""
    found: list[bytes] = []
    while True:
        packet = client.receive()
        if isinstance(packet, Publish):
            if packet.qos == 1:
                client.send(Puback(packet_id=packet.packet_id))
            elif packet.qos == 2:
                client.send(Pubrec(packet_id=packet.packet_id))
            if packet.topic == END:
                return found
            found.append(packet.payload)
        elif isinstance(packet, Pubrel):
            client.send(Pubcomp(packet_id=packet.packet_id))


def _weights(core: Broker, name: str, filter_: str) -> list[int]:
    group = core.routes.group(name, filter_)
    return [] if group is None else sorted(group.spanning.weights.values())


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_one_member_over_all_brokers_gets_each_message(qos: int) -> None:
    with line("a", "b", "c") as (a, b, c), members("$share/g/x/#", b, c, c) as clients:
        until(lambda: a.ask(lambda core: _weights(core, "g", "x/#")) == [1, 2], "the numbers of members are known")
        with dial(a.urls[0], "source") as source:
            for number in range(21):
                publish(source, "x/1", b"%d" % number, qos)
            publish(source, END, b"", qos)
            parts = [got(client) for client in clients]
    assert sorted(int(each) for part in parts for each in part) == list(range(21))
    assert all(part == sorted(part, key=int) for part in parts)
    # brokers are picked by the number of their members, and each of those has its turn
    assert [len(part) for part in parts] == [7, 7, 7]
