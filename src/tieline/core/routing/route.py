"""Who gets the messages of a topic: a route, what it knows of conditions, and subscriptions that have one.

Overlapping subscriptions of one receiver are folded: one copy, the highest QoS, every subscription identifier, the
retain flag kept if one of them asks for it ([MQTT-3.3.4-2], [MQTT-3.3.4-3]; 3.3.4 leaves the number of copies open).
"""

from __future__ import annotations

from collections.abc import Callable

from tieline.core.receiver import ActiveSubscription, Grant, Receiver, Share
from tieline.core.routing.groups import Group
from tieline.match.change import ChangeMemory, LastValues
from tieline.match.conditions import ConditionTable
from tieline.match.events import EventType
from tieline.match.trees import tree_bytes
from tieline.match.where import Predicate
from tieline.wire.fields import encode_varint
from tieline.wire.packets import Subscription

#: Property 11, Subscription Identifier.
_IDENTIFIER = b"\x0b"
#: Levels of a filter that weigh as much as one plain subscription.
LEVELS_PER_WEIGHT = 8
#: What a subscription takes beside its filter; what a condition takes, and each character of it, about.
SUBSCRIPTION_BYTES = 480
CONDITION_BYTES = 600
CONDITION_BYTES_EACH = 48
#: Conditions on a message that are more work than this are asked about in portions, before it is accepted.
HEAVY = 5_000
#: More receivers than this that are away are given a message in portions.
MANY_AWAY = 1_000
#: What it counts beside asking if a condition that is asked about every message is met.
MEETING = 25


def weight_of(filter_: str) -> int:
    """How much a subscription counts towards the limits: deep filters take more memory than plain ones."""
    return 1 + filter_.count("/") // LEVELS_PER_WEIGHT + len(filter_) // 1_024


def subscription_bytes(subscription: ActiveSubscription) -> int:
    """What a subscription takes, with its place in the tree of filters and, if it has a condition, that made ready."""
    size = SUBSCRIPTION_BYTES + tree_bytes(subscription.options.filter)
    if isinstance(subscription, ConditionalSubscription):
        asked = len(subscription.options.filter) + sum(map(len, subscription.conditions))
        size += CONDITION_BYTES + CONDITION_BYTES_EACH * asked
    return size


class ConditionalSubscription(ActiveSubscription):
    """One subscription with a condition."""

    __slots__ = ("filter", "group", "last", "predicate", "receiver", "route", "share")

    def __init__(  # as a subscription, and what its spelling was taken apart into
        self,
        options: Subscription,
        identifier: int,
        receiver: Receiver,
        share: str | None,
        filter_: str,
        predicate: Predicate,
        memory: ChangeMemory,
    ) -> None:
        super().__init__(options, identifier)
        self.receiver = receiver
        self.share = share
        #: The filter alone, without share and condition.
        self.filter = filter_
        self.predicate = predicate
        watched = predicate.watched
        #: What it was sent last; None if its condition does not care.
        self.last = LastValues(watched, memory) if watched else None
        self.group: Group | None = None
        #: The route of messages that only this subscription wants; made when it is needed.
        self.route: Route | None = None


class RouteConditions:
    """What a route with conditions on it knows."""

    __slots__ = ("effort", "event", "is_birth", "is_heavy", "matched", "may_read", "remote", "tables")

    def __init__(
        self,
        event: EventType,
        tables: tuple[ConditionTable[ConditionalSubscription], ...],
        matched: dict[Receiver, list[ActiveSubscription]],
        *,
        is_birth: bool,
        may_read: Callable[[Receiver], bool] | None = None,
        remote: int = 0,
    ) -> None:
        self.event = event
        #: How many of the conditions are those of other brokers.
        self.remote = remote
        self.tables = tables
        #: Who may read the topic at all; None when everybody may.
        self.may_read = may_read
        #: The subscriptions without a condition, by receiver.
        self.matched = matched
        #: The topic carries Sparkplug births, which are read whoever is subscribed.
        self.is_birth = is_birth
        #: What asking about one message counts towards the work of a turn; weighed again with every chunk.
        self.effort = 1
        #: It may be too much to be done in one go.
        self.is_heavy = False
        self.weigh()

    def weigh(self) -> None:
        """Conditions come and go, and what they cost is added up for every message: too often to be asked each time."""
        tables = self.tables
        if len(tables) == 1:
            self.effort, most = tables[0].effort, tables[0].most_effort
        else:
            self.effort = sum([table.effort for table in tables]) or 1
            most = sum([table.most_effort for table in tables])
        # whoever is met gets a message of its own, and not a part of a run
        self.effort += MEETING * sum([table.asked_always for table in tables])
        self.is_heavy = most > HEAVY


