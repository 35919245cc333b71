"""What our clients want, told to all brokers in reach and granted once they echo it; what others say, passed on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from tieline.core.timers import Timer, Timers
from tieline.overlay.carrier.durable import Journal, Wanted
from tieline.overlay.counts import Counts
from tieline.overlay.frames.fields import put
from tieline.overlay.frames.frame import Kind, Notice, Topic, frame
from tieline.overlay.interests.entries import Entry, Form, Said, put_said
from tieline.overlay.interests.interests import Granted, Interests
from tieline.overlay.interests.update import InterestUpdate, Phase
from tieline.overlay.links.connections import Connections
from tieline.overlay.links.links import Connection
from tieline.overlay.membership import Membership

#: How long a subscription waits for echoes, and how often they are asked for.
GRANT_S, ASK_S = 5.0, 1.0


class Announcing:
    """Says what changes in our interest, gathers echoes of it, and echoes what others say of theirs."""

    def __init__(  # what it says, and what it is said by
        self,
        broker: int,
        interests: Interests,
        *,
        membership: Membership,
        connections: Connections,
        timers: Timers,
        journal: Journal,
        counts: Counts,
        pass_notice: Callable[[Notice, float], None],
    ) -> None:
        self._broker = broker
        self._interests = interests
        self._membership = membership
        self._connections = connections
        self._timers = timers
        self._journal = journal
        self._counts = counts
        self._pass_notice = pass_notice
        #: Subscriptions that may be acknowledged since the owner last looked.
        self.granted: list[Granted] = []
        #: Told of an echo that is due, with what sends it: whether it has to wait for others who are to know first.
        self.holds_echo: Callable[[int, int, Callable[[float], None]], bool] | None = None
        #: By broker, what goes on to be learned of it.
        self._updates: dict[int, InterestUpdate] = {}
        self._say_timer: Timer | None = None
        self._ask_timer: Timer | None = None

    # -- our own interest

    def change(self, changes: Iterable[tuple[Entry, int, bool]], now: float) -> list[int]:
        """Want some things (True) and others no longer, in one go; numbers by which the former will be granted."""
        numbers = []
        for entry, qos, is_new in changes:
            if is_new:
                numbers.append(self._interests.need(entry, qos, now, now + GRANT_S))
            else:
                self._interests.release(entry, qos, now)
        self.changed()
        self.grant(now)
        return numbers

    def changed(self) -> None:
        """There may be something new to say, by and by."""
        due = self._interests.due
        if due is None:
            return
        if self._say_timer is not None and self._say_timer.when > due:
            self._timers.cancel(self._say_timer)
            self._say_timer = None
        if self._say_timer is None:
            self._say_timer = self._timers.at(due, self.say)

    def say(self, now: float) -> None:
        """Tell all peers what is new."""
        self._timers.cancel(self._say_timer)
        self._say_timer = None
        said = self._interests.say(now)
        if said is not None:
            self._connections.tell_peers(said)
        self.changed()
        self.grant(now)

    def grant(self, now: float) -> None:
        """See which subscriptions need wait no longer."""
        if not self._interests.requests:
            return
        granted, late = self._interests.grant(self._membership.reachable, now)
        self.granted += granted
        self._counts.not_echoed += late
        if self._interests.requests and self._ask_timer is None:
            due = min(now + ASK_S, *(request.deadline for request in self._interests.requests[:1]))
            self._ask_timer = self._timers.at(due, self._ask)

    def _ask(self, now: float) -> None:
        """Ask those for an echo who have not sent it."""
        self._ask_timer = None
        version = put(self._interests.versions[self._broker])
        for broker in sorted(self._interests.missing(self._membership.reachable)):
            self._pass_notice(Notice(Topic.ASK, self._broker, broker, version), now)
        self.grant(now)

    def echoed(self, broker: int, version: int, now: float) -> None:
        """Another broker has committed a version of our interest."""
        self._interests.echoed(broker, version)
        self.grant(now)

    # -- that of others

    def introduce(self, connection: Connection, versions: dict[int, int], now: float) -> None:
        """A peer is there: it hears what it does not know yet, and that precedes all that we shall hear of it."""
        self._interests.begin(now)
        self.say(now)
        for interest in self._interests.newer_than(versions):
            self._connections.tell(connection, interest)

    def learn(self, body: bytes, source: Connection, *, is_fenced: bool) -> None:
        """A peer says what some broker wants; one that is fenced in speaks for itself alone.

        What there is to be learned is the update of that connection, and goes on by :meth:`go_on`.
        """
        update = InterestUpdate(body, self._interests, self._updates)
        said = update.head
        if said.form is Form.REQUEST:
            whole = self._interests.whole(said.broker)
            if whole is not None and whole.version > max(said.version, source.said.get(said.broker, 0)):
                # once for each version: a request is much shorter than its answer
                source.said[said.broker] = whole.version
                self._connections.tell(source, frame(Kind.INTEREST, put_said(whole)))
            return
        if is_fenced and source.link is not None and said.broker != source.link.peer:
            return
        if self._interests.lacks(said):
            self._counts.interests_requested += 1
            self._connections.tell(source, self._request(said.broker))
            return
        if self._interests.is_news(said):
            source.update = update

    def cover(self, *, optimally: bool, now: float) -> None:
        """Say the fewest entries from now on, or take back nothing that is needed."""
        self._interests.cover(optimally=optimally, now=now)
        self.changed()

    def write_off(self, broker: int) -> int:
        """Take a broker to want nothing; how much it wanted."""
        news = self._interests.write_off(broker)
        self._journal.note(Wanted(*news))
        return len(news.removed)

    def go_on(self, update: InterestUpdate, source: Connection) -> int:
        """Go on with what a connection has to learn; how much work that was."""
        work, added, removed = update.step()
        broker = update.broker
        if added or removed:
            version = self._interests.known[broker].version
            self._journal.note(Wanted(broker, version, added, removed))
        if update.phase is Phase.OVER:
            source.update = None
            if update.was_news:
                version = update.head.version
                self._journal.note(Wanted(broker, version, {}, frozenset()), partial(self._echo, broker, version))
                self._connections.tell_peers(frame(Kind.INTEREST, update.body), but=source)
        return work

    def _request(self, broker: int) -> bytes:
        known = self._interests.versions.get(broker, 0)
        return frame(Kind.INTEREST, put_said(Said(broker, Form.REQUEST, known)))

    def asked(self, owner: int, version: int) -> None:
        """Somebody waits for our echo: it gets another one, or we see to it that we hear what it has said."""
        known = self._interests.versions.get(owner, 0)
        if known >= version:
            # once what is known is committed; it was noted before, so it is with the next commit at the latest
            self._journal.note(Wanted(owner, known, {}, frozenset()), partial(self._echo, owner, known))
        else:
            self._counts.interests_requested += 1
            self._connections.tell_peers(self._request(owner))

    def _echo(self, owner: int, version: int, now: float) -> None:
        if self.holds_echo is None or not self.holds_echo(owner, version, partial(self._send_echo, owner, version)):
            self._send_echo(owner, version, now)

    def _send_echo(self, owner: int, version: int, now: float) -> None:
        self._pass_notice(Notice(Topic.ECHO, self._broker, owner, put(version)), now)
