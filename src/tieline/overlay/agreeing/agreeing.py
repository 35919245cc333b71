"""Rounds in which joined brokers agree on a plan: nobody knows the whole network, and nobody decides.

Theory of operation
-------------------
Somebody asks one broker to begin.  That goes from neighbour to neighbour, and both ends of each link say how much they
give to it.  All count for the same while what their clients publish, and tell each other the topics: which of them are
wanted where is nobody else's business.  Then each runs a planning node.  Offers, prices and joins travel in the lowest
class, with one batch of offers under way over each link, so that planning takes no more than what is left over.

When the time is over, the ways that lead through a broker are its part of a plan with the epoch of the round.  All have
their part before anybody goes by it, as near as clocks that began with the same word can tell; what is not installed
somewhere takes the shortest way, and is counted.

A round is worth nothing if the network has changed meanwhile: whoever loses a link abandons it, and so do all others.
Of two rounds that began side by side the one with the higher epoch goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from math import inf
from typing import Final, Protocol

from msgspec.structs import replace

from tieline.core.timers import Action, Timers
from tieline.overlay.agreeing.planning_node import Sent
from tieline.overlay.agreeing.protocol import Accepted, Evicted, Join, Leave, Message, Offers, Price, Refused
from tieline.overlay.agreeing.round import CountedTopic, PeerLink, Round
from tieline.overlay.agreeing.words import Abandon, Begin, Heard, Topics, Word, put_word, read_word
from tieline.overlay.frames.frame import Notice, Topic
from tieline.overlay.membership import Membership
from tieline.overlay.plans import PlanError, PlanPiece

#: After the counting, and after agreeing, what is under way has this share of the time for agreeing to come.
_SETTLE: Final = 0.1
#: What others may say before this broker has counted to the end.
_MOST_EARLY: Final = 4_096
_NONE: Final = "none"


class Measures(Protocol):
    """Counts what clients publish and want."""

    def begin(self, for_s: float, now: float) -> None:
        """Count from now on; raises PlanError if it cannot be done."""

    def take(self, now: float) -> tuple[list[CountedTopic], list[str], float, bool]:
        """A part of what was counted: flows, filters of clients, for how long, and whether that was the last part."""
        ...


@dataclass(slots=True)
class Progress:
    """How a round is doing at one broker, for those who ask."""

    epoch: int = 0
    #: counting, agreeing, agreed, in force or abandoned; none before the first.
    state: str = _NONE
    why: str = ""
    requests: int = 0
    unserved: int = 0
    #: What this broker has told its neighbours in it.
    notices: int = 0
    bytes: int = 0
    #: What came of neighbours and was of another round, too early or not to be understood.
    ignored: int = 0


class Agreeing:
    """One broker's part in rounds."""

    def __init__(  # what it goes by, and what it does in the end
        self,
        name: str,
        membership: Membership,
        measures: Measures,
        *,
        timers: Timers,
        send: Callable[[int, Notice, float], None],
        is_end: Callable[[int], bool],
        install: Callable[[PlanPiece, float], None],
        use: Callable[[int, float], None],
        chance: Callable[[], float],
    ) -> None:
        self._name = name
        self._membership = membership
        self._measures = measures
        self._timers = timers
        self._send = send
        self._is_end = is_end
        self._install = install
        self._use = use
        self._chance = chance
        self._round: Round | None = None
        self._flows: list[CountedTopic] = []
        #: By the name of a peer, what is given to its link, in bytes in a second; None for no limit.
        self.capacity: Callable[[str], float | None] = lambda _name: None
        self.progress = Progress()

    # -- rounds begin

    def begin(self, epoch: int, count_s: float, agree_s: float, headroom: float, now: float) -> None:
        """Begin a round; raises PlanError if that is not possible."""
        if self._round is not None:
            raise PlanError(f"round {self._round.epoch} is under way")
        names = self._membership.names
        brokers = sorted({self._name, *(names[broker] for broker in self._membership.reachable)})
        if len(brokers) == 1:
            raise PlanError("no other broker is in reach")
        self._take_part(epoch, Begin(tuple(brokers), count_s, agree_s, headroom, None), now)

    def _take_part(self, epoch: int, begin: Begin, now: float) -> None:
        try:
            found = Round(epoch, begin, self._name)
            self._measures.begin(begin.count_s, now)
        except PlanError as problem:
            self.progress = Progress(epoch, "abandoned", str(problem))
            self._tell_all(epoch, Abandon(f"{self._name}: {problem}"), now)
            return
        self._round, self._flows = found, []
        self.progress = Progress(epoch, "counting")
        for peer in self._peers():
            self._tell(peer, epoch, replace(begin, capacity=self.capacity(self._membership.names[peer])), now)
        self._later(found, now + begin.count_s, self._gather)

    def _later(self, of: Round, when: float, action: Action) -> None:
        """Do something, unless the round is over by then."""
        self._timers.at(when, lambda now: action(now) if self._round is of else None)

    def _peers(self) -> list[int]:
        """Neighbours that take part: one with rights is an end, and does not decide for others."""
        return [peer for peer in sorted(self._membership.neighbours) if not self._is_end(peer)]

    # -- telling

    def _tell(self, peer: int, epoch: int, word: Word, now: float) -> None:
        body = put_word(epoch, word)
        self.progress.notices += 1
        self.progress.bytes += len(body)
        me = self._membership.broker
        self._send(peer, Notice(Topic.AGREEING, me, peer, body, bytes((me,)), level=0), now)

    def _tell_all(self, epoch: int, word: Word, now: float, but: int = 0) -> None:
        for peer in self._peers():
            if peer != but:
                self._tell(peer, epoch, word, now)

    # -- what neighbours say

    def heard(self, notice: Notice, now: float) -> None:
        """A neighbour says something; raises BadFrame."""
        epoch, word = read_word(notice.body)
        peer, current = notice.source, self._round
        if self._is_end(peer) or peer not in self._membership.neighbours:
            self.progress.ignored += 1
            return
        if isinstance(word, Begin) and epoch > max(self.progress.epoch, current.epoch if current else 0):
            if self._name in word.brokers:
                self._take_part(epoch, word, now)
            current = self._round
        if current is None or epoch != current.epoch:
            self.progress.ignored += 1
            return
        place = current.place(self._membership.names[peer])
        if place is None:
            return
        if isinstance(word, Begin):
            current.capacities[place] = inf if word.capacity is None else word.capacity
        elif isinstance(word, Topics):
            self._named(current, peer, word, now)
        elif isinstance(word, Abandon):
            self._abandon(word.why, now, but=peer)
        elif isinstance(word, Heard):
            current.busy.discard(place)
        else:
            self._planning(current, peer, place, word, now)

    def _named(self, current: Round, peer: int, word: Topics, now: float) -> None:
        if word.origin < len(current.begin.brokers) and current.name_topics(word.origin, word.topics):
            self._tell_all(current.epoch, word, now, but=peer)
            current.want(word.origin, word.topics, current.virtual(now))

    def _planning(self, current: Round, peer: int, place: int, message: Message, now: float) -> None:
        if isinstance(message, Offers):
            self._tell(peer, current.epoch, Heard(), now)
        if not current.knows(_topics_of(message)):
            self.progress.ignored += 1
        elif current.node is None:
            if len(current.early) < _MOST_EARLY:
                current.early.append((place, message))
        elif place in current.node.ports:
            self._pass_on(current, current.node.receive(place, message, current.virtual(now)), now)

    def _pass_on(self, current: Round, sent: Iterable[Sent], now: float) -> None:
        assert current.node is not None
        for place, message in sent:
            if place == current.me:
                self._pass_on(current, current.node.receive(place, message, current.virtual(now)), now)
                continue
            peer = self._peer_at(current, place)
            if peer is None:
                continue
            if isinstance(message, Offers):
                current.busy.add(place)
            self._tell(peer, current.epoch, message, now)

    def _peer_at(self, current: Round, place: int) -> int | None:
        name = current.begin.brokers[place]
        return next((peer for peer in self._peers() if self._membership.names[peer] == name), None)

    # -- counting, agreeing, and the end

    def _gather(self, now: float) -> None:
        """Take what was counted, a part in each turn."""
        current = self._round
        assert current is not None
        try:
            flows, filters, seconds, is_last = self._measures.take(now)
        except PlanError as problem:
            self._abandon(f"{self._name}: {problem}", now)
            return
        self._flows += flows
        current.wants(filters)
        if not is_last:
            self._timers.soon(lambda later: self._gather(later) if self._round is current else None)
            return
        for word in current.counted(self._flows, seconds):
            self._tell_all(current.epoch, word, now)
        self._flows = []
        self._later(current, now + _SETTLE * current.begin.agree_s, self._start)

    def _start(self, now: float) -> None:
        current = self._round
        assert current is not None
        states, me = self._membership.states, self._membership.broker
        links = []
        for peer, cost in self._membership.neighbours.items():
            place = current.place(self._membership.names[peer])
            if place is not None and not self._is_end(peer):
                given = self.capacity(self._membership.names[peer])
                theirs = states[peer].neighbours.get(me, cost) if peer in states else cost
                links.append(PeerLink(place, float(max(cost, theirs)), inf if given is None else given))
        current.start(links, self._chance, now)
        self.progress.state = "agreeing"
        early, current.early = current.early, []
        assert current.node is not None
        for place, message in early:
            if place in current.node.ports:
                self._pass_on(current, current.node.receive(place, message, 0.0), now)
        self._wake(now)

    def _wake(self, now: float) -> None:
        current = self._round
        assert current is not None
        if current.is_over(now):
            self._finish(current, now)
            return
        self._pass_on(current, current.wake(now), now)
        self.progress.requests, self.progress.unserved = current.requests
        self._later(current, now + current.pause_s(self._chance()), self._wake)

    def _finish(self, current: Round, now: float) -> None:
        self.progress.requests, self.progress.unserved = current.requests
        try:
            self._install(current.piece(), now)
        except PlanError as problem:
            self._abandon(f"{self._name}: {problem}", now)
            return
        self.progress.state = "agreed"
        self._later(current, now + max(1.0, _SETTLE * current.begin.agree_s), self._go)

    def _go(self, now: float) -> None:
        current, self._round = self._round, None
        assert current is not None
        self.progress.state = "in force"
        self._use(current.epoch, now)

    # -- links

    def down(self, peer: int, now: float) -> None:
        """The link to a peer is down: what was agreed about it is worth nothing."""
        current = self._round
        if current is not None and current.place(self._membership.names[peer]) is not None and not self._is_end(peer):
            self._abandon(f"{self._name} has lost the link to {self._membership.names[peer]}", now)

    def _abandon(self, why: str, now: float, but: int = 0) -> None:
        current, self._round = self._round, None
        assert current is not None
        self.progress.state, self.progress.why = "abandoned", why[:400]
        self._tell_all(current.epoch, Abandon(why[:400]), now, but=but)

    def shown(self) -> dict[str, object]:
        """How the last round is doing here."""
        return asdict(self.progress)


def _topics_of(message: Message) -> tuple[int, ...]:
    if isinstance(message, Offers):
        return tuple(offer.topic for offer in message.offers)
    if isinstance(message, Price):
        return ()
    assert isinstance(message, Join | Accepted | Refused | Leave | Evicted)
    return (message.topic,)
