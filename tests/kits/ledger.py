"""What facts mean, in the plainest way: a state that is changed one fact at a time."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tieline.core.durable import facts
from tieline.core.ports import Fact, Portion
from tieline.core.restore import StoredState


class Model:
    """The broker's state as dictionaries and lists."""

    def __init__(self) -> None:
        self.sessions: dict[int, tuple[Any, ...]] = {}
        self.subscriptions: dict[tuple[int, str], tuple[Any, ...]] = {}
        self.messages: dict[int, tuple[Any, ...]] = {}
        self.retained: dict[bytes, int] = {}
        #: (session, message, options, identifiers, share), oldest first; and of each the place, the lane and the size.
        self.queue: list[tuple[Any, ...]] = []
        self.places: list[tuple[int, int, int]] = []
        self._place = 0
        #: By session and packet id, in the order of sending again: message or None, then the terms.
        self.inflight: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.inbound: set[tuple[int, int]] = set()
        self.unrouted: list[int] = []
        #: Highest number and time, by producer.
        self.producers: dict[str, tuple[int, float]] = {}
        self.notes: dict[bytes, bytes] = {}

    def apply(self, fact: Fact) -> None:
        kind, session = fact[0], fact[1]
        match kind:
            case facts.SESSION:
                self.sessions[session] = fact[1:]
            case facts.FORGET:
                self.sessions.pop(session, None)
                self.subscriptions = {key: row for key, row in self.subscriptions.items() if key[0] != session}
                self._keep_entries(lambda entry: entry[0] != session)
                self.inflight = {key: row for key, row in self.inflight.items() if key[0] != session}
                self.inbound = {key for key in self.inbound if key[0] != session}
            case facts.SUBSCRIBE:
                self.subscriptions[session, fact[2]] = fact[1:]
            case facts.UNSUBSCRIBE:
                del self.subscriptions[session, fact[2]]
            case facts.MESSAGE:
                self.messages[fact[2]] = fact[2:]
            case facts.RETAIN:
                self.retained[fact[2]] = fact[3]
            case facts.CLEAR:
                self.retained.pop(fact[2], None)
            case facts.QUEUE | facts.SPILL:
                self._place += 1
                self.queue.append(fact[1:6])
                self.places.append((self._place, *(fact[6:] or (0, 0))))
            case facts.GATHERED:
                self.places = [
                    (place, 0, 0) if entry[0] == session else (place, lane, size)
                    for entry, (place, lane, size) in zip(self.queue, self.places, strict=True)
                ]
            case facts.ENDED:
                self.sessions[session] = (*fact[1:4], facts.OVER, fact[4], None, None)
                self.subscriptions = {key: row for key, row in self.subscriptions.items() if key[0] != session}
                self.inflight = {key: row for key, row in self.inflight.items() if key[0] != session}
                self.inbound = {key for key in self.inbound if key[0] != session}
            case facts.SENT:
                self._remove(fact[1:6])
                self.inflight[session, fact[6]] = (fact[2], *fact[3:6])
            case facts.DROP:
                self._remove(fact[1:])
            case facts.RECEIVED:
                row = self.inflight.pop((session, fact[2]))
                self.inflight[session, fact[2]] = (None, *row[1:])
            case facts.SETTLED:
                del self.inflight[session, fact[2]]
            case facts.TAKE:
                self.inbound.add((session, fact[2]))
            case facts.RELEASE:
                self.inbound.discard((session, fact[2]))
            case facts.UNROUTED:
                self.unrouted.append(fact[2])
            case facts.ROUTED:
                self.unrouted.remove(fact[2])
            case facts.PRODUCED:
                self.producers[fact[2]] = (fact[3], fact[4])
            case facts.UNPRODUCED:
                self.producers.pop(fact[2], None)
            case facts.NOTE if fact[3] is None:
                self.notes.pop(fact[2], None)
            case facts.NOTE:
                self.notes[fact[2]] = fact[3]

    def _remove(self, entry: tuple[Any, ...]) -> None:
        """The oldest of equal entries leaves."""
        at = self.queue.index(entry)
        del self.queue[at], self.places[at]

    def _keep_entries(self, is_kept: Callable[[tuple[Any, ...]], bool]) -> None:
        kept = [pair for pair in zip(self.queue, self.places, strict=True) if is_kept(pair[0])]
        self.queue, self.places = [entry for entry, _ in kept], [place for _, place in kept]

    def portion(self, session: int, lane: int, after: int, messages: int, size: int) -> Portion:
        """The next of what waits for a session in the store alone."""
        found: list[Any] = []
        last = after
        for entry, (place, lies, held) in zip(self.queue, self.places, strict=True):
            if entry[0] == session and lies == lane and place > after and len(found) < messages:
                size -= held
                if found and size < 0:
                    break
                found.append((self.messages[entry[1]], entry[2:]))
                last = place
        return Portion(session, lane, last, found)

    @property
    def _spilled(self) -> list[tuple[int, ...]]:
        lanes: dict[tuple[int, int], list[int]] = {}
        for entry, (_, lane, size) in zip(self.queue, self.places, strict=True):
            if lane:
                lanes.setdefault((entry[0], lane), []).append(size)
        return [(*key, len(sizes), sum(sizes), max(sizes)) for key, sizes in sorted(lanes.items())]

    @property
    def _needed(self) -> set[int]:
        """The messages that something refers to."""
        needed = {entry[1] for entry in self.queue} | self._needed_here
        return needed | {row[0] for row in self.inflight.values() if row[0] is not None}

    @property
    def _needed_here(self) -> set[int]:
        """Those that a broker which begins has to know."""
        here = [entry for entry, (_, lane, _) in zip(self.queue, self.places, strict=True) if not lane]
        needed = {entry[1] for entry in here} | set(self.retained.values()) | set(self.unrouted)
        return needed | {row[0] for row in self.inflight.values() if row[0] is not None}

    def sweep(self) -> None:
        """Forget what nothing refers to, as a store may after each batch: it must not be named again."""
        needed = self._needed
        self.messages = {number: row for number, row in self.messages.items() if number in needed}

    @property
    def state(self) -> StoredState:
        """The same as rows; messages that nothing refers to are not part of it."""
        state = StoredState()
        needed = self._needed_here
        state.tables = {
            "session": sorted(self.sessions.values()),
            "subscription": sorted(self.subscriptions.values()),
            "message": sorted(self.messages[number] for number in needed),
            "retained": sorted(self.retained.items()),
            "queue": [entry for entry, (_, lane, _) in zip(self.queue, self.places, strict=True) if not lane],
            "spilled": self._spilled,
            "inflight": [(*key, *row) for key, row in self.inflight.items()],
            "inbound": sorted(self.inbound),
            "unrouted": [(number,) for number in self.unrouted],
            "producer": [
                (name, number)
                for name, (number, _) in sorted(self.producers.items(), key=lambda producer: producer[1][1])
            ],
            "note": sorted(self.notes.items()),
        }
        state.messages = max(self.messages, default=0)
        return state


