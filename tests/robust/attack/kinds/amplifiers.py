"""Small things that become large: properties for many readers, groups, identifiers, aliases, changes, replays."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

from tests.kits.dial import Dial, dial
from tests.robust.attack.bout import Bout
from tests.robust.attack.hostile import packed, pour, visitor
from tests.robust.attack.site import Doors
from tieline.wire.packets import Publish, Suback, Subscribe, Subscription
from tieline.wire.properties import Properties

#: Groups and readers of one client, and properties of one message.
GROUPS: Final = 2_000
READERS: Final = 25
_WORDS: Final = Properties(user_property=[("name", "value")] * 1_000)


def _ask(client: Dial, filters: list[str], bout: Bout) -> None:
    for start in range(0, len(filters), 500):
        asked = tuple(Subscription(filter=one) for one in filters[start : start + 500])
        client.send(Subscribe(packet_id=1, subscriptions=asked))
        client.expect(Suback)
        if bout.is_over():
            break


def _close(clients: list[Dial]) -> None:
    for client in clients:
        client.close()


def groups_without_number(doors: Doors, connections: int, bout: Bout) -> None:
    """Very many groups on one topic, and messages without end."""
    clients = [dial(doors.tcp, f"grouped-{number}") for number in range(connections)]
    for number, client in enumerate(clients):
        _ask(client, [f"$share/g-{number}-{each}/grouped" for each in range(GROUPS)], bout)
    pour(visitor(doors.tcp, "grouping"), connections, packed(Publish(topic="grouped", payload=b"")) * 1_000, bout)
    _close(clients)


def words_for_many(doors: Doors, connections: int, bout: Bout) -> None:
    """Messages of a thousand properties, for readers that do not read."""
    clients = [dial(doors.tcp, f"worded-{number}") for number in range(connections * READERS)]
    for client in clients:
        client.subscribe("words")
    data = packed(Publish(topic="words", payload=b"", properties=_WORDS)) * 5
    pour(visitor(doors.tcp, "word-maker"), connections, data, bout)
    _close(clients)


def aliases(doors: Doors, connections: int, bout: Bout) -> None:
    """Each alias gets another long topic with every message."""
    topics = (f"alias/{number % 5_000}/" + "x" * 1_000 for number in count())
    pieces = (
        packed(*(Publish(topic=next(topics), payload=b"", properties={"topic_alias": n % 64 + 1}) for n in range(100)))
        for _ in count()
    )
    pour(visitor(doors.tcp, "aliasing"), connections, pieces, bout)


def changes(doors: Doors, connections: int, bout: Bout) -> None:
    """Messages with another topic each, for those who want to hear of changes."""
    clients = [dial(doors.tcp, f"changed-{number}") for number in range(connections)]
    for number, client in enumerate(clients):
        _ask(client, [f"$where/changed(v{each})/ch/{number % 4}/#" for each in range(50)], bout)

    def pieces() -> Iterator[bytes]:
        for serial in count(0, 100):
            yield packed(*(Publish(topic=f"ch/{n % 4}/{serial + n}", payload=b'{"v1": %d}' % n) for n in range(100)))

    pour(visitor(doors.tcp, "changing"), connections, pieces(), bout)
    _close(clients)


def everything_again(doors: Doors, connections: int, bout: Bout) -> None:
    """Everything that is retained, again and again, by filters that all match all of it."""
    with dial(doors.tcp, "again-keeper") as keeper:
        for start in range(0, 20_000, 500):
            keeper.send(packed(*(Publish(topic=f"again/{start + n}", payload=b"", retain=True) for n in range(500))))
    asked = Subscribe(packet_id=1, subscriptions=tuple(Subscription(filter=one) for one in ("#", "+/#", "again/+")))
    pour(visitor(doors.tcp, "again"), connections, packed(asked) * 20, bout)
