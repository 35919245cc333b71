"""From a topic to its receivers: all subscriptions, and a memory of what each topic matched.

Theory of operation
-------------------
A filter's subscribers live in one :class:`Bucket`; a tree finds the buckets that match a topic.  The result, folded to
one :class:`~tieline.core.receiver.Grant` per receiver, is kept as a :class:`Route` under the topic's bytes, so that the
hot path needs one dictionary lookup.  When the subscribers of a filter change, exactly the remembered topics that this
filter matches are forgotten (found in a tree of names), so churn elsewhere costs nothing.  A topic whose bytes are
remembered has been validated.

Subscriptions with a condition (:mod:`tieline.core.routing.conditional`) are kept apart from the others.  A route on
which there are some knows their conditions, and :mod:`tieline.core.routing.content_match` makes of it the route of one
message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from tieline.conf.schema import Settings
from tieline.core.ports import ALONE, Judge, Neighbours
from tieline.core.receiver import ActiveSubscription, Receiver
from tieline.core.routing.classes import NO_RULE, Classes
from tieline.core.routing.conditional import ConditionalSubscriptions, MessageRoutes
from tieline.core.routing.groups import Group
from tieline.core.routing.heat_table import HeatTable
from tieline.core.routing.route import ConditionalSubscription, Route, RouteConditions, folded, grant_for, weight_of
from tieline.core.work import Work
from tieline.match.events import Events, EventType
from tieline.match.index import AdaptiveIndex
from tieline.match.trees import FilterTree, NameTree, tree_bytes
from tieline.match.where import Predicate
from tieline.wire.errors import ProtocolError
from tieline.wire.fields import decode_utf8
from tieline.wire.topics import check_name, split_share

#: Topics that only the broker publishes (4.7.2).
RESERVED = "$SYS/"

#: What looking for the receivers of a topic counts towards the work of a turn, beside the filters that are looked at.
WORK_PER_TOPIC = 50
#: What each of its receivers counts in addition, and what it counts to judge whether one may read it.
WORK_PER_RECEIVER = 2
WORK_PER_READER = 15
#: Bytes that one remembered topic may cost on average; most take less.
MEAN_COST = 1_024
#: What one receiver adds to the cost of a remembered topic.
RECEIVER_BYTES = 16
#: More changed topics than this are forgotten by forgetting all: quicker, and they are found again when they are used.
MANY = 2_000
#: So is everything when it takes longer than this to find what has changed.
MANY_PAUSES = 16


class Bucket:
    """The subscribers of one filter."""

    __slots__ = ("conditionals", "groups", "members", "routes")

    def __init__(self) -> None:
        self.members: dict[Receiver, ActiveSubscription] = {}
        self.groups: dict[str, Group] = {}
        #: Those who ask for conditions; None when nobody does.
        self.conditionals: ConditionalSubscriptions | None = None
        #: The routes of topics that match this filter and no other, by level and by event type where there are
        #: conditions; made when they are needed.
        self.routes: dict[tuple[int, EventType | None], Route] = {}


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
        "conditional",
        "count",
        "judge",
        "known",
        "message_routes",
        "named",
        "neighbours",
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
        work: Work | None = None,
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
        #: Decides which receivers may read a topic; None when all may.  :meth:`reset` when its mind has changed.
        self.judge: Judge | None = None
        #: Topics of the broker's own whose values name another topic: who may not read that one does not get them.
        self.named: dict[str, str] = {}
        self._buckets: FilterTree[Bucket] = FilterTree()
        #: Remembered routes by topic bytes; all of them are also in ``_names``.
        self.known: dict[bytes, Route] = {}
        #: What is remembered of messages with conditions on their topic.
        self.message_routes = MessageRoutes()
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
        self.conditional = 0
        #: What looking for routes costs is counted here.
        self.work = Work() if work is None else work
        #: How often the memory was full and emptied.
        self.resets = 0
        #: Told of what clients of this broker want.
        self.neighbours: Neighbours = ALONE

    def find(self, topic: str, key: bytes) -> Route:
        """The route of a valid topic that is not remembered."""
        buckets = self._buckets.match(topic)
        level = NO_RULE if self._classes is None else self._classes.level(topic)
        self.work.did(WORK_PER_TOPIC + self._buckets.visited)
        conditionals = [bucket.conditionals for bucket in buckets if bucket.conditionals is not None]
        is_birth = self._events.is_birth(topic)
        event = self._events.of(topic) if conditionals or is_birth else None
        may_read = self.readers(topic)
        if len(buckets) > 1 or may_read is not None:
            receivers = sum([len(bucket.members) for bucket in buckets])
            self.work.did(receivers * (WORK_PER_RECEIVER if may_read is None else WORK_PER_READER))
        if len(buckets) == 1 and not self._counts_deliveries and not is_birth and may_read is None:
            routes = buckets[0].routes
            route = routes.get((level, event))
            if route is None:
                route = routes[level, event] = self._fold(buckets, level, conditionals, event)
        else:
            route = self._fold(buckets, level, conditionals, event, is_birth=is_birth, may_read=may_read)
        if self._heat is not None:
            heat = self._heat.of(topic)
            self.work.did(self._heat.visited)
            if heat is not None:
                route = route.given(heat)
        # what only the broker publishes is not remembered: a remembered topic is one that clients may publish to
        if self._limit and not topic.startswith(RESERVED):
            if len(self.known) >= self._limit or self._cost > self._max_cost:
                self.reset()
                self.resets += 1
            self.known[key] = route
            self._names.put(topic, key)
            self._cost += tree_bytes(topic) + RECEIVER_BYTES * len(route.grants)
        return route

    def learn(self, data: bytes, start: int, end: int, max_levels: int) -> Route | None:
        """The route of the topic that stands in these bytes behind its length and is not remembered yet.

        None where it cannot be: the topic is not one that clients may publish to, or nothing is remembered at all.
        """
        try:
            topic, _ = decode_utf8(data, start - 2, end)
            check_name(topic, max_levels)
        except ProtocolError:
            return None
        if not self._limit or topic.startswith(RESERVED):
            return None
        return self.find(topic, data[start:end])

    def look(self, topic: str, key: bytes, most: int, *, is_whole: bool = False) -> Route:
        """The route that a message of a valid topic would take now, without its heat; nothing is remembered of it.

        Of receivers ``most`` are on it, and as many of the conditions of each filter that were never asked about
        messages of such a topic: there may be a hundred thousand.  A route that is whole, since a message takes it, has
        all receivers.
        """
        route = self.known.get(key)
        if route is not None:
            few = Route(route.grants[:most], route.groups, route.level, route.conditions)
            return route if is_whole or len(route.grants) <= most else few
        buckets = self._buckets.match(topic)
        conditionals = [bucket.conditionals for bucket in buckets if bucket.conditionals is not None]
        is_birth = self._events.is_birth(topic)
        event = self._events.of(topic) if conditionals or is_birth else None
        may_read = self.readers(topic)
        level = self.level_of(topic)
        return self._fold(
            buckets, level, conditionals, event, is_birth=is_birth, may_read=may_read, most=most, is_whole=is_whole
        )

    def level_of(self, topic: str) -> int:
        """The level that topic rules give a topic; :data:`NO_RULE` when none does."""
        return NO_RULE if self._classes is None else self._classes.level(topic)

    def of(self, topic: bytes) -> Route:
        """The route of a topic that was valid when it was first used."""
        return self.known.get(topic) or self.find(topic.decode(), topic)

    def buckets(self, topic: str) -> list[Bucket]:
        """The subscribers of every filter that matches a topic; nothing is remembered of the question."""
        return self._buckets.match(topic)

    def conditions_on(self, filter_: str) -> ConditionalSubscriptions | None:
        """The subscriptions with a condition on exactly this filter; None if there is none."""
        bucket = self._buckets.get(filter_)
        return None if bucket is None else bucket.conditionals

    def readers(self, topic: str) -> Callable[[Receiver], bool] | None:
        """Who may read a topic; None when everybody may."""
        if self.judge is None:
            return None
        return lambda receiver: self.may_read(receiver, topic)

    def may_read(self, receiver: Receiver, topic: str) -> bool:
        """Whether messages of a topic may be sent to a receiver."""
        judge = self.judge
        if judge is None or receiver.is_broker:
            # another broker asks who of its own clients may read it
            return True
        named = self.named.get(topic)
        return judge.may("read", receiver.user, receiver.client_id, topic) and (
            named is None or judge.may("read", receiver.user, receiver.client_id, named)
        )

    def classify(self, classes: Classes) -> None:
        """Other topic rules give levels from now on."""
        self._classes = classes
        self.reset()

    def warm(self, heat: HeatTable | None) -> None:
        """Another table gives heat from now on, or none does."""
        self._heat = heat
        self.reset()

    @property
    def remembered_bytes(self) -> int:
        """What is remembered of topics and messages takes so much, about."""
        return self._cost + self.message_routes.bytes

    def reset(self) -> None:
        """Forget which topic goes to whom; it is found again when it is used."""
        self.known.clear()
        self._names.clear()
        self._cost = 0

    @staticmethod
    def _fold(  # what is found, and how much of it whoever asks wants to know
        buckets: Sequence[Bucket],
        level: int,
        conditionals: Sequence[ConditionalSubscriptions],
        event: EventType | None,
        *,
        is_birth: bool = False,
        may_read: Callable[[Receiver], bool] | None = None,
        most: int | None = None,
        is_whole: bool = True,
    ) -> Route:
        """One grant per receiver, or for ``most`` of them; with ``most``, no table of conditions is made that stays."""
        matched: dict[Receiver, list[ActiveSubscription]] = {}
        groups: list[Group] = []
        if most is not None and not is_whole:
            # of each filter so many are enough: whoever is left out is behind these
            looked = dict.fromkeys([each for bucket in buckets for each in islice(bucket.members, most)])
            for receiver in islice(looked, most):
                if may_read is None or may_read(receiver):
                    matched[receiver] = [bucket.members[receiver] for bucket in buckets if receiver in bucket.members]
        for bucket in buckets:
            for receiver, subscription in bucket.members.items() if most is None or is_whole else ():
                if may_read is None or may_read(receiver):
                    matched.setdefault(receiver, []).append(subscription)
            for group in bucket.groups.values():
                readers = group.readers(may_read)
                if readers.has_receivers:
                    groups.append(readers)
        conditions: RouteConditions | None = None
        if event is not None:
            tables = tuple(each.table(event) if most is None else each.look(event, most) for each in conditionals)
            remote = sum([each.remote for each in conditionals])
            conditions = RouteConditions(event, tables, matched, is_birth=is_birth, may_read=may_read, remote=remote)
        grants = tuple([folded(receiver, subscriptions) for receiver, subscriptions in matched.items()])
        return Route(grants, tuple(groups), level, conditions)

    def subscribe(self, receiver: Receiver, share: str | None, filter_: str, subscription: ActiveSubscription) -> bool:
        """Add or replace a subscription; True when it is new."""
        bucket = self._buckets.get(filter_)
        if bucket is None:
            bucket = Bucket()
            self._buckets.put(filter_, bucket)
        if isinstance(subscription, ConditionalSubscription):
            self._add_conditional(bucket, subscription)
            return True
        if share is None:
            is_new = receiver not in bucket.members
            bucket.members[receiver] = subscription
        else:
            group = bucket.groups.get(share)
            if group is None:
                group = bucket.groups[share] = Group(share, filter_)
            members = group.spanning.grants if receiver.is_broker else group.members
            is_new = receiver not in members
            grant = grant_for(receiver, [subscription])
            grant.share = group.share
            members[receiver] = grant
        if is_new and not receiver.is_broker:
            self.count += 1
            self.shared += share is not None
            self.weight += weight_of(filter_)
            self.neighbours.began(filter_, None, share)
        self._forget(filter_, bucket)
        return is_new

    def _add_conditional(self, bucket: Bucket, conditional: ConditionalSubscription) -> None:
        """Add a subscription with a condition; one that it replaces has been removed."""
        if conditional.share is not None:
            conditional.group = bucket.groups.setdefault(
                conditional.share, Group(conditional.share, conditional.filter)
            )
            conditional.group.joined(conditional.receiver)
        is_first = bucket.conditionals is None
        if bucket.conditionals is None:
            bucket.conditionals = ConditionalSubscriptions(conditional.filter, self._events)
        self.work.did(bucket.conditionals.add(conditional))
        self._look_after(bucket.conditionals)
        if not conditional.receiver.is_broker:
            self.count += 1
            self.conditional += 1
            self.shared += conditional.share is not None
            self.weight += weight_of(conditional.options.filter)
            self.neighbours.began(conditional.filter, shown(conditional.predicate), conditional.share)
        if is_first:
            # routes know the conditions on their filters, but not yet that there are any on this one
            self._forget(conditional.filter, bucket)

    def _look_after(self, conditionals: ConditionalSubscriptions) -> None:
        if self._tend is not None:
            for table in conditionals.tables():
                if table.index is not None and table.index.wants_rebuild():
                    self._tend(table.index)

    def group(self, name: str, filter_: str) -> Group | None:
        """The members of a shared subscription, if there are any."""
        bucket = self._buckets.get(filter_)
        return None if bucket is None else bucket.groups.get(name)

    def cancel(self, receiver: Receiver, written: str, subscription: ActiveSubscription) -> None:
        """Remove a subscription, by the filter as the client wrote it."""
        if isinstance(subscription, ConditionalSubscription):
            self._dismiss(subscription)
        else:
            self.unsubscribe(receiver, *split_share(written))

    def _dismiss(self, conditional: ConditionalSubscription) -> None:
        """Remove a subscription with a condition."""
        bucket = self._buckets.get(conditional.filter)
        conditionals = None if bucket is None else bucket.conditionals
        assert bucket is not None
        assert conditionals is not None
        conditionals.remove(conditional)
        self._look_after(conditionals)
        group = conditional.group
        if group is not None:
            group.left(conditional.receiver)
            if group.is_over:
                del bucket.groups[group.share.name]
        if not conditional.receiver.is_broker:
            self.count -= 1
            self.conditional -= 1
            self.shared -= conditional.share is not None
            self.weight -= weight_of(conditional.options.filter)
            self.neighbours.ended(conditional.filter, shown(conditional.predicate), conditional.share)
        if not conditionals:
            bucket.conditionals = None
            self._leave(conditional.filter, bucket)

    def unsubscribe(self, receiver: Receiver, share: str | None, filter_: str) -> bool:
        """Remove a subscription without a condition; False when there was none."""
        bucket = self._buckets.get(filter_)
        if bucket is None:
            return False
        if share is None:
            if bucket.members.pop(receiver, None) is None:
                return False
        else:
            group = bucket.groups.get(share)
            if group is None:
                return False
            members = group.spanning.grants if receiver.is_broker else group.members
            if members.pop(receiver, None) is None:
                return False
            group.served.pop(receiver, None)
            if group.is_over:
                del bucket.groups[share]
        if not receiver.is_broker:
            self.count -= 1
            self.shared -= share is not None
            self.weight -= weight_of(filter_)
            self.neighbours.ended(filter_, None, share)
        self._leave(filter_, bucket)
        return True

    def _leave(self, filter_: str, bucket: Bucket) -> None:
        """A subscriber has gone: the bucket too, if it was the last one."""
        if not bucket.members and not bucket.groups and bucket.conditionals is None:
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


def shown(predicate: Predicate) -> str | None:
    """The condition that other brokers can ask in our stead; None where they must send everything.

    What was delivered before is known only here, so conditions that compare with it stay here.
    """
    return None if predicate.watched else predicate.canonical