def comparable(tables: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Rows as a store returns them, in the order and the types of a model; order counts in queue and inflight."""
    plain = {name: [_plain(row) for row in rows] for name, rows in tables.items()}
    for name in ("session", "subscription", "message", "retained", "inbound"):
        plain[name].sort(key=repr)
    # the options and terms of a flight after PUBREC do not matter
    plain["inflight"] = [row if row[2] is not None else row[:3] for row in plain["inflight"]]
    return plain


def _plain(row: Any) -> Any:
    return tuple(_plain(one) for one in row) if isinstance(row, list | tuple) else row


#: What happens next; what happens more often is here more often.
WORDS = (
    *("session", "forget", "subscribe", "unsubscribe", "retain", "clear", "take", "release"),
    *("queue", "queue", "sent", "sent", "drop", "both", "received", "settled", "settled"),
    *("unrouted", "routed", "produced", "unproduced", "note", "note"),
    *("spill", "spill", "gathered", "ended"),
)


class Life:
    """Facts as a broker would make them, at random."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.model = Model()
        self.messages = self.sessions = 0

    def batch(self, size: int) -> list[Fact]:
        made: list[Fact] = []
        for _ in range(size):
            for fact in self._step():
                self.model.apply(fact)
                made.append(fact)
        return made

    def _step(self) -> list[Fact]:
        random, model = self.random, self.model
        what = random.choice(WORDS)
        # of a session that has ended, what it left is dropped, and then it is forgotten
        over = [number for number, row in model.sessions.items() if row[3] == facts.OVER]
        if over and random.random() < 0.3:
            number = random.choice(over)
            behind = [entry for entry in model.queue if entry[0] == number]
            return [(facts.DROP, *random.choice(behind))] if behind else [(facts.FORGET, number)]
        sessions = [number for number in model.sessions if number not in over]
        if what == "session" or not sessions:
            number = random.choice(sessions) if sessions and random.random() < 0.5 else self._new_session()
            will = ("w", b"gone", 1, False, b"\0") if random.random() < 0.3 else None
            left = random.choice([None, 5.0])
            return [(facts.SESSION, number, f"c{number}", None, random.choice([0, 10]), left, will, None)]
        session, packet_id = random.choice(sessions), random.randrange(1, 5)
        mine = [entry for entry in model.queue if entry[0] == session]
        flights = [key for key in model.inflight if key[0] == session]
        match what:
            case "forget" if random.random() < 0.3:
                return [(facts.FORGET, session)]
            case "subscribe":
                return [(facts.SUBSCRIBE, session, random.choice("abc"), random.randrange(3), 7, ("x > 1",))]
            case "unsubscribe" if filters := [key[1] for key in model.subscriptions if key[0] == session]:
                return [(facts.UNSUBSCRIBE, session, random.choice(filters))]
            case "retain":
                message = self._message()
                return [message, (facts.RETAIN, 0, random.choice([b"a", b"b"]), message[2])]
            case "clear":
                return [(facts.CLEAR, 0, random.choice([b"a", b"b"]))]
            case "queue":
                message = self._message()
                return [
                    message,
                    *(self._queue(one, message[2]) for one in random.sample(sessions, min(2, len(sessions)))),
                ]
            case "both":  # a full queue: discarded where it was queued, kept elsewhere
                message = self._message()
                entry = self._queue(session, message[2])
                return [message, entry, (facts.DROP, *entry[1:]), self._queue(random.choice(sessions), message[2])]
            case "sent" if mine:
                free = next(one for one in range(1, 100) if (session, one) not in model.inflight)
                return [(facts.SENT, *random.choice(mine), free)]
            case "drop" if mine:
                return [(facts.DROP, *random.choice(mine))]
            case "received" if flights:
                return [(facts.RECEIVED, *random.choice(flights))]
            case "settled" if flights:
                return [(facts.SETTLED, *random.choice(flights))]
            case "take" if (session, packet_id) not in model.inbound:
                return [(facts.TAKE, session, packet_id)]
            case "spill":
                message = self._message()
                return [
                    message,
                    (facts.SPILL, *self._queue(session, message[2])[1:], random.choice([1, 2]), 100 + message[2]),
                ]
            case "gathered":
                return [(facts.GATHERED, session)]
            case "ended" if random.random() < 0.3:
                return [(facts.ENDED, session, f"c{session}", None, 5.0)]
            case "unrouted":
                message = self._message()
                return [message, (facts.UNROUTED, 0, message[2])]
            case "produced":
                self.messages += 1
                return [(facts.PRODUCED, 0, random.choice("xyz"), self.messages, float(self.messages))]
            case "unproduced":
                return [(facts.UNPRODUCED, 0, random.choice("xyz"))]
            case "note":
                value = random.choice([None, b"value %d" % random.randrange(9)])
                return [(facts.NOTE, 0, random.choice([b"a", b"b", b"c"]), value)]
            case "routed" if model.unrouted:
                number = random.choice(model.unrouted)
                return [self._queue(session, number), (facts.ROUTED, 0, number)]
            case "release":
                return [(facts.RELEASE, session, packet_id)]
        return []

    def _new_session(self) -> int:
        self.sessions += 1
        return self.sessions

    def _message(self) -> Fact:
        self.messages += 1
        number = self.messages
        return (facts.MESSAGE, 0, number, b"t", b"payload %d" % number, 1, False, b"", None, "p", 1, 1, 2.5)

    def _queue(self, session: int, message: int) -> Fact:
        return (facts.QUEUE, session, message, self.random.randrange(1, 3), b"", self.random.choice(["", "g/t"]))
