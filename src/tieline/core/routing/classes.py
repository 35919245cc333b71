"""How urgent a message is: topic rules, claims, and who may make them.

The level comes, in this order, from the extra header byte, the user property ``priority`` of the PUBLISH, the first
topic rule that matches, the publisher's own level.  A level is a privilege: what a client reaches by any of these is
lowered to what its listener and the first matching ``[[claim]]`` allow, and too many messages above the ordinary level
are lowered to it; both are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from tieline.conf.quantities import UNLIMITED, seconds
from tieline.conf.schema import Absent, Claim, Class, Settings
from tieline.core.client import Connection
from tieline.match.trees import FilterTree
from tieline.sched.levels import DEFAULTS, LEVELS, Patience, Rules, Traffic
from tieline.wire.properties import Properties

#: The name of the user property, on PUBLISH and on CONNECT.
PROPERTY = "priority"
#: Messages above this level are counted against ``per_s``, and lowered to it when there are too many.
ORDINARY = 1

#: In place of a level: no topic rule gives one; what claims to be one is none.
NO_RULE: Final = -1
UNKNOWN: Final = -1

_LEVEL_OF = {str(level): level for level in range(LEVELS)}


class Classes:
    """The topic rules of one broker, and what a policy needs to know of each level."""

    def __init__(self, settings: Settings) -> None:
        self._rules: FilterTree[tuple[int, Class]] = FilterTree()
        for order, rule in enumerate(settings.class_):
            if self._rules.get(rule.filter) is None:
                self._rules.put(rule.filter, (order, rule))
        self.names = tuple(_first(settings.class_, level, DEFAULTS[level].name) for level in range(LEVELS))
        classes = tuple(_traffic(settings.class_, level) for level in range(LEVELS))
        self.rules = Rules(
            classes=classes,  # type: ignore[arg-type]  # one for each of the four levels
            patience=Patience(period_s=seconds(settings.priority.period), frequency=settings.priority.frequency),
            floor=settings.priority.floor,
            inheritance=settings.priority.inheritance,
        )
        self._unordered: FilterTree[bool] = FilterTree()
        for filter_ in settings.priority.unordered:
            self._unordered.put(filter_, True)
        #: Largest message of each level; None where a class sets no bound.
        self.max_packet = tuple(traffic.max_packet for traffic in classes)
        #: What messages of each level do at the full queue of an absent client; None where no class says it.
        self.absent: tuple[Absent | None, ...] = tuple(
            next((rule.absent for rule in settings.class_ if rule.level == level), None) for level in range(LEVELS)
        )
        #: Messages of any level may have this many bytes.
        self.least_bound = min((bound for bound in self.max_packet if bound is not None), default=UNLIMITED)

    def __len__(self) -> int:
        return len(self._rules)

    def is_ordered(self, topic: bytes) -> bool:
        """Whether messages of a topic keep their order: they do, unless an operator said they need not."""
        return not len(self._unordered) or not self._unordered.match(topic.decode())

    def rule(self, topic: str) -> Class | None:
        """The first rule that matches a topic; None when none does."""
        if not len(self._rules):
            return None
        found = self._rules.match(topic)
        return min(found)[1] if found else None

    def level(self, topic: str) -> int:
        """The level that the first matching rule gives; ``NO_RULE`` when none does."""
        rule = self.rule(topic)
        return NO_RULE if rule is None else rule.level


def _first(classes: Sequence[Class], level: int, default: str) -> str:
    return next((rule.name for rule in classes if rule.level == level), default)


def _traffic(classes: Sequence[Class], level: int) -> Traffic:
    """The treatment of a level: what its first class says, the default for the rest."""
    default = DEFAULTS[level]
    rule = next((rule for rule in classes if rule.level == level), None)
    if rule is None:
        return default
    return Traffic(
        name=rule.name,
        level=level,
        weight=default.weight if rule.weight is None else rule.weight,
        deadline_s=default.deadline_s if rule.deadline is None else seconds(rule.deadline),
        timeout_s=default.timeout_s if rule.timeout is None else seconds(rule.timeout),
        max_packet=rule.max_packet,
        full=rule.full or default.full,
    )


def claimed_level(properties: Properties) -> int | None:
    """The level that a user property claims; None when none does, ``UNKNOWN`` when it is no level."""
    for name, value in properties.get("user_property", ()):
        if name == PROPERTY:
            return _LEVEL_OF.get(value, UNKNOWN)
    return None


class Granted(NamedTuple):
    """What a client is allowed of a level that it claims."""

    level: int
    #: The claim that says how much; None when none matches.
    claim: Claim | None
    #: What the client may still send at such a level now; None where that is not counted.
    tokens: float | None
    #: There were too many: it would be allowed more otherwise.
    is_throttled: bool


class Claims:
    """What clients are allowed of what they claim."""

    def __init__(self, settings: Settings) -> None:
        self._claims = settings.claim
        self._filters: list[FilterTree[bool]] = []
        for claim in settings.claim:
            tree: FilterTree[bool] = FilterTree()
            tree.put(claim.filter, True)
            self._filters.append(tree)
        #: Nobody is limited: the hot path need not ask.
        self.is_open = not settings.claim and all(listener.max_level == LEVELS - 1 for listener in settings.listener)
        #: Somebody is limited in how often: messages are then judged one by one.
        self.has_rates = any(claim.per_s != "none" for claim in settings.claim)
        #: Messages lowered because their publisher may not, and because there were too many.
        self.lowered = 0
        self.throttled = 0

    def judge(self, conn: Connection, topic: str, level: int, messages: int, now: float) -> int:
        """The level that a message of this client really gets."""
        granted, claim, tokens, is_throttled = self.look(conn, topic, level, messages, now)
        if is_throttled:
            self.throttled += messages
            return granted
        if claim is not None and tokens is not None:
            if conn.buckets is None:
                conn.buckets = {}
            conn.buckets[id(claim)] = (tokens - messages, now)
        if granted < level:
            self.lowered += messages
        return granted

    def look(self, conn: Connection, topic: str, level: int, messages: int, now: float) -> Granted:
        """What is allowed of a level for so many messages at once, and why; nothing is spent or counted."""
        granted = min(level, conn.max_level)
        claim = self._claim(conn, topic)
        if claim is None:
            return Granted(granted, None, None, is_throttled=False)
        granted = min(granted, claim.max_level)
        if granted <= ORDINARY or claim.per_s == "none":
            return Granted(granted, claim, None, is_throttled=False)
        tokens = _tokens(conn, claim, now)
        is_throttled = tokens < messages
        return Granted(ORDINARY if is_throttled else granted, claim, tokens, is_throttled)

    def _claim(self, conn: Connection, topic: str) -> Claim | None:
        user = conn.user
        for claim, tree in zip(self._claims, self._filters, strict=True):
            if claim.user in ("*", user or "-") and tree.match(topic):
                return claim
        return None


def _tokens(conn: Connection, claim: Claim, now: float) -> float:
    """What the client's bucket for this claim holds now; one second's worth, and at least one token, fits in it."""
    rate = float(claim.per_s)
    most = max(1.0, rate) if rate else 0.0
    tokens, then = (conn.buckets or {}).get(id(claim), (most, now))
    return min(most, tokens + (now - then) * rate)
