"""SUBSCRIBE as a weapon: small packets that ask for much."""

from __future__ import annotations

from time import sleep
from typing import Final

from tests.kits.dial import dial
from tests.robust.attack.bout import Bout
from tests.robust.attack.hostile import packed, pour, visitor
from tests.robust.attack.site import Doors
from tieline.wire.packets import Publish, Suback, Subscribe, Subscription
from tieline.wire.properties import Properties

#: Sessions that sleep while topics that are new are judged for each of them.
SLEEPERS: Final = 2_000
#: Conditions of one client, and terms of each.
CONDITIONS: Final = 10_000
TERMS: Final = 61


def _ask(filters: list[str], conditions: tuple[str, ...] = ()) -> Subscribe:
    asked = [("$where", text) for text in conditions]
    properties = Properties(user_property=asked) if asked else Properties()
    subscriptions = tuple(Subscription(filter=filter_) for filter_ in filters)
    return Subscribe(packet_id=1, subscriptions=subscriptions, properties=properties)


def conditions_times_filters(doors: Doors, connections: int, bout: Bout) -> None:
    """7 kB: five conditions that hold for each of a thousand filters."""
    conditions = tuple(f"a{n}>{n} and b{n}<{n} or c{n}=={n}" for n in range(5))
    data = packed(_ask([f"f/{n}" for n in range(1_000)], conditions))
    pour(visitor(doors.tcp, "wordy"), connections, data, bout)


def long_conditions_times_filters(doors: Doors, connections: int, bout: Bout) -> None:
    """66 kB: long conditions, and as many filters as still fit."""
    long = " or ".join(f"a{n}>{n}" for n in range(60))
    data = packed(_ask([f"{n:x}" for n in range(8_000)], (long[:1_000].rpartition(" or ")[0],) * 12))
    pour(visitor(doors.tcp, "wordier"), connections, data, bout)


def filters_times_rules(doors: Doors, connections: int, bout: Bout) -> None:
    """64 kB of filters, each of which is held against every rule."""
    data = packed(_ask([f"{n:x}" for n in range(9_000)]))
    pour(visitor(doors.tcp, "asking"), connections, data, bout)


def sleepers_and_new_topics(doors: Doors, connections: int, bout: Bout) -> None:
    """Sessions that sleep subscribe to everything, and each message has a topic that is new: who may read it?"""
    for number in range(SLEEPERS):
        if bout.is_over():
            break
        with dial(doors.tcp, f"sleeper-{number}", properties=Properties(session_expiry_interval=60)) as sleeper:
            sleeper.subscribe("new/#")
    awake = [dial(doors.tcp, f"awake-{number}") for number in range(connections)]
    bout.bite()
    serial = 0
    while not bout.is_over():
        for client in awake:
            client.send(*(Publish(topic=f"new/{serial + n}", payload=b"") for n in range(200)))
            serial += 200
        sleep(0.2)
    for client in awake:
        client.close()


def conditions_before_the_first_message(doors: Doors, connections: int, bout: Bout) -> None:
    """Very many long conditions on one filter, then one message whose topic was never used."""
    terms = " or ".join(f"a{n}>{n}" for n in range(TERMS))
    serial = 0
    while not bout.is_over():
        serial += 1
        clients = [dial(doors.tcp, f"choosy-{number}") for number in range(connections)]
        for client in clients:
            for start in range(0, CONDITIONS, 50):
                filters = [f"w{serial}/+?{terms} or z=={start + n}" for n in range(50)]
                client.send(_ask(filters))
                client.expect(Suback)
                if bout.is_over():
                    break
        bout.bite()
        clients[0].send(Publish(topic=f"w{serial}/first", payload=b'{"a1": 2}'))
        sleep(2.0)
        for client in clients:
            client.close()
