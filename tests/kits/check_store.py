"""A conformance kit for stores: whatever implements ``tieline.core.ports.Store`` is done when ``check_store`` passes.

``make`` returns a fresh store, together with a function that lets it finish everything it was given.  The core is
driven against it through a :class:`~tests.kits.world.World`: acknowledgements must not leave before the commit, and
must leave after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.kits.world import World
from tieline.core.ports import Fact, Store
from tieline.wire.packets import Puback, Pubcomp, Publish, Pubrec, Pubrel, Suback, Subscribe, Subscription

#: Makes whatever was submitted permanent; a store that is always done has nothing to do here.
Finish = Callable[[], None]
Make = Callable[[], tuple[Store, Finish]]


class LateStore:
    """A store that commits when the test says so, and remembers what it was given."""

    is_volatile = False

    def __init__(self) -> None:
        self.batches: list[tuple[Fact, ...]] = []
        self._committed = 0

    def submit(self, facts: Sequence[Fact]) -> int:
        """Take a batch over; its token is its number."""
        assert facts, "an empty batch costs a commit and changes nothing"
        self.batches.append(tuple(facts))
        return len(self.batches)

    @property
    def committed(self) -> int:
        """What the test has allowed so far."""
        return self._committed

    @property
    def facts(self) -> list[Fact]:
        """Everything that was submitted, in order."""
        return [fact for batch in self.batches for fact in batch]

    def kinds(self, session: str | None = None) -> list[str]:
        """The kinds of the facts, of one session or of all."""
        return [fact.kind for fact in self.facts if session in (None, fact.session)]

    def commit(self, batches: int | None = None) -> int:
        """Allow some batches, or all; the token up to which everything is permanent."""
        self._committed = len(self.batches) if batches is None else min(len(self.batches), self._committed + batches)
        return self._committed


class PromptStore(LateStore):
    """A store that describes itself as permanent and is always done: every fact is made, nothing waits."""

    @property
    def committed(self) -> int:
        """Everything."""
        return len(self.batches)


def check_store(make: Make) -> None:
    """Assert everything that the core relies on."""
    check_tokens(make)
    check_acknowledgements(make)


def check_tokens(make: Make) -> None:
    """Tokens grow; what is committed never shrinks, never runs ahead, and gets to the end."""
    store, finish = make()
    given = 0
    for number in range(20):
        token = store.submit([Fact(kind="retain", subject=number)])
        assert token > given, "tokens grow"
        given = token
        seen = store.committed
        assert seen <= given, "nothing is permanent before it was submitted"
        assert store.committed >= seen, "what is permanent stays permanent"
    finish()
    assert store.committed >= given, "everything becomes permanent in the end"


def check_acknowledgements(make: Make) -> None:
    """PUBACK, PUBREC, PUBCOMP and SUBACK leave once their batch is permanent, each once and in order."""
    store, finish = make()
    world = World(store=store)
    client = world.durable("d")

    def settle() -> None:
        finish()
        world.broker.committed(store.committed)
        world.settle()

    settle()
    client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="t", qos=2),)))
    settle()
    client.expect(Suback, packet_id=1)
    client.send(
        Publish(topic="t", payload=b"1", qos=1, packet_id=2),
        Publish(topic="t", payload=b"2", qos=2, packet_id=3),
    )
    settle()
    client.find(Puback, packet_id=2)
    client.find(Pubrec, packet_id=3)
    client.send(Pubrel(packet_id=3))
    settle()
    client.find(Pubcomp, packet_id=3)
    messages = client.messages()
    assert [message.payload for message in messages] == [b"1", b"2"]
    for message in messages:
        client.send(Puback(packet_id=message.packet_id) if message.qos == 1 else Pubrec(packet_id=message.packet_id))
    settle()
    client.find(Pubrel)
