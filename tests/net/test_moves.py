"""Sessions that move between real brokers: their clients find everything at whichever they connect to."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any

from tests.kits.dial import Dial, dial
from tests.kits.patience import until
from tests.net.test_peers import line, publish, subscribe
from tieline.overlay.joined import Joined
from tieline.overlay.moves import Moves
from tieline.core.broker import Broker
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Connack, Puback, Publish, Pubrec
from tieline.wire.reason import Reason


def moves_of(core: Broker) -> Moves:
    assert isinstance(core.routes.neighbours, Joined)
    return core.routes.neighbours.moves


def knows(broker: BrokerThread, client_id: str) -> bool:
    return broker.ask(lambda core: moves_of(core).registry.find(client_id) is not None)


def kept(url: str, client_id: str, *, is_present: bool, **fields: Any) -> Dial:
    """A client that wants its session; whether it is told that there was one is asserted."""
    client = Dial(url)
    connack = client.connect(client_id, clean_start=False, properties={"session_expiry_interval": 3600}, **fields)
    assert (connack.reason, connack.session_present) == (Reason.SUCCESS, is_present)
    return client


def test_a_session_moves_with_its_subscriptions_and_what_waits() -> None:
    with line("a", "b", "c") as (a, b, c), ExitStack() as stack:
        with kept(a.urls[0], "s", is_present=False) as client:
            subscribe(client, "x/+", 1)
        far = stack.enter_context(dial(c.urls[0], "far"))
        for number in range(5):
            publish(far, f"x/{number % 2}", b"%d" % number, 1)
        until(partial(knows, b, "s"), "b has heard of the session at a")
        with kept(b.urls[0], "s", is_present=True) as client:
            for number in range(5):
                got = client.expect(Publish, payload=b"%d" % number)
                client.send(Puback(packet_id=got.packet_id))
            publish(far, "x/1", b"new", 1)
            client.expect(Publish, payload=b"new")
