"""A session that moves: which messages of which origin are its old home's, and which are its new home's.

Theory of operation
-------------------
Every origin puts a *mark* into its streams to the old and to the new home, in the moment in which it begins to send to
the new one: the last number of each lane before it.  What precedes the mark is passed on by the old home, the *tail* of
that origin; what follows it is taken from the origin by the new home.  The new home ignores what precedes its mark, for
it is in the tail, and holds what follows it until all tails have ended.  So everything comes once, and what one origin
has accepted stays in order.  All tails, because a publisher may have moved too: what it published before is in the tail
of another origin.

A session may move on while it arrives: then the same passage has a *floor* (the mark of the move that brought it here)
and a *ceiling* (that of the move that takes it away), and everything in between goes to the next home.

What this broker accepts itself has no numbers here: its mark is the moment in which it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tieline.core.handover import Subscribed, Terms
from tieline.core.message import Message

#: What becomes of a message.
TAKE, HOLD, IGNORE = range(3)
#: The lane of what this broker has accepted itself.
HERE: Final = 0
#: By lane, the last number before a mark.
Mark = Mapping[int, int]


#: The place of the first message that is held and has come straight; what the old home passes on goes before those, or
#: into the room that is left behind each.
_STRAIGHT: Final = 1 << 40
_ROOM: Final = 20


class HeldMessage(NamedTuple):
    """A message that waits until it is known whose it is, or for its turn."""

    place: int
    origin: int
    lane: int
    number: int
    message: Message
    terms: Terms


class Part:
    """What is known about one origin."""

    __slots__ = ("below", "ceiling", "floor", "has_tail", "is_deferred", "is_ended", "missing")

    def __init__(self, *, is_arriving: bool) -> None:
        #: None while it is not known.
        self.floor: Mark | None = None if is_arriving else {}
        self.ceiling: Mark | None = None
        #: It is not to be asked for a mark yet: marks of one session are in the order of its moves.
        self.is_deferred = False
        #: The old home has passed on everything.
        self.has_tail = not is_arriving
        #: The next home was told that it has everything.
        self.is_ended = False
        #: Lanes that have not come to the floor, and lanes that have not come to the ceiling.
        self.below = self.missing = 0

    @property
    def has_arrived(self) -> bool:
        """Whether nothing of this origin comes from the old home any more, nor anything that has come from there."""
        return self.has_tail and self.floor is not None and not self.below


class Passage:
    """One session on its way to this broker, from it, or both."""

    __slots__ = (
        "_early",
        "_place",
        "after",
        "after_epoch",
        "before",
        "began",
        "client_id",
        "epoch",
        "estate",
        "held",
        "held_bytes",
        "is_complete",
        "is_followed",
        "is_open",
        "number",
        "parts",
        "subscriptions",
        "user",
        "waiting",
    )

    def __init__(self, number: int, client_id: str, user: str | None, began: float) -> None:
        #: What notes call it.
        self.number = number
        self.client_id = client_id
        self.user = user
        self.began = began
        #: The broker that it comes from, 0 if from nowhere, and the epoch of that move.
        self.before = self.epoch = 0
        #: Everything of its state is here.
        self.is_complete = False
        #: The old home was told that nothing more is needed of it.
        self.is_followed = False
        #: Nothing waits for the old home: all tails have ended, or it was waited for in vain.
        self.is_open = True
        #: The broker that it goes to, 0 if it stays, and the epoch of that move.
        self.after = self.after_epoch = 0
        #: What it was subscribed to when it left.
        self.subscriptions: tuple[Subscribed, ...] = ()
        #: What the store calls the session while more of it waits there alone; else 0.
        self.estate = 0
        #: By origin.
        self.parts: dict[int, Part] = {}
        #: What waits, by its place; how much of each publisher.
        self.held: list[HeldMessage] = []
        self.waiting: dict[str, int] = {}
        self.held_bytes = 0
        self._early, self._place = 0, _STRAIGHT

    def part(self, origin: int) -> Part:
        """What is known about an origin; nothing if it is heard of for the first time."""
        part = self.parts.get(origin)
        if part is None:
            part = self.parts[origin] = Part(is_arriving=self.before > 0)
        return part

    def has_asked(self, origin: int) -> bool:
        """Whether an origin was asked for its mark, or will be without more news of it."""
        part = self.parts.get(origin)
        return self.is_complete and part is not None and not part.is_deferred

    def judge(self, origin: int, lane: int, number: int) -> int:
        """What becomes of a message that comes now."""
        part = self.part(origin)
        if lane == HERE:
            if part.floor is None or (self.after and part.ceiling is not None):
                return IGNORE
            return TAKE if self.is_open else HOLD
        if part.floor is None:
            return HOLD
        if number <= part.floor.get(lane, 0):
            return IGNORE
        if self.after and part.ceiling is not None and number > part.ceiling.get(lane, 0):
            return IGNORE
        if not self.is_open or (self.after and part.ceiling is None):
            return HOLD
        return TAKE

    def hold(self, origin: int, lane: int, number: int, message: Message, terms: Terms) -> HeldMessage:
        """Let a message wait behind those that do."""
        self._place += 1 << _ROOM
        held = HeldMessage(self._place, origin, lane, number, message, terms)
        self.held.append(held)
        self._count(held, 1)
        return held

    def hold_early(self, message: Message, terms: Terms) -> HeldMessage:
        """Let a message wait that the old home has passed on."""
        self._early += 1
        held = HeldMessage(self._early, self.before, HERE, 0, message, terms)
        self.held.insert(sum(each.place < _STRAIGHT for each in self.held), held)
        self._count(held, 1)
        return held

    def held_before(self, message: Message) -> HeldMessage | None:
        """The last that waits of what a publisher had sent before its session moved to where it sent a message."""
        origin = message.origin
        if not origin.moves or origin.publisher not in self.waiting:
            return None
        for held in reversed(self.held):
            if held.place < _STRAIGHT:
                break
            if held.message.origin.publisher == origin.publisher and held.message.origin.moves < origin.moves:
                return held
        return None

    def hold_behind(self, before: HeldMessage, origin: int, message: Message, terms: Terms) -> HeldMessage:
        """Let a message wait that the old home has passed on, behind one of its publisher that is held."""
        at = next(at for at, held in enumerate(self.held, 1) if held is before)
        place = before.place
        while at < len(self.held) and self.held[at].place >> _ROOM == place >> _ROOM:
            place = self.held[at].place
            at += 1
        held = HeldMessage(place + 1, origin, HERE, 0, message, terms)
        self.held.insert(at, held)
        self._count(held, 1)
        return held

    def put_back(self, held: HeldMessage) -> None:
        """A message waits since an earlier life."""
        self.held.append(held)
        self._count(held, 1)
        if held.place < _STRAIGHT:
            self._early = max(self._early, held.place)
        else:
            self._place = max(self._place, held.place)

    def _count(self, held: HeldMessage, by: int) -> None:
        publisher = held.message.origin.publisher
        self.waiting[publisher] = self.waiting.get(publisher, 0) + by
        if not self.waiting[publisher]:
            del self.waiting[publisher]
        self.held_bytes += by * held.message.size

    def let_out(self, origin: int) -> list[HeldMessage]:
        """What waits of an origin that will never say where its mark is: all that came of it came before that."""
        gone: list[HeldMessage] = []
        still: list[HeldMessage] = []
        for each in self.held:
            (gone if each.origin == origin and each.lane != HERE else still).append(each)
        self.held = still
        for each in gone:
            self._count(each, -1)
        return gone

    def let_go(self) -> list[tuple[HeldMessage, bool]]:
        """What need wait no longer, in its order, and whether it is taken or ignored.

        A publisher may have moved as well: nothing of it overtakes what waits of it, whoever has accepted that.
        """
        gone: list[tuple[HeldMessage, bool]] = []
        still: list[HeldMessage] = []
        behind: set[str] = set()
        for each in self.held:
            publisher = each.message.origin.publisher
            # what was accepted here came before our own mark
            verdict = self._judge_here() if each.lane == HERE else self.judge(each.origin, each.lane, each.number)
            if verdict == HOLD or (verdict == TAKE and publisher in behind):
                behind.add(publisher)
                still.append(each)
            else:
                gone.append((each, verdict == TAKE))
        self.held = still
        for each, _ in gone:
            self._count(each, -1)
        return gone

    def _judge_here(self) -> int:
        return TAKE if self.is_open else HOLD

    def is_over(self, origin: int) -> bool:
        """Whether everything of an origin that goes to the next home has come."""
        part = self.parts[origin]
        if not part.has_arrived or part.ceiling is None or part.missing or not self.is_open:
            return False
        return not any(each.origin == origin for each in self.held)

    @property
    def has_arrived(self) -> bool:
        """Whether the old home is not needed any more."""
        return self.is_complete and all(part.has_arrived for part in self.parts.values())

    def __repr__(self) -> str:
        return f"<Passage of {self.client_id} from {self.before} to {self.after}>"
