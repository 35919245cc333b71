"""What waits for one link: the most urgent first, a floor for those below, and a name for whatever is dropped.

Theory of operation
-------------------
Mostly a line is empty again at the end of the turn in which it was filled, and is then a queue for each level, of
which the highest goes first.  It is *congested* when several levels wait at once, when something has to be cut, or when
there is no room.  Then everything is handed to the policy that queues of clients have too (:mod:`tieline.sched`), with
its floors and its rules about who dies, until the line has run empty.

Three kinds of things have bounds of their own, so that none takes the room of another: messages with QoS 0 of all
levels together, assured ones of each level, and notices.  An assured message that finds no room is turned away, which
is for its origin to know (:mod:`tieline.overlay.carrier.credit`).  With QoS 0 the policy says who has to go; a void
with the same numbers takes its place.

Something longer than there is room for is cut (:mod:`tieline.overlay.frames.segments`): a piece of it goes, and the
rest is put back in front of its level, where it waits for its turn like everything else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from tieline.core.account import Drop
from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import LEVELS, MOST, Data, Notice, Numbered, is_assured
from tieline.overlay.frames.segments import Cut, Segment
from tieline.overlay.links.patience import Patience
from tieline.sched.policy import EVERY, Policy
from tieline.sched.waiting import Waiting

#: The kinds of things that are counted apart: assured messages of each level, QoS 0, and notices.
LOOSE, NOTICES, _KINDS = LEVELS, LEVELS + 1, LEVELS + 2
#: Something up to this long goes whole where there is room for so much in general.
_WHOLE: Final = 1 << 17
#: Room from which on nothing is short of it.
PLENTY: Final = 1 << 16


class Line:
    """Everything that waits for one link."""

    def __init__(self, counts: Counts, patience: Patience) -> None:
        self._counts = counts
        self._patience = patience
        self._segment = patience.segment
        #: Bytes of QoS 0 that may wait, and of notices.
        self._most = patience.queue_bytes
        #: Bytes of assured messages of each level that may wait here.
        self.assured_most = patience.credit_bytes
        #: By kind, bytes that wait.
        self.bytes = [0] * _KINDS
        #: By level, frames that wait, and their bytes.
        self.frames = [0] * LEVELS
        self.level_bytes = [0] * LEVELS
        self._queues: tuple[deque[Numbered], ...] = tuple(deque() for _ in range(LEVELS))
        #: Only while the line is congested.
        self._policy: Policy[Numbered] | None = None
        #: Entries of the policy; ``_order`` is the number of the last.
        self._waiting = 0
        self._order = 0
        #: By level, what was begun to be sent, with the number of its entry.
        self._cuts: dict[int, tuple[int, Cut]] = {}
        #: By level, the void that was made last and may still grow.
        self._voids: dict[int, Waiting[Numbered]] = {}

    def __len__(self) -> int:
        return self._waiting + sum(map(len, self._queues))

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits in any of its queues."""
        return not self._waiting and not any(self._queues)

    @property
    def is_congested(self) -> bool:
        """Whether a policy decides who goes next."""
        return self._policy is not None

    def note_rate(self, bytes_per_s: float) -> None:
        """So much leaves the link in a second: what waits here beyond that waits better at its origin."""
        patience = self._patience
        self.assured_most = min(patience.credit_bytes, max(patience.least_bytes, int(bytes_per_s)))

    def assured(self, level: int) -> Iterator[Numbered]:
        """What waits of a level and is not dropped for want of room, also what was begun to be sent."""
        if self._policy is None:
            yield from (item for item in self._queues[level] if _kind(item) != LOOSE)
        else:
            yield from (waiting.entry for waiting in self._policy.entries_of(2 * level + 1))

    # -- coming

    def takes(self, item: Numbered) -> bool:
        """Whether something would be let in; the last that is may be as long as it likes, or it would never be."""
        kind = _kind(item)
        if kind == LOOSE:
            return True
        held, patience = self.bytes[kind], self._patience
        if held >= patience.least_bytes and patience.is_short():
            return False
        return held < (self._most if kind == NOTICES else self.assured_most)

    def push(self, item: Numbered, now: float) -> bool:
        """Let something wait; False for what is turned away, because too much of its kind waits already."""
        if not self.takes(item):
            return False
        kind, size = _kind(item), item.size
        held = self.bytes[kind]
        if kind != LOOSE:
            self._add(item, kind, size, now)
        elif held < 2 * self._most or not _is_void(item):
            # of too many voids some go, and the receiver skips their numbers after a moment
            self._add(item, kind, size, now)
            least = self._patience.least_bytes
            if held + size > self._most:
                self._make_room(self._most, now)
            elif held + size > least and self._patience.is_short():
                self._make_room(least, now)
        return True

    def _add(self, item: Numbered, kind: int, size: int, now: float) -> None:
        self._note(item, 1, size)
        if self._policy is None:
            self._queues[item.level].append(item)
        else:
            self._enter(self._policy, item, kind, size, now)

    def _enter(self, policy: Policy[Numbered], item: Numbered, kind: int, size: int, now: float) -> None:
        self._order += 1
        self._waiting += 1
        level = item.level
        # a level is one flow with QoS 0 and one without: what came first goes first in each
        policy.push(
            Waiting(
                item,
                order=self._order,
                level=level,
                since=now,
                size=size,
                messages=self._segments(size),
                flow=2 * level + (kind != LOOSE),
                # what is assured is not dropped for want of room, nor is what takes none
                is_assured=kind != LOOSE or _is_void(item),
            ),
            now,
        )

    def _note(self, item: Numbered, frames: int, size: int) -> None:
        """So many frames and bytes more of the kind of something wait."""
        level = item.level
        self.bytes[_kind(item)] += size
        self.frames[level] += frames
        self.level_bytes[level] += size

    def take_back(self, items: list[Numbered]) -> None:
        """What was under way on a lost connection goes first of its level, in its order, room or not."""
        self._relax()
        for item in reversed(items):
            self._queues[item.level].appendleft(item)
            self._note(item, 1, item.size)

    # -- going

    def pop(self, room: int, now: float) -> Numbered | Segment | None:
        """What goes next, or a piece of it if it is longer than there is room for; None if nothing waits."""
        policy = self._policy
        if policy is None:
            queue = self._next_queue()
            if queue is None:
                return None
            item = queue[0]
            if item.size <= self._whole(room):
                queue.popleft()
                self._note(item, -1, -item.size)
                return item
            policy = self._congest(now)
        waiting = policy.pop(now)
        if waiting is None:
            self._policy = None
            return None
        self._waiting -= 1
        item, level = waiting.entry, waiting.level
        if self._voids.get(level) is waiting:
            del self._voids[level]
        cut = self._begun(waiting, room)
        if cut is None:
            self._left(item, waiting.size)
            return item
        some = room if policy.most == EVERY else min(room, self._segment * policy.most)
        piece = cut.next(level, min(max(some, self._segment), PLENTY), now)
        if piece.is_last:
            del self._cuts[level]
            self._left(item, waiting.size)
            return piece
        self._note(item, 0, cut.left - waiting.size)
        waiting.size = cut.left
        waiting.messages = max(1, min(waiting.messages - 1, self._segments(cut.left)))
        self._waiting += 1
        policy.put_back(waiting)
        return piece

    def _left(self, item: Numbered, size: int) -> None:
        """An entry of the policy has left, and it may have been the last one."""
        self._note(item, -1, -size)
        if not self._waiting:
            self._policy = None
            self._voids.clear()

    def _begun(self, waiting: Waiting[Numbered], room: int) -> Cut | None:
        """What is sent of an entry in pieces; None if it goes whole."""
        order, cut = self._cuts.get(waiting.level, (0, None))
        if cut is None or order != waiting.order:
            # whatever else was begun at this level begins anew when its turn comes again
            if waiting.size <= self._whole(room):
                return None
            cut = Cut(waiting.entry)
            self._cuts[waiting.level] = waiting.order, cut
        return cut

    def settle(self, now: float) -> None:
        """No more goes for now: if several levels wait, from now on a policy decides whose turn it is."""
        if self._policy is None and sum(1 for queue in self._queues if queue) > 1:
            self._congest(now)

    def drain(self) -> Iterator[Numbered]:
        """Give up everything, the most urgent first, each level in its order."""
        self._relax()
        for queue in reversed(self._queues):
            yield from queue
            queue.clear()
        self.bytes, self.frames, self.level_bytes = [0] * _KINDS, [0] * LEVELS, [0] * LEVELS

    def _next_queue(self) -> deque[Numbered] | None:
        for level in range(LEVELS - 1, -1, -1):
            if self._queues[level]:
                return self._queues[level]
        return None

    # -- congestion

    def _congest(self, now: float) -> Policy[Numbered]:
        policy: Policy[Numbered] = self._patience.make_policy()
        self._policy = policy
        for queue in self._queues:
            while queue:
                item = queue.popleft()
                self._enter(policy, item, _kind(item), item.size, now)
        return policy

    def _relax(self) -> None:
        """Have queues again; what was begun to be sent begins anew."""
        policy, self._policy = self._policy, None
        self._cuts.clear()
        self._voids.clear()
        if policy is None:
            return
        left: list[Waiting[Numbered]] = []
        while (waiting := policy.pop(0.0)) is not None:
            left.append(waiting)
        self._waiting = 0
        left.sort(key=_order)
        for waiting in left:
            item = waiting.entry
            self._note(item, 0, item.size - waiting.size)
            self._queues[item.level].append(item)

    def _make_room(self, most: int, now: float) -> None:
        """Let the policy give up messages with QoS 0 until the others have room."""
        policy = self._policy or self._congest(now)
        while self.bytes[LOOSE] > most:
            victim = policy.evict()
            if victim is None:
                break
            data = victim.entry
            assert isinstance(data, Data)
            if victim.size == self.bytes[LOOSE]:
                policy.keep(victim)  # there is room for one, however long it is
                break
            self._waiting -= 1
            self._note(data, -1, -victim.size)
            self._counts.voided += data.count
            self._patience.dropped(data, Drop.LINK_FULL, now)
            self._leave_void(policy, victim, data)

    def _leave_void(self, policy: Policy[Numbered], victim: Waiting[Numbered], data: Data) -> None:
        """Numbers that nobody will ever send are said to be such, many at a time where they follow each other."""
        last = self._voids.get(victim.level)
        if last is not None and isinstance(last.entry, Data) and last.entry.swallow(data, MOST):
            return
        void = data.as_void()
        self._waiting += 1
        # it is short, and must not be dropped again
        left: Waiting[Numbered] = Waiting(
            void,
            order=victim.order,
            level=victim.level,
            since=victim.since,
            size=void.size,
            flow=victim.flow,
            is_assured=True,
        )
        self._note(void, 1, void.size)
        policy.keep(left)
        self._voids[victim.level] = left

    def _whole(self, room: int) -> int:
        """How long something may be that goes whole; where there is plenty of room, a bit too much is none."""
        return _WHOLE if room >= PLENTY else max(room, self._segment)

    def _segments(self, size: int) -> int:
        return -(-size // self._segment)

    def check(self) -> None:
        """What always holds, for tests."""
        if self._policy is None:
            assert not self._waiting
            sizes = [0] * _KINDS
            for queue in self._queues:
                for item in queue:
                    sizes[_kind(item)] += item.size
            assert sizes == self.bytes, (sizes, self.bytes)
        else:
            assert not any(self._queues)
        assert min(self.bytes) >= 0
        assert sum(self.bytes) == sum(self.level_bytes)
        assert sum(self.frames) == len(self)


def _kind(item: Numbered) -> int:
    """Among which things it is counted."""
    if isinstance(item, Notice):
        return NOTICES
    return item.level if is_assured(item.lane) else LOOSE


def _is_void(item: Numbered) -> bool:
    return isinstance(item, Data) and not item.payloads


def _order(waiting: Waiting[Numbered]) -> int:
    return waiting.order
