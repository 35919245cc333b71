"""A broker that dies between any two commits, with clients that are not asked."""

from __future__ import annotations

from typing import Any

from tests.kits.check_store import LateStore
from tests.kits.invariants import check
from tests.kits.ledger import Model
from tests.kits.world import Client, World
from tieline.wire.packets import Suback, Subscribe, Subscription


class Scene:
    """A world whose store commits on command, and which is killed on command: what was not committed is gone."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._model = Model()
        self._starts = 1
        self.store = LateStore()
        self.world = World(store=self.store, **options)

    def persist(self, batches: int | None = None) -> int:
        """Make some batches permanent, or all there are; the broker does not know it yet."""
        before = self.store.committed
        token = self.store.commit(batches)
        for batch in self.store.batches[before:token]:
            for fact in batch:
                self._model.apply(fact)
            self._model.sweep()
        return token

    def commit(self, batches: int | None = None) -> None:
        """Make some batches permanent and tell the broker."""
        self.world.broker.committed(self.persist(batches))
        if self.store.committed == len(self.store.batches):
            # what is read is what was submitted before the question
            self.answer()
        self.world.settle()

    def answer(self) -> None:
        """Let the broker have what it wanted to read, as it is now."""
        questions, self.store.questions = self.store.questions, []
        for question in questions:
            self.world.broker.read_back(self._model.portion(*question), self.world.now)

    def settle(self) -> None:
        """Commit until nothing is left to be committed."""
        while self.store.committed < len(self.store.batches) or self.store.questions:
            self.commit()

    def restart(self) -> None:
        """Kill the broker and start the next one."""
        state = self._model.state
        self._starts += 1
        state.starts = self._starts
        now = self.world.now
        self.store = LateStore()
        self.world = World(store=self.store, **self._options)
        self.world.now = now
        self.world.broker.restore(state, now)
        check(self.world.broker)
        self.world.settle()
        self.settle()

    def kept(self, client_id: str, version: int = 5) -> Client:
        """A client whose session outlives its connection, connected."""
        client = self.world.durable(client_id, version=version)
        self.settle()
        client.note_connack()
        return client

    def clean(self, client_id: str) -> Client:
        """A client whose session does not."""
        client = self.world.client(client_id)
        self.settle()
        return client

    def subscribe(self, client: Client, filter_: str = "t", qos: int = 0, **properties: Any) -> Client:
        """Subscribe and wait for the answer."""
        client.send(
            Subscribe(packet_id=1, subscriptions=(Subscription(filter=filter_, qos=qos),), properties=properties)  # type: ignore[arg-type]  # checked by the broker
        )
        self.settle()
        client.find(Suback)
        return client
