"""From a topic to its receivers: all subscriptions, and a memory of what each topic matched.

Theory of operation
-------------------
A filter's subscribers live in one :class:`Bucket`; a tree finds the buckets that match a topic.  The result, folded to
one :class:`Grant` per session, is kept as a :class:`Route` under the topic's bytes, so that the hot path needs one
dictionary lookup.  When the subscribers of a filter change, exactly the remembered topics that this filter matches are
forgotten (found in a tree of names), so churn elsewhere costs nothing.  A topic whose bytes are remembered has been
validated.

Subscriptions with a condition (:mod:`tieline.core.routing.conditional`) are kept apart from the others.  A route on which there are
some knows their conditions, and :mod:`tieline.core.routing.content_match` makes of it the route of one message.

Overlapping subscriptions of one client are folded: one copy, the highest QoS, every subscription identifier, the
retain flag kept if one of them asks for it ([MQTT-3.3.4-2], [MQTT-3.3.4-3]; 3.3.4 leaves the number of copies open).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING

from tieline.conf.schema import Settings
from tieline.core.routing.conditional import Askers, Asking
from tieline.core.routing.groups import Group
from tieline.core.routing.route_conditions import Narrowed, Sifting
from tieline.core.session import Grant
from tieline.match.events import Events
from tieline.match.filters import FilterTree
from tieline.match.index import AdaptiveIndex
from tieline.match.names import NameTree, tree_bytes
from tieline.wire.frames import encode_varint
from tieline.wire.topics import split_share

if TYPE_CHECKING:
    from tieline.core.ports import Judge
    from tieline.core.routing.classes import Classes
    from tieline.core.routing.heat import HeatTable
    from tieline.core.session import Held, Session
    from tieline.match.events import EventType

#: Property 11, Subscription Identifier.
_IDENTIFIER = b"\x0b"
#: Bytes that one remembered topic may cost on average; most take less.
MEAN_COST = 1_024
#: What one receiver adds to the cost of a remembered topic.
RECEIVER_BYTES = 16
#: More changed topics than this are forgotten by forgetting all: quicker, and they are found again when they are used.
MANY = 2_000
#: So is everything when it takes longer than this to find what has changed.
MANY_PAUSES = 16
#: Levels of a filter that weigh as much as one plain subscription.
LEVELS_PER_WEIGHT = 8


def weight_of(filter_: str) -> int:
    """How much a subscription counts towards the limits: deep filters take more memory than plain ones."""
    return 1 + filter_.count("/") // LEVELS_PER_WEIGHT + len(filter_) // 1_024


class Route:
    """Who gets the messages of a topic."""

    __slots__ = (
        "_before",
        "_period",
        "_recent",
        "grants",
        "groups",
        "has_receivers",
        "heat",
        "is_given",
        "is_sifted",
        "is_simple",
        "level",
        "sifting",
    )

    def __init__(
        self, grants: tuple[Grant, ...], groups: tuple[Group, ...], level: int, sifting: Sifting | None = None
    ) -> None:
        self.grants = grants
        self.groups = groups
        #: What has to be asked of a message before its receivers are known; None when they are.
        self.sifting = sifting
        self.is_sifted = sifting is not None
        #: Whether anybody may get a message.
        self.has_receivers = bool(grants or groups or sifting)
        #: Live subscribers of the topic, as the heat paper counts them; a route is forgotten when they change.
        self.heat: float = len(grants) + sum(len(group.members) for group in groups)
        #: The heat was given from outside, and deliveries do not add to it.
        self.is_given = False
        if sifting is not None:
            self.heat += sum(map(len, sifting.tables))
        #: Deliveries in the current and in the last period, for a heat that counts them.
        self._recent = self._before = self._period = 0
        #: The level that topic rules give; -1 when none does.
        self.level = level
        #: Neither No Local nor shared subscriptions nor conditions: every grant gets every message.
        self.is_simple = not (groups or self.is_sifted or any(grant.no_local or grant.marks for grant in grants))

    def given(self, heat: float) -> Route:
        """The same route for a topic with a heat from outside."""
        route = copy(self)
        route.heat = heat
        route.is_given = True
        return route

    def heat_with(self, weight: float, messages: int, period: int) -> float:
        """Subscribers plus weighted deliveries of the last whole period; counts these messages."""
        if period != self._period:
            self._before = self._recent if period == self._period + 1 else 0
            self._recent = 0
            self._period = period
        self._recent += messages * len(self.grants)
        return self.heat + int(weight * self._before)


class Bucket:
    """The subscribers of one filter."""

    __slots__ = ("askers", "groups", "members", "routes")

    def __init__(self) -> None:
        self.members: dict[Session, Held] = {}
        self.groups: dict[str, Group] = {}
        #: Those who ask for conditions; None when nobody does.
        self.askers: Askers | None = None
        #: The routes of topics that match this filter and no other, by level and by event type where there are
        #: conditions; made when they are needed.
        self.routes: dict[tuple[int, EventType | None], Route] = {}


def grant_for(session: Session, subscriptions: list[Held]) -> Grant:
    """Fold the subscriptions of one session that match one topic."""
    grant = Grant(
        session,
        max(held.options.qos for held in subscriptions),
        identifiers=b"".join(_IDENTIFIER + encode_varint(held.identifier) for held in subscriptions if held.identifier),
        keep_retain=any(held.options.retain_as_published for held in subscriptions),
        no_local=any(held.options.no_local for held in subscriptions),
    )
    if grant.no_local:
        others = [held for held in subscriptions if not held.options.no_local]
        grant.others = grant_for(session, others) if others else None
    return grant


def folded(session: Session, subscriptions: list[Held]) -> Grant:
    """The grant of one subscription is the same on every route; only several together need one of their own."""
    if len(subscriptions) > 1:
        return grant_for(session, subscriptions)
    held = subscriptions[0]
    if held.grant is None:
        held.grant = grant_for(session, subscriptions)
    return held.grant


class Routes:
    """All subscriptions of a broker."""

    __slots__ = (
        "_buckets",
        "_classes",
        "_cost",
        "_counts_deliveries",
        "_events",
        "_heat",
        "_limit",
        "_max_cost",
        "_names",
        "_tend",
        "asking",
        "count",
        "judge",
        "known",
        "named",
        "narrowed",
        "resets",
        "shared",
        "weight",
        "work",
    )

    def __init__(
        self,
        limit: int,
        classes: Classes | None = None,
        events: Events | None = None,
        *,
        tend: Callable[[AdaptiveIndex], None] | None = None,
        counts_deliveries: bool = False,
    ) -> None:
        self._classes = classes
        self._events = Events(Settings()) if events is None else events
        #: Called with an index that should be made anew.
        self._tend = tend
        #: Routes count what they deliver, so each topic needs one of its own.
        self._counts_deliveries = counts_deliveries
        #: Heat from outside; None while there is none.
        self._heat: HeatTable | None = None
        #: Decides which sessions may read a topic; None when all may.  :meth:`reset` when its mind has changed.
        self.judge: Judge | None = None
        #: Topics of the broker's own whose values name another topic: who may not read that one does not get them.
        self.named: dict[str, str] = {}
        self._buckets: FilterTree[Bucket] = FilterTree()
        #: Remembered routes by topic bytes; all of them are also in ``_names``.
        self.known: dict[bytes, Route] = {}
        #: What is remembered of messages with conditions on their topic.
        self.narrowed = Narrowed()
        self._names: NameTree[bytes] = NameTree()
        self._limit = limit
        #: The cost of all remembered topics, bounded like their number: deep or long ones count for more.
        self._cost = 0
        self._max_cost = limit * MEAN_COST
        #: The sum of the weights of all subscriptions.
        self.weight = 0
        #: The number of subscriptions, shared ones included.
        self.count = 0
        #: How many of them are shared, and how many have a condition.
        self.shared = 0
        self.asking = 0
        #: Nodes visited while looking for routes, ever growing.
        self.work = 0
        #: How often the memory was full and emptied.
        self.resets = 0

    def find(self, topic: str, key: bytes) -> Route:
        """The route of a valid topic that is not remembered."""
        buckets = self._buckets.match(topic)
        rule = self._classes.level(topic) if self._classes is not None else None
        level = -1 if rule is None else rule
        self.work += self._buckets.visited
        askers = [bucket.askers for bucket in buckets if bucket.askers is not None]
        is_birth = self._events.is_birth(topic)
        event = self._events.of(topic) if askers or is_birth else None
        may_read = self.readers(topic)
        if len(buckets) == 1 and not self._counts_deliveries and not is_birth and may_read is None:
            routes = buckets[0].routes
            route = routes.get((level, event))
            if route is None:
                route = routes[level, event] = self._fold(buckets, level, askers, event)
        else:
            route = self._fold(buckets, level, askers, event, is_birth=is_birth, may_read=may_read)
        if self._heat is not None:
            heat = self._heat.of(topic)
            self.work += self._heat.visited
            if heat is not None:
                route = route.given(heat)
        # what only the broker publishes is not remembered: a remembered topic is one that clients may publish to
        if self._limit and not topic.startswith("$SYS/"):
            if len(self.known) >= self._limit or self._cost > self._max_cost:
                self.reset()
                self.resets += 1
            self.known[key] = route
            self._names.put(topic, key)
            self._cost += tree_bytes(topic) + RECEIVER_BYTES * len(route.grants)
        return route

    def buckets(self, topic: str) -> list[Bucket]:
        """The subscribers of every filter that matches a topic; nothing is remembered of the question."""
        return self._buckets.match(topic)

    def readers(self, topic: str) -> Callable[[Session], bool] | None:
        """Who may read a topic; None when everybody may."""
        if self.judge is None:
            return None
        return lambda session: self.may_read(session, topic)

    def may_read(self, session: Session, topic: str) -> bool:
        """Whether messages of a topic may be sent to a session."""
        judge = self.judge
        if judge is None:
            return True
        named = self.named.get(topic)
        return judge.may("read", session.user, session.client_id, topic) and (
            named is None or judge.may("read", session.user, session.client_id, named)
        )

    def classify(self, classes: Classes) -> None:
        """Other topic rules give levels from now on."""
        self._classes = classes
        self.reset()

    def warm(self, heat: HeatTable | None) -> None:
        """Another table gives heat from now on, or none does."""
        self._heat = heat
        self.reset()

    def reset(self) -> None:
        """Forget which topic goes to whom; it is found again when it is used."""
        self.known.clear()
        self._names.clear()
        self._cost = 0

    @staticmethod
    def _fold(
        buckets: Sequence[Bucket],
        level: int,
        askers: Sequence[Askers],
        event: EventType | None,
        *,
        is_birth: bool = False,
        may_read: Callable[[Session], bool] | None = None,
    ) -> Route:
        matched: dict[Session, list[Held]] = {}
        groups: list[Group] = []
        for bucket in buckets:
            for session, held in bucket.members.items():
                if may_read is None or may_read(session):
                    matched.setdefault(session, []).append(held)
            parts = (group.readers(may_read) for group in bucket.groups.values())
            groups.extend(group for group in parts if group.members)
        sifting: Sifting | None = None
        if event is not None:
            tables = tuple(each.table(event) for each in askers)
            sifting = Sifting(event, tables, matched, is_birth=is_birth, may_read=may_read)
        grants = tuple(folded(session, held) for session, held in matched.items())
        return Route(grants, tuple(groups), level, sifting)

    def subscribe(self, session: Session, share: str | None, filter_: str, held: Held) -> bool:
        """Add or replace a subscription; True when it is new."""
        bucket = self._buckets.get(filter_)
        if bucket is None:
            bucket = Bucket()
            self._buckets.put(filter_, bucket)
        if isinstance(held, Asking):
            self._ask(bucket, held)
            return True
        if share is None:
            is_new = session not in bucket.members
            bucket.members[session] = held
        else:
            group = bucket.groups.get(share)
            if group is None:
                group = bucket.groups[share] = Group(share, filter_)
            is_new = session not in group.members
            grant = grant_for(session, [held])
            grant.group = group
            group.members[session] = grant
        if is_new:
            self.count += 1
            self.shared += share is not None
            self.weight += weight_of(filter_)
        self._forget(filter_, bucket)
        return is_new

    def _ask(self, bucket: Bucket, asking: Asking) -> None:
        """Add a subscription with a condition; one that it replaces has been removed."""
        if asking.share is not None:
            asking.group = bucket.groups.setdefault(asking.share, Group(asking.share, asking.filter))
            asking.group.askers += 1
            self.shared += 1
        is_first = bucket.askers is None
        if bucket.askers is None:
            bucket.askers = Askers(asking.filter, self._events)
        bucket.askers.add(asking)
        self._look_after(bucket.askers)
        self.count += 1
        self.asking += 1
        self.weight += weight_of(asking.options.filter)
        if is_first:
            # routes know the conditions on their filters, but not yet that there are any on this one
            self._forget(asking.filter, bucket)

    def _look_after(self, askers: Askers) -> None:
        if self._tend is not None:
            for table in askers.tables():
                if table.index is not None and table.index.wants_rebuild():
                    self._tend(table.index)

    def group(self, name: str, filter_: str) -> Group | None:
        """The members of a shared subscription, if there are any."""
        bucket = self._buckets.get(filter_)
        return None if bucket is None else bucket.groups.get(name)

    def cancel(self, session: Session, written: str, held: Held) -> None:
        """Remove a subscription, by the filter as the client wrote it."""
        if isinstance(held, Asking):
            self._dismiss(held)
        else:
            self.unsubscribe(session, *split_share(written))

    def _dismiss(self, asking: Asking) -> None:
        """Remove a subscription with a condition."""
        bucket = self._buckets.get(asking.filter)
        askers = None if bucket is None else bucket.askers
        assert bucket is not None
        assert askers is not None
        askers.remove(asking)
        self._look_after(askers)
        group = asking.group
        if group is not None:
            group.askers -= 1
            self.shared -= 1
            group.served.pop(asking.session, None)
            if not group.members and not group.askers:
                del bucket.groups[group.name]
        self.count -= 1
        self.asking -= 1
        self.weight -= weight_of(asking.options.filter)
        if not askers:
            bucket.askers = None
            self._leave(asking.filter, bucket)

    def unsubscribe(self, session: Session, share: str | None, filter_: str) -> bool:
        """Remove a subscription without a condition; False when there was none."""
        bucket = self._buckets.get(filter_)
        if bucket is None:
            return False
        if share is None:
            if bucket.members.pop(session, None) is None:
                return False
        else:
            group = bucket.groups.get(share)
            if group is None or group.members.pop(session, None) is None:
                return False
            group.served.pop(session, None)
            if not group.members and not group.askers:
                del bucket.groups[share]
        self.count -= 1
        self.shared -= share is not None
        self.weight -= weight_of(filter_)
        self._leave(filter_, bucket)
        return True

    def _leave(self, filter_: str, bucket: Bucket) -> None:
        """A subscriber has gone: the bucket too, if it was the last one."""
        if not bucket.members and not bucket.groups and bucket.askers is None:
            self._buckets.remove(filter_)
        self._forget(filter_, bucket)

    def _forget(self, filter_: str, bucket: Bucket) -> None:
        """Drop the remembered routes that this filter takes part in."""
        bucket.routes.clear()
        if "+" in filter_ or "#" in filter_:
            keys: list[bytes] = []
            pauses = 0
            for key in self._names.match(filter_):
                if key is None:
                    pauses += 1
                else:
                    keys.append(key)
                if pauses > MANY_PAUSES or len(keys) > MANY:
                    self.reset()
                    return
            for key in keys:
                self._forget_one(key)
        else:
            self._forget_one(filter_.encode())

    def _forget_one(self, key: bytes) -> None:
        route = self.known.pop(key, None)
        if route is not None:
            topic = key.decode()
            self._names.remove(topic)
            self._cost -= tree_bytes(topic) + RECEIVER_BYTES * len(route.grants)
