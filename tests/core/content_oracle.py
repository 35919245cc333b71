"""Random conversations about conditions, and a ledger that evaluates every condition for every message.

The ledger shares with the broker the parser of expressions and ``Predicate.holds``, which have an oracle of their own,
and nothing else: payloads are read with the standard library, topics are matched one by one, nothing is indexed.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from tests.core.content import EVENT, FILTER, PCC
from tieline.match.events import EventType
from tieline.match.where import Predicate, parse, split, understood
from tieline.wire.topics import matches

Value = float | str | bool

CLIENTS: Final = 3
_TOPICS: Final = (PCC, PCC, "microgrid/8/pcc", "loose/1", "loose/2")
_FILTERS: Final = (FILTER, FILTER, PCC, "#", "microgrid/#", "loose/+", "loose/1")
_STATELESS: Final = (
    "voltage<207",
    "195.5<=voltage<=207",
    "not voltage>=207",
    "phases in (1, 3)",
    "mode=island",
    "mode!=island and closed=true",
    "not (mode=island or closed=false)",
    "at>='1970-01-01T00:00:10Z'",
    "x.y>1",
    "x.y>1 or voltage<207",
    "voltage>5 and voltage<4",
)
_STATEFUL: Final = (
    "changed(voltage)",
    "changed(mode) and voltage<300",
    "delta(voltage)>=5",
    "changed(x.y) or closed=true",
    "at<'1970-01-01T00:00:10Z' and not changed(phases)",
)
_EVENT: Final = EventType("pcc", EVENT.topic, EVENT.attributes)
_KINDS: Final = {attribute.name: attribute.kind for attribute in EVENT.attributes}


class Subscribe(NamedTuple):
    client: int
    filter: str
    where: str | None
    qos: int
    no_local: bool
    identifier: int


class Unsubscribe(NamedTuple):
    client: int
    filter: str


class Say(NamedTuple):
    """Several messages in one chunk: topic, payload, QoS."""

    client: int
    messages: tuple[tuple[str, bytes, int], ...]


class Leave(NamedTuple):
    """A client disconnects and comes back without its session."""

    client: int


Action = Subscribe | Unsubscribe | Say | Leave


# --- conversations --------------------------------------------------------------------------------------------------


def _spelled(filter_: str, condition: str, style: int, share: bool) -> str:
    prefix = "$share/g/" if share else ""
    if style == 0:
        return f"{prefix}{filter_}?{condition}"
    return f"{prefix}$where/{condition.replace('%', '%25').replace('+', '%2B')}/{filter_}"


_wishes = st.one_of(
    st.sampled_from(_FILTERS),
    st.builds(_spelled, st.sampled_from(_FILTERS), st.sampled_from(_STATELESS), st.integers(0, 1), st.booleans()),
    st.builds(_spelled, st.sampled_from(_FILTERS), st.sampled_from(_STATEFUL), st.integers(0, 1), st.just(False)),
    st.builds("$share/g/{}".format, st.sampled_from(_FILTERS)),
)
_numbers = st.integers(0, CLIENTS - 1)
_contents = st.fixed_dictionaries(
    {},
    optional={
        "voltage": st.sampled_from([1, 195.5, 206.9, 207, 300, None, "x"]),
        "phases": st.sampled_from([1, 2, 3, 2.5]),
        "mode": st.sampled_from(["island", "grid", "new", 5]),
        "closed": st.sampled_from([True, False, 1]),
        "at": st.sampled_from([9, 10, "1970-01-01T00:00:10Z", "noon"]),
        "x": st.sampled_from([{"y": 1}, {"y": 2}, {}]),
    },
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Action]:
    """What happens, in order."""
    actions: list[Action] = []
    serial = 0
    for _ in range(draw(st.integers(3, 25))):
        client = draw(_numbers)
        kind = draw(st.sampled_from(("subscribe", "subscribe", "say", "say", "say", "say", "unsubscribe", "leave")))
        if kind == "subscribe":
            wish = draw(_wishes)
            # MQTT 5 only; the broker of a 3.1.1 client does not hear of it
            where = draw(st.sampled_from((None, None, None, *_STATELESS)))
            no_local = not wish.startswith("$share") and draw(st.sampled_from((False, False, True)))
            actions.append(Subscribe(client, wish, where, draw(st.integers(0, 1)), no_local, draw(st.integers(0, 3))))
        elif kind == "unsubscribe":
            held = [one.filter for one in actions if isinstance(one, Subscribe) and one.client == client]
            actions.append(Unsubscribe(client, draw(st.sampled_from(held)) if held else draw(_wishes)))
        elif kind == "leave":
            actions.append(Leave(client))
        else:
            messages = []
            for topic in draw(st.lists(st.sampled_from(_TOPICS), min_size=1, max_size=6)):
                serial += 1
                content = b"nope" if draw(st.integers(0, 9)) == 0 else json.dumps(draw(_contents)).encode()
                # as long as the others that say the same kind of things, so that they become one burst
                messages.append((topic, _numbered(content, serial), draw(st.sampled_from((0, 0, 0, 1)))))
            actions.append(Say(client, tuple(messages)))
    return actions


def _numbered(content: bytes, serial: int) -> bytes:
    if not content.startswith(b"{"):
        return b"%s %04d" % (content, serial)
    return b'{"id": "%04d"%s' % (serial, content.replace(b"{", b", " if content != b"{}" else b"", 1))


# --- the ledger -----------------------------------------------------------------------------------------------------


@dataclass
class ActiveSubscription:
    """One subscription."""

    share: str | None
    filter: str
    conditions: list[Predicate]
    qos: int
    no_local: bool
    identifier: int
    #: What was delivered last, by topic.
    last: dict[str, dict[str, Value | None]] = field(default_factory=dict)

    def wants(self, topic: str, payload: bytes) -> bool:
        if not matches(self.filter, topic):
            return False
        if not self.conditions:
            return True
        get = reader(topic, payload)
        return get is not None and all(
            _worded(condition, topic).holds(get, self.last.get(topic)) for condition in self.conditions
        )

    def note(self, topic: str, payload: bytes) -> None:
        get = reader(topic, payload)
        watched = [name for condition in self.conditions for name in condition.watched]
        if watched and get is not None:
            self.last[topic] = {name: get(name) for name in watched}


class Received(NamedTuple):
    """A message as a client sees it."""

    topic: str
    payload: bytes
    qos: int
    #: 3.1.1 has none.
    identifiers: tuple[int, ...]


@dataclass
class Expected:
    """What one client must get, and what it may get for a group."""

    certain: list[Received] = field(default_factory=list)
    possible: Counter[bytes] = field(default_factory=Counter)


class Ledger:
    """Every subscription, and what becomes of every message."""

    def __init__(self, versions: list[int]) -> None:
        self.versions = versions
        self.held: list[dict[str, ActiveSubscription]] = [{} for _ in versions]
        self.expected = [Expected() for _ in versions]
        #: By payload: how many copies all groups together must have got.
        self.for_groups: Counter[bytes] = Counter()

    def tell(self, action: Action) -> None:
        match action:
            case Subscribe():
                self._subscribe(action)
            case Unsubscribe(client, filter_):
                self.held[client].pop(filter_, None)
            case Leave(client):
                self.held[client].clear()
            case Say(client, messages):
                for topic, payload, qos in messages:
                    self._publish(client, topic, payload, qos)

    def _subscribe(self, action: Subscribe) -> None:
        asked = split(action.filter, question_mark=True)
        is_5 = self.versions[action.client] == 5
        texts = [asked.expression, action.where if is_5 else None]
        self.held[action.client][action.filter] = ActiveSubscription(
            asked.share,
            asked.filter,
            [parse(text) for text in texts if text is not None],
            action.qos,
            action.no_local and is_5,
            action.identifier if is_5 else 0,
        )

    def _publish(self, publisher: int, topic: str, payload: bytes, qos: int) -> None:
        groups: dict[tuple[str, str], set[int]] = {}
        for client, subscriptions in enumerate(self.held):
            wanted = []
            for held in subscriptions.values():
                if not held.wants(topic, payload):
                    continue
                if held.share is not None:
                    groups.setdefault((held.share, held.filter), set()).add(client)
                elif not (held.no_local and client == publisher):
                    wanted.append(held)
            if wanted:
                identifiers = tuple(sorted(held.identifier for held in wanted if held.identifier))
                granted = min(qos, max(held.qos for held in wanted))
                self.expected[client].certain.append(Received(topic, payload, granted, identifiers))
                for held in wanted:
                    held.note(topic, payload)
        for members in groups.values():
            self.for_groups[payload] += 1
            for client in members:
                self.expected[client].possible[payload] += 1

    def check(self, received: list[list[Received]]) -> None:
        """Everybody has got what was expected, in order, and every group one copy of each of its messages."""
        for_groups: Counter[bytes] = Counter()
        for client, (expected, found) in enumerate(zip(self.expected, received, strict=True)):
            certain = iter(expected.certain)
            due = next(certain, None)
            extra: Counter[bytes] = Counter()
            for message in found:
                if message == due:
                    due = next(certain, None)
                else:
                    extra[message.payload] += 1
            assert due is None, f"client {client} did not get {due}; it got {found}"
            assert extra <= expected.possible, f"client {client} got {extra - expected.possible}, which it did not want"
            for_groups += extra
        assert for_groups == self.for_groups


def reader(topic: str, payload: bytes) -> Callable[[str], Value | None] | None:
    """How the attributes of a message are read; None if they cannot be."""
    try:
        content = json.loads(payload)
    except ValueError:
        return None
    kinds = _KINDS if matches(FILTER, topic) else {}

    def get(name: str) -> Value | None:
        found = content
        for step in name.split("."):
            found = found.get(step) if isinstance(found, dict) else None
        return _of_kind(found, kinds.get(name))

    return get


def _of_kind(found: Any, kind: str | None) -> Value | None:
    if isinstance(found, bool):
        return found if kind in (None, "boolean") else None
    if isinstance(found, str):
        if kind == "timestamp":
            try:
                return datetime.fromisoformat(found).timestamp()
            except ValueError:
                return None
        return found if kind in (None, "category") else None
    if isinstance(found, int | float) and math.isfinite(found):
        is_whole = float(found).is_integer()
        return float(found) if kind in (None, "number", "timestamp") or (kind == "integer" and is_whole) else None
    return None


def _worded(condition: Predicate, topic: str) -> Predicate:
    return understood(condition, _EVENT) if matches(FILTER, topic) else condition
