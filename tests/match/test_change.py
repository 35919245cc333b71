from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tieline.match.change import ChangeMemory, LastValues, References

_WATCHERS = 3
_watchers = st.integers(0, _WATCHERS - 1)
_topics = st.sampled_from([b"a", b"b", b"c", b"d", b"e"])


class Ledger(RuleBasedStateMachine):
    """Several subscriptions beside plain lists of what each was sent, newest last."""

    memory: ChangeMemory

    @initialize(each=st.integers(0, 3), together=st.integers(0, 6))
    def begin(self, each: int, together: int) -> None:
        self.memory = ChangeMemory(each, together)
        self.watchers = [LastValues(("v",), self.memory) for _ in range(_WATCHERS)]
        self.model: list[list[tuple[bytes, References]]] = [[] for _ in range(_WATCHERS)]
        self.alone = self.together = 0

    @rule(number=_watchers, topic=_topics, value=st.integers(0, 3))
    def deliver(self, number: int, topic: bytes, value: int) -> None:
        values = {"v": float(value)}
        self.watchers[number].note(topic, values)
        mine = self.model[number]
        is_known = topic in dict(mine)
        mine[:] = [known for known in mine if known[0] != topic]
        if not is_known:
            if len(mine) >= self.memory.most_each:
                self.alone += 1
                if not mine:
                    return
                del mine[0]
            if sum(map(len, self.model)) >= self.memory.most:
                self.together += 1
                if not mine:
                    return  # there is nothing of its own to forget
                del mine[0]
        mine.append((topic, values))

    @rule(number=_watchers, topic=_topics, is_newest=st.booleans())
    def drop(self, number: int, topic: bytes, is_newest: bool) -> None:
        """A message that was dropped takes its own reference with it, and no other."""
        values = dict(self.model[number]).get(topic)
        if is_newest and values is not None:
            self.model[number].remove((topic, values))
            self.watchers[number].forget(topic, values)
        else:
            self.watchers[number].forget(topic, {"v": 0.0})

    @rule(number=_watchers)
    def end(self, number: int) -> None:
        self.watchers[number].clear()
        self.model[number].clear()

    @invariant()
    def agrees(self) -> None:
        for watcher, mine in zip(self.watchers, self.model, strict=True):
            known = dict(mine)
            assert len(watcher) == len(known)
            assert all(watcher.before(topic) is known.get(topic) for topic in (b"a", b"b", b"c", b"d", b"e"))
        assert self.memory.kept == sum(map(len, self.model)) <= self.memory.most
        assert (self.memory.forgotten_alone, self.memory.forgotten_together) == (self.alone, self.together)


TestLedger = Ledger.TestCase


def test_a_topic_that_is_delivered_again_is_the_last_to_be_forgotten() -> None:
    memory = ChangeMemory(2, 100)
    last = LastValues(("v",), memory)
    for topic in (b"a", b"b", b"a", b"c"):
        last.note(topic, {"v": 1.0})
    assert last.before(b"a") == {"v": 1.0}
    assert last.before(b"b") is None
    assert (memory.kept, memory.forgotten_alone, memory.forgotten_together) == (2, 1, 0)