class Route:
    """Who gets the messages of a topic."""

    __slots__ = (
        "_before",
        "_by_share",
        "_period",
        "_recent",
        "away",
        "conditions",
        "grants",
        "groups",
        "has_receivers",
        "heat",
        "is_conditional",
        "is_given",
        "is_simple",
        "is_spanning",
        "level",
        "serves_clients",
    )

    def __init__(
        self,
        grants: tuple[Grant, ...],
        groups: tuple[Group, ...],
        level: int,
        conditions: RouteConditions | None = None,
    ) -> None:
        self.grants = grants
        self.groups = groups
        #: What has to be asked of a message before its receivers are known; None when they are.
        self.conditions = conditions
        self.is_conditional = conditions is not None
        #: Whether anybody may get a message.
        self.has_receivers = bool(grants or groups or conditions)
        #: Live subscribers of the topic, as the heat paper counts them; a route is forgotten when they change.
        brokers = sum([grant.receiver.is_broker for grant in grants])
        #: Whether clients of this broker may get a message, and not only other brokers.
        self.serves_clients = bool(len(grants) > brokers or groups or conditions)
        self.heat = 0.0 + len(grants) - brokers + sum(len(group.members) for group in groups)
        #: The heat was given from outside, and deliveries do not add to it.
        self.is_given = False
        if conditions is not None:
            self.heat += max(0, sum(map(len, conditions.tables)) - conditions.remote)
        #: Deliveries in the current and in the last period, for a heat that counts them.
        self._recent = self._before = self._period = 0
        #: How many receivers were away when that was last counted, where there are many at all.
        self.away = 0
        self.count_away()
        #: The level that topic rules give; -1 when none does.
        self.level = level
        #: Groups have members at other brokers: what is dealt out to them is cut first, so that a broker gets it once.
        self.is_spanning = any(group.brokers for group in groups)
        self._by_share: dict[Share, Group] | None = None
        #: Neither No Local nor shared subscriptions nor conditions: every grant gets every message.
        self.is_simple = not (groups or self.is_conditional or any(grant.no_local or grant.marks for grant in grants))

    @property
    def is_heavy(self) -> bool:
        """Whether to ask its conditions may be too much to be done in one go, as they were last weighed."""
        return self.conditions is not None and self.conditions.is_heavy

    def count_away(self) -> None:
        """See how many receivers are away, if that could be very many."""
        if len(self.grants) > MANY_AWAY:
            self.away = sum([not grant.receiver.is_present for grant in self.grants])

    @property
    def is_for_many(self) -> bool:
        """Whether a message for it is queued in portions: very many of its receivers are away."""
        return self.away > MANY_AWAY and self.is_simple

    def given(self, heat: float) -> Route:
        """The same route for a topic with a heat from outside."""
        route = Route(self.grants, self.groups, self.level, self.conditions)
        route.heat = heat
        route.is_given = True
        return route

    def group(self, share: Share) -> Group | None:
        """The shared subscription of this name and filter, if the route leads to it."""
        if self._by_share is None:
            self._by_share = {group.share: group for group in self.groups}
        return self._by_share.get(share)

    def heat_with(self, weight: float, messages: int, period: int) -> float:
        """Subscribers plus weighted deliveries of the last whole period; counts these messages."""
        if period != self._period:
            self._before = self._recent if period == self._period + 1 else 0
            self._recent = 0
            self._period = period
        self._recent += messages * len(self.grants)
        return self.heat + int(weight * self._before)


def grant_for(receiver: Receiver, subscriptions: list[ActiveSubscription]) -> Grant:
    """Fold the subscriptions of one receiver that match one topic."""
    qos = 0
    identifiers: list[bytes] = []
    keep_retain = no_local = False
    for subscription in subscriptions:
        options = subscription.options
        qos = max(qos, options.qos)
        keep_retain = keep_retain or options.retain_as_published
        no_local = no_local or options.no_local
        if subscription.identifier:
            identifiers.append(_IDENTIFIER + encode_varint(subscription.identifier))
    grant = Grant(receiver, qos, identifiers=b"".join(identifiers), keep_retain=keep_retain, no_local=no_local)
    if grant.no_local:
        others = [subscription for subscription in subscriptions if not subscription.options.no_local]
        grant.others = grant_for(receiver, others) if others else None
    return grant


def folded(receiver: Receiver, subscriptions: list[ActiveSubscription]) -> Grant:
    """The grant of one subscription is the same on every route; only several together need one of their own."""
    if len(subscriptions) > 1:
        return grant_for(receiver, subscriptions)
    subscription = subscriptions[0]
    if subscription.grant is None:
        subscription.grant = grant_for(receiver, subscriptions)
    return subscription.grant
