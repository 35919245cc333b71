"""Retained messages of one joined broker: the parts that make them the same everywhere, put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from tieline.core.broker import Broker
from tieline.core.message import Message
from tieline.overlay.frames.clock import HybridClock
from tieline.overlay.frames.parcel import Stamp, mark_of, marks_in
from tieline.overlay.node import Node
from tieline.overlay.retained.convergence import NOTE, Convergence
from tieline.overlay.retained.retained_sync import COMPARE_S, RetainedSync

#: Sets of brokers that are remembered.
_SETS = 1_000
#: A key, and what is noted under it.
Note = tuple[bytes, bytes]


def part(notes: Iterable[Note]) -> tuple[list[Note], list[Note]]:
    """What was noted of retained messages, and everything else."""
    ours: list[Note] = []
    others: list[Note] = []
    for note in notes:
        (ours if note[0][:1] == NOTE else others).append(note)
    return ours, others


class Retaining:
    """What a core retains, kept equal with what all brokers retain that are joined with it."""

    def __init__(  # where what is kept comes from and goes
        self,
        core: Broker,
        node: Node,
        notes: Iterable[Note],
        *,
        wall: Callable[[float], float],
        life_s: float = 86_400.0,
        most_bytes: int = 16 << 20,
        compare_s: float = COMPARE_S,
    ) -> None:
        self._node = node
        #: By marks, the brokers that they stand for, of so many that are known.
        self._sets: dict[bytes, bytes] = {}
        self._brokers = 0
        self.convergence = Convergence(
            core,
            node.directory,
            node.broker,
            HybridClock(wall),
            node.counts,
            wall=wall,
            notes=notes,
            life_s=life_s,
            most_bytes=most_bytes,
        )
        self.sync = RetainedSync(
            node.broker,
            node.directory,
            self.convergence,
            timers=core.timers,
            counts=node.counts,
            send=node.send,
            say_clock=node.say_clock,
            fence_of=node.fence_of,
            wanted_by=node.interests.wanted_by,
            compare_s=compare_s,
        )
        node.neighbour_service = self.sync
        node.carrier.go_ahead = self.sync.go_ahead
        core.retained.watcher = self.convergence
        core.timers.soon(self.convergence.begin)

    def take_in(
        self, messages: list[Message], stamps: Mapping[Message, Stamp], broker: int, now: float
    ) -> list[Message]:
        """Keep what a broker has sent live and is the newest; without what clients here have had already."""
        return [each for each in messages if each not in stamps or self._arrives(each, stamps[each], broker, now)]

    def _arrives(self, message: Message, stamp: Stamp, broker: int, now: float) -> bool:
        is_end = self._node.is_end(broker)
        user = None if is_end else stamp.user or None
        live = self._marked(stamp.marks)
        return self.convergence.arrived(message, stamp.clock, user, broker, live, now, is_end=is_end)

    def _marked(self, marks: bytes) -> bytes:
        """Our numbers for brokers, by their marks."""
        names = self._node.directory.names
        if len(names) != self._brokers or len(self._sets) > _SETS:
            self._brokers, self._sets = len(names), {}
        found = self._sets.get(marks)
        if found is None:
            single = marks_in(marks)
            found = bytes(sorted(number for number, name in names.items() if mark_of(name) in single))
            self._sets[marks] = found
        return found

    def notes(self, now: float) -> Iterator[tuple[bytes, bytes | None]]:
        """What is to be noted with the facts of this batch."""
        return self.convergence.notes(now)

    def account(self) -> None:
        """Count what is kept beside the messages themselves."""
        self.convergence.account()
