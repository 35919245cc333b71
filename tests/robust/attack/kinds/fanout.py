"""Topics that very many subscriptions match."""

from __future__ import annotations

from itertools import islice, product
from time import sleep
from typing import Final

from tests.kits.dial import dial
from tests.robust.attack.bout import Bout
from tests.robust.attack.site import Doors
from tieline.wire.packets import Publish, Suback, Subscribe, Subscription

#: Filters of one client that match the same topics, and their levels.
FILTERS: Final = 5_000
LEVELS: Final = 13


def one_topic_for_very_many_filters(doors: Doors, connections: int, bout: Bout) -> None:
    """Every subscription of everybody matches every message, and each message has a topic that is new."""
    filters = ["/".join((*levels, "#")) for levels in islice(product("a+", repeat=LEVELS), FILTERS)]
    clients = [dial(doors.tcp, f"greedy-{number}") for number in range(connections)]
    for client in clients:
        for start in range(0, FILTERS, 500):
            asked = tuple(Subscription(filter=filter_) for filter_ in filters[start : start + 500])
            client.send(Subscribe(packet_id=1, subscriptions=asked))
            client.expect(Suback)
            if bout.is_over():
                break
    bout.bite()
    serial = 0
    with dial(doors.tcp, "greedy-source") as source:
        while not bout.is_over():
            serial += 1
            source.send(Publish(topic="/".join("a" * LEVELS) + f"/{serial}", payload=b""))
            for client in clients:
                client.expect(Publish)
            sleep(0.02)
    for client in clients:
        client.close()
