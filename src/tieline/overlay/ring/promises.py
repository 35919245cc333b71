"""Assured publications on the ring: the origin owes a batch until acknowledgements have come back from everybody.

Theory of operation
-------------------
Nobody knows who wants a message, so nobody can owe it to somebody.  What is owed is an *arc*: who is handed one answers
when it has committed the batch itself, if it wants it, and everybody to whom it has handed parts of the arc has
answered.  The origin hands over the whole ring, and when that is settled, everybody who wants the batch has it.  So the
middle keeps nothing beyond its memory: if it dies, its arc is handed to somebody else, or once more by the origin.

A lane has one hand-over under way, and what is published meanwhile goes together in the next one.  So a destination
gets what is published in a lane in its order, and one number for each lane, the last that it has committed, tells what
has come before.  The rate of a lane is a batch for each round trip through the ring.

Between a broker and its successor may stand somebody whom it does not know, until the ring has closed there again.  An
arc that begins there is not settled before that.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from tieline.core.timers import Timer
from tieline.overlay.ring.dispatch.protocol import Dispatch
from tieline.overlay.ring.events import Event, Sent
from tieline.overlay.ring.messages import Data, Key, Peer, Settled
from tieline.overlay.ring.surroundings import Surroundings


class Batch(NamedTuple):
    """What an origin owes under a number of a lane, as its store keeps it."""

    lane: int
    number: int
    events: tuple[Event, ...]


class Taken(NamedTuple):
    """How far the streams of a lane of an origin have been committed here."""

    origin: int
    incarnation: int
    lane: int
    number: int


#: Who handed a part of the ring over, and both of its ends.
_Part = tuple[int, int, int]
#: Gives events to the broker; what it did to its queues is committed with the fact, and then the callback is called.
Deliver = Callable[[Data, Taken | None, Callable[[float], None]], None]


@dataclass(eq=False, slots=True)
class _Task:
    """A part of the ring that a batch has to be brought to, and who has not answered yet."""

    data: Data
    #: Who handed it over; None at the origin.
    parent: Peer | None
    #: By the finger, the part that it was handed.
    waits: dict[tuple[int, int, int], tuple[Peer, Data]] = field(default_factory=dict)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    #: Whether this broker itself has still to commit it.
    is_committing: bool = False
    timer: Timer | None = None


class _Lane:
    """What an origin has published in one lane and not brought to everybody."""

    __slots__ = ("under_way", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Batch] = deque()
        #: As many of the first of them are on their way, together.
        self.under_way = 0


class Promises:
    """Hands arcs over, gathers answers, and hands over again."""

    def __init__(
        self, around: Surroundings, dispatch: Dispatch, deliver: Deliver, is_closed: Callable[[], bool]
    ) -> None:
        self._around = around
        self._dispatch = dispatch
        self._deliver = deliver
        self._is_closed = is_closed
        #: By batch, then by who handed a part over and which; and how many there are.
        self._tasks: dict[Key, dict[_Part, _Task]] = {}
        self._open = 0
        #: By origin, incarnation and lane, the last number that was committed here.
        self.positions: OrderedDict[tuple[int, int, int], int] = OrderedDict()
        #: Batches whose commit is under way, with the tasks that wait for it.
        self._committing: dict[Key, list[_Task]] = {}
        #: Arcs that were settled, so that a hand-over that was made again is answered at once.
        self._settled: OrderedDict[tuple[Key, _Part], None] = OrderedDict()
        self._lanes: dict[int, _Lane] = {}
        self.owed_bytes = 0
        #: Called with what is settled for good, so that it is owed no more.
        self.settled_for_good: Callable[[Batch], None] = lambda _batch: None

    # -- the origin

    def owe(self, batch: Batch, incarnation: int, now: float) -> None:
        """Bring a committed batch to everybody, after those before it in its lane."""
        lane = self._lanes.setdefault(batch.lane, _Lane())
        lane.waiting.append(batch)
        self.owed_bytes += size_of(batch.events)
        self._pump(lane, incarnation, now)

    def _pump(self, lane: _Lane, incarnation: int, now: float) -> None:
        if lane.under_way or not lane.waiting:
            return
        settings, me = self._around.settings, self._around.table.me.identifier
        together: list[Batch] = []
        for batch in lane.waiting:
            events = [event for each in (*together, batch) for event in each.events]
            is_too_much = len(events) > settings.batch_events or size_of(events) > settings.batch_bytes
            if together and is_too_much:
                break
            together.append(batch)
        lane.under_way, last = len(together), together[-1].number
        sent = tuple(Sent(last - batch.number, event) for batch in together for event in batch.events)
        data = Data(me, incarnation, together[-1].lane, last, 1, 0, me, me, (), sent)
        self._work_on(self._begin(_Task(data, None)), me, now)

    def _settled_everywhere(self, task: _Task, now: float) -> None:
        lane = self._lanes[task.data.lane]
        for _ in range(lane.under_way):
            batch = lane.waiting.popleft()
            self.owed_bytes -= size_of(batch.events)
            self.settled_for_good(batch)
        lane.under_way = 0
        self._pump(lane, task.data.incarnation, now)

    # -- a hop

    def arrived(self, peer: Peer, data: Data, now: float) -> None:
        """A part of the ring was handed over by a peer."""
        part = (peer.identifier, data.start, data.end)
        if (data.key, part) in self._settled:
            self._answer(peer, data)
        elif part in self._tasks.get(data.key, ()):
            return
        elif self._open >= self._around.settings.tasks:
            # it will come again
            self._around.counts.tasks_full += 1
        else:
            self._work_on(self._begin(_Task(data, peer)), peer.identifier, now)

    def _begin(self, task: _Task) -> _Task:
        self._tasks.setdefault(task.data.key, {})[self._part(task)] = task
        self._open += 1
        return task

    def _end(self, task: _Task) -> bool:
        """Forget a task; False if that has happened before."""
        parts = self._tasks.get(task.data.key, {})
        if parts.pop(self._part(task), None) is None:
            return False
        self._open -= 1
        if not parts:
            del self._tasks[task.data.key]
        self._around.alarms.cancel(task.timer)
        return True

    def _part(self, task: _Task) -> _Part:
        came_from = task.parent.identifier if task.parent else self._around.table.me.identifier
        return came_from, task.data.start, task.data.end

    def _all(self) -> list[_Task]:
        return [task for parts in self._tasks.values() for task in parts.values()]

    def _work_on(self, task: _Task, came_from: int, now: float) -> None:
        """Take it, and hand the parts on."""
        data, table = task.data, self._around.table
        # the origin's own clients were served when it accepted the batch
        if task.parent is not None and table.holds(data.start, data.end):
            self._take(task, now)
        self._hand_over(task, data, came_from)
        self._look(task, now)

    def _take(self, task: _Task, now: float) -> None:
        data = task.data
        place = (data.origin, data.incarnation, data.lane)
        before = self.positions.get(place, 0)
        if before >= data.number:
            self._around.counts.seen_before += 1
            if data.key in self._committing:
                task.is_committing = True
                self._committing[data.key].append(task)
            return
        self.positions[place] = data.number
        self.positions.move_to_end(place)
        if len(self.positions) > self._around.settings.remembered:
            self.positions.popitem(last=False)
        task.is_committing = True
        self._committing[data.key] = [task]
        # what a batch had in common with an earlier one, before its origin began again, was committed then
        fresh = tuple(sent for sent in data.events if data.number - sent.back > before)
        self._deliver(data._replace(events=fresh), Taken(*data.key), partial(self._committed, data.key))

    def _committed(self, key: Key, now: float) -> None:
        for task in self._committing.pop(key):
            task.is_committing = False
            self._look(task, now)

    def _hand_over(self, task: _Task, data: Data, came_from: int) -> None:
        onward = self._dispatch.onward(self._around.table, data, came_from)
        task.gaps += onward.gaps
        for peer, copy in onward.copies:
            task.waits[peer.identifier, copy.start, copy.end] = peer, copy
            self._around.send(peer, copy)

    def settled(self, peer: Peer, message: Settled, now: float) -> None:
        """A peer has brought a batch to everybody in a part of the ring."""
        key = Key(message.origin, message.incarnation, message.lane, message.number)
        for task in list(self._tasks.get(key, {}).values()):
            if task.waits.pop((peer.identifier, message.start, message.end), None) is not None:
                self._look(task, now)

    def _look(self, task: _Task, now: float) -> None:
        """Whether a part of the ring is settled by now; if not, it is looked at again."""
        if task.gaps and self._is_closed():
            task.gaps.clear()
        if task.waits or task.gaps or task.is_committing:
            if task.timer is None:
                task.timer = self._around.alarms.at(now + self._around.settings.again_s, partial(self._again, task))
            return
        if not self._end(task):
            return
        if task.parent is None:
            self._settled_everywhere(task, now)
            return
        self._settled[task.data.key, self._part(task)] = None
        if len(self._settled) > self._around.settings.tasks:
            self._settled.popitem(last=False)
        self._answer(task.parent, task.data)

    def _answer(self, peer: Peer, data: Data) -> None:
        self._around.send(peer, Settled(*data.key, data.start, data.end))

    # -- again

    def _again(self, task: _Task, now: float) -> None:
        task.timer = None
        for peer, copy in task.waits.values():
            self._around.counts.again += 1
            self._around.send(peer, copy)
        self._look(task, now)

    def peer_lost(self, peer: Peer, now: float) -> None:
        """What a peer was handed goes to somebody else."""
        for task in self._all():
            parts = [key for key in task.waits if key[0] == peer.identifier]
            if parts:
                self._around.counts.rerouted += len(parts)
                for key in parts:
                    _, copy = task.waits.pop(key)
                    self._hand_over(task, copy._replace(hops=max(0, copy.hops - 1)), task.data.origin)
            if task.parent == peer:
                # whoever handed it over is gone: the one before that hands it over anew
                self._end(task)
                continue
            self._look(task, now)

    def closed(self, now: float) -> None:
        """The ring is whole here again: who was between here and the successor is known now."""
        for task in self._all():
            if task.gaps:
                gaps, task.gaps = task.gaps, []
                for start, end in gaps:
                    self._hand_over(task, task.data._replace(start=start, end=end), task.data.origin)
                self._look(task, now)

    @property
    def unfinished(self) -> int:
        """Batches that are owed, and parts that others have handed over and nobody has settled."""
        return self._open + sum(len(lane.waiting) for lane in self._lanes.values())


def size_of(events: Iterable[Event]) -> int:
    """About as many bytes as events take in memory."""
    return sum(150 + len(event.topic) + len(event.payload) for event in events)
