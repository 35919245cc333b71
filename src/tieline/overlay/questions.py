"""Questions that travel: one broker asks others about themselves, and has what they said within a bounded time.

A question and its answer are notices, so they take the shortest way and may get lost: whoever has not answered in time
is named.  What they say is nobody's business here.  They go behind urgent traffic and before the rest.

Who asks much is answered little: each broker that asks has a pace, all of them together have one, few questions wait,
and one is answered in each turn.  A peer with rights is answered within those, by whoever it is joined with and by
nobody behind that one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from tieline.core.timers import Timer, Timers
from tieline.overlay.counts import Counts
from tieline.overlay.frames.fields import Reader, put
from tieline.overlay.frames.frame import Notice, Topic
from tieline.overlay.may import May
from tieline.overlay.membership import Membership

#: How long answers are waited for, unless somebody has more patience; and that at most.
PATIENCE_S: Final = 2.0
LONGEST_PATIENCE_S: Final = 8.0
#: Bytes of a question and of an answer.
LONGEST: Final = 65_536
#: Questions of our own under way.
MOST_ASKED: Final = 16
#: Questions of others that wait to be answered, all of them and those of one broker.
MOST_WAITING: Final = 16
MOST_OF_ONE: Final = 4
#: Questions that are answered per second, and how many at once after a pause: of one broker, and of all together.
PACE: Final = 4.0
BURST: Final = 8.0
PACE_OF_ALL: Final = 20.0

#: Called with what was said, by broker, and those who have said nothing.
Then = Callable[[dict[int, bytes], frozenset[int]], None]
#: Called with the broker that asks, what it may read where that is not everything, and the question.
Answerer = Callable[[int, May | None, bytes], bytes]


class _Asked:
    """A question of ours."""

    __slots__ = ("answers", "missing", "then", "timer")

    def __init__(self, missing: set[int], then: Then) -> None:
        self.missing = missing
        self.then = then
        self.answers: dict[int, bytes] = {}
        self.timer: Timer | None = None


class _Pace:
    """How many questions may be answered now."""

    __slots__ = ("_at", "_burst", "_left", "_per_s")

    def __init__(self, per_s: float, burst: float, now: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self._left = burst
        self._at = now

    def take(self, now: float) -> bool:
        """Whether one more may be answered; if so, it counts."""
        self._left = min(self._burst, self._left + (now - self._at) * self._per_s)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Questions:
    """Those of one broker to others, and those of others to it."""

    def __init__(  # what asking and answering touch
        self,
        broker: int,
        membership: Membership,
        timers: Timers,
        counts: Counts,
        pass_notice: Callable[[Notice, float], None],
        *,
        first: int,
    ) -> None:
        """``first`` is the number of the first question: of another start they are not taken for ours."""
        self._broker = broker
        self._membership = membership
        self._timers = timers
        self._counts = counts
        self._pass_notice = pass_notice
        self._number = first
        self._asked: dict[int, _Asked] = {}
        #: Whoever knows the answers; questions of others are not heard while there is nobody.
        self.answerer: Answerer | None = None
        #: By broker, what it may read, where that is not everything.
        self.rights: Mapping[int, May] = {}
        #: Who asked, the number of the question, and what it is.
        self._waiting: deque[tuple[int, int, bytes]] = deque()
        self._paces: dict[int, _Pace] = {}
        self._pace_of_all: _Pace | None = None

    # -- ours

    def ask(  # whom, what, and how long it may take
        self, question: bytes, brokers: Iterable[int], then: Then, now: float, *, patience_s: float = PATIENCE_S
    ) -> bool:
        """Ask some brokers; ``then`` is called once, in another turn.  False if too many questions are under way."""
        if len(self._asked) >= MOST_ASKED or len(question) > LONGEST:
            return False
        self._number += 1
        number = self._number
        wanted = {broker for broker in brokers if broker != self._broker}
        asked = self._asked[number] = _Asked(wanted, then)
        reachable = [broker for broker in sorted(wanted) if broker in self._membership.reachable]
        asked.timer = self._timers.at(
            now + (min(patience_s, LONGEST_PATIENCE_S) if reachable else 0), partial(self._give_up, number)
        )
        body = put(number) + question
        for broker in reachable:
            self._pass_notice(Notice(Topic.QUESTION, self._broker, broker, body), now)
        return True

    def answered(self, notice: Notice, now: float) -> None:
        """An answer has come; what nobody has asked for is left aside."""
        reader = Reader(notice.body)
        number = reader.integer()
        asked = self._asked.get(number)
        if asked is None or notice.source not in asked.missing or len(notice.body) > LONGEST + 10:
            self._counts.answers_unasked += 1
            return
        asked.missing.discard(notice.source)
        asked.answers[notice.source] = reader.rest()
        if not asked.missing & self._membership.reachable:
            self._timers.cancel(asked.timer)
            asked.timer = self._timers.at(now, partial(self._give_up, number))

    def _give_up(self, number: int, now: float) -> None:
        asked = self._asked.pop(number)
        asked.then(asked.answers, frozenset(asked.missing))

    # -- theirs

    def came(self, notice: Notice, now: float) -> None:
        """Somebody asks; it is answered in a turn of its own, or not at all if too much is asked."""
        reader = Reader(notice.body)
        number, asker = reader.integer(), notice.source
        of_one = sum(waiting[0] == asker for waiting in self._waiting)
        if (
            self.answerer is None
            or len(notice.body) > LONGEST + 10
            or len(self._waiting) >= MOST_WAITING
            or of_one >= MOST_OF_ONE
            or not self._is_in_pace(asker, now)
        ):
            self._counts.questions_refused += 1
            return
        self._waiting.append((asker, number, reader.rest()))
        if len(self._waiting) == 1:
            self._timers.soon(self._answer)

    def may_pass(self, notice: Notice) -> bool:
        """Whether a notice is carried on: whoever is behind this broker does not know what a peer of it may read."""
        if notice.topic is Topic.QUESTION and notice.source in self.rights:
            self._counts.questions_refused += 1
            return False
        return True

    def _is_in_pace(self, asker: int, now: float) -> bool:
        pace = self._paces.get(asker)
        if pace is None:
            pace = self._paces[asker] = _Pace(PACE, BURST, now)
        if self._pace_of_all is None:
            self._pace_of_all = _Pace(PACE_OF_ALL, PACE_OF_ALL, now)
        return pace.take(now) and self._pace_of_all.take(now)

    def _answer(self, now: float) -> None:
        asker, number, question = self._waiting.popleft()
        if self._waiting:
            self._timers.soon(self._answer)
        if self.answerer is None:
            return
        self._counts.questions_answered += 1
        answer = self.answerer(asker, self.rights.get(asker), question)
        self._pass_notice(Notice(Topic.ANSWER, self._broker, asker, put(number) + answer), now)
