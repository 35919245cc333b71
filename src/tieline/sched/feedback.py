"""The default policy: levels, heat inside a level, and a promise to those below.

Theory of operation
-------------------
The highest waiting level goes first; inside it the hotter topic, then the shallower, then the older.  A lower level
*overtakes* for one of two reasons:

* its *slot*: its oldest message has waited until only one ``period`` is left of its timeout, and in this period the
  level has had fewer than ``frequency`` slots (the paper's feedback: time period and distribution frequency).  A slot
  is one message: of an entry that holds several, as many go as there are slots left.  The oldest goes, whatever its
  heat; for the same reason, and out of the same slots, a cold topic goes before the hotter ones of its own level;
* its *floor*: every message sent above it earns it credit; when the credit pays for its next message, that goes.  The
  earnings are such that the levels passed over share ``floor`` of the link by their weights.

The bound: between two messages in turn, overtakers go until they have taken more than the former earned for the floor.
So an urgent message that is next in its level waits for at most one lower message and one floor quantum,
``floor / (1 - floor)`` of the size of the message that was last sent in turn; where all messages have one size and the
floor is less than a half, that is one message.  Of an entry that holds several messages, as many count as the queue
sends before it puts back the rest.

Slots and floor share this allowance.  Slots go first, as they have a time to keep, except before a level that is owed
two messages: else slots could eat up the floor.

When the higher levels are empty the lower ones are sent without further ado: nothing is ever held back.  What the
floor promises on the link it also keeps in a full queue: a level that holds no more than its share is not the victim of
a flood above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from tieline.sched.levels import LEVELS, URGENT, Patience, Rules
from tieline.sched.policy import EVERY, GROUPS, Policy, WindowState, first
from tieline.sched.waiting import Flow, Key, Waiting

E = TypeVar("E")


@dataclass(slots=True)
class _Service:
    """What was last chosen, and by what right; booked when it is known how much of it was sent."""

    level: int
    #: The lower levels that could have been served instead; None when it is itself one that overtook.
    passed: list[int] | None
    is_slot: bool
    #: What was sent of the entry with this number.
    order: int
    size: int
    messages: int


def _patience(rules: Rules) -> list[float]:
    """How long a message of each level waits before it is given a slot: the slot must come before the timeout."""
    asked = rules.patience
    waits = [
        (traffic.timeout_s if asked.timeout_s is None else asked.timeout_s) - asked.period_s
        for traffic in rules.classes
    ]
    # only other urgent messages go before an urgent one, so there is no reason to change their order early
    waits[URGENT] = rules.classes[URGENT].timeout_s
    return waits


class Feedback(Policy[E]):
    """Level, heat, and a floor for everyone."""

    name = "feedback"
    has_floor = True

    def __init__(self, rules: Rules | None = None) -> None:
        super().__init__(rules)
        floor = self.rules.floor
        #: Bytes that may overtake for every byte sent in turn.
        self._rate = floor / (1 - floor)
        self._weights = [traffic.weight for traffic in self.rules.classes]
        #: How long a message of each level waits before it is given a slot.
        self._patience = _patience(self.rules)
        #: Bytes that each level has earned and not spent; below 0 when more was sent than it could pay.
        self._credit = [0.0] * LEVELS
        #: Slots that each level has had in the current period, and when that period began.
        self._slots = [0] * LEVELS
        self._period_began = float("-inf")
        #: Bytes that may still overtake before the next message in turn; the last overtaker may exceed it.
        self._allowance = 0.0
        self._last: _Service | None = None
        #: Messages that went before higher ones by credit, and before higher or hotter ones by a slot.
        self.floor_served = 0
        self.slots_served = 0

    def heed(self, patience: Patience) -> None:
        """As promised; from the next choice on."""
        super().heed(patience)
        self._patience = _patience(self.rules)

    def key(self, flow: Flow[E]) -> Key:
        """The hottest topic first, then the shallowest, then whatever came first."""
        head = flow.head
        return (-head.heat, head.depth, head.order)

    def share(self, level: int) -> float:
        """The level's part of the floor when all levels wait."""
        return self.rules.floor * self._weights[level] / sum(self._weights[:URGENT]) if level < URGENT else 0.0

    def spares(self, level: int) -> bool:
        """Those who hold no more than their share of the queue, and the last message of each level."""
        share = self.share(level)
        return share > 0 and (self._entries[level] <= 1 or self._bytes[level] <= share * sum(self._bytes))

    # -- choosing

    def _choose(self, now: float, window: WindowState) -> Flow[E] | None:
        self._settle()
        if now - self._period_began >= self.rules.patience.period_s:
            self._period_began = now
            self._slots = [0] * LEVELS
        tops = self._tops(window)
        if not tops:
            return None
        (highest, flow), *below = tops
        overtaker = self._overtaker(below, now, window) if below and self._allowance >= 0 else None
        if overtaker is not None:
            is_paid = self._credit[overtaker.level] >= _price(overtaker.head)
            return self._serve(overtaker, None, is_slot=not is_paid)
        late = self._late(highest, now, window)
        is_slot = late is not None and late is not flow
        return self._serve(flow if late is None else late, [level for level, _ in below], is_slot=is_slot)

    def _tops(self, window: WindowState) -> list[tuple[int, Flow[E]]]:
        """The levels at which something may be served, highest first, with what goes first there."""
        tops: list[tuple[int, Flow[E]]] = []
        rankings = self._by_key
        for level in range(URGENT, -1, -1):
            if not (rankings[2 * level].valid or rankings[2 * level + 1].valid):
                self._credit[level] = 0.0  # credit is for those who wait
                continue
            flow = first(rankings, GROUPS[window][level])
            if flow is not None:
                tops.append((level, flow))
        return tops

    def _overtaker(self, below: list[tuple[int, Flow[E]]], now: float, window: WindowState) -> Flow[E] | None:
        """Who may go before the highest level: whoever is owed, late, or able to pay; among equals the lowest."""
        paid: Flow[E] | None = None
        for level, flow in reversed(below):
            credit, price = self._credit[level], _price(flow.head)
            if credit >= 2 * price:
                return flow
            if paid is None and credit >= price:
                paid = flow
        late = [oldest for level, _ in below if (oldest := self._late(level, now, window)) is not None]
        if late:
            return min(late, key=lambda flow: flow.head.since + self._patience[flow.level])
        return paid

    def _late(self, level: int, now: float, window: WindowState) -> Flow[E] | None:
        """The flow that waits longest at a level, if a slot is due to it."""
        if self._slots[level] >= self.rules.patience.frequency:
            return None
        flow = first(self._by_age, GROUPS[window][level])
        return flow if flow is not None and now - flow.head.since >= self._patience[level] else None

    # -- keeping the accounts

    def _serve(self, flow: Flow[E], passed: list[int] | None, *, is_slot: bool) -> Flow[E]:
        head = flow.head
        self.most = self.rules.patience.frequency - self._slots[flow.level] if is_slot else EVERY
        self._last = _Service(flow.level, passed, is_slot, head.order, head.size, head.messages)
        return flow

    def _unsent(self, waiting: Waiting[E]) -> None:
        if self._last is not None and self._last.order == waiting.order:
            self._last.size -= waiting.size
            self._last.messages -= waiting.messages

    def _settle(self) -> None:
        """Book the last service, of which nothing can be put back any more."""
        last, self._last = self._last, None
        if last is None or not last.messages:
            return
        if last.passed is None:
            self._allowance -= last.size
            credit = self._credit[last.level]
            # a slot is no debt: it takes what credit there is, and the rest is given
            self._credit[last.level] = min(credit, max(0.0, credit - last.size)) if last.is_slot else credit - last.size
        else:
            earned = self._rate * last.size
            self._allowance = earned
            if last.passed:
                total = sum(self._weights[level] for level in last.passed)
                for level in last.passed:
                    self._credit[level] += earned * self._weights[level] / total
        if last.is_slot:
            self._slots[last.level] += last.messages
            self.slots_served += last.messages
        elif last.passed is None:
            self.floor_served += last.messages


def _price(waiting: Waiting[E]) -> float:
    """What an entry must be able to pay: its first message, since the queue may send that and put back the rest."""
    return waiting.size / waiting.messages
