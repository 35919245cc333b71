from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.kits.examples import examples
from tests.kits.lines import counting
from tests.kits.sessions import lone_session
from tests.kits.world import World
from tests.match.topics import filters, names
from tieline.core.receiver import ActiveSubscription, Grant
from tieline.core.routing.route import grant_for
from tieline.core.routing.routes import Routes
from tieline.wire.packets import Subscription
from tieline.wire.topics import matches

_SESSIONS = 3
_numbers = st.integers(0, _SESSIONS - 1)
_shares = st.sampled_from((None, None, None, "g", "h"))


class Memory(RuleBasedStateMachine):
    """Routes with a memory beside a list of subscriptions that is searched by brute force."""

    routes: Routes

    @initialize(limit=st.sampled_from((0, 1, 3, 1_000)))
    def begin(self, limit: int) -> None:
        self.routes = Routes(limit)
        self.sessions = [lone_session(f"s{number}", 100, 100_000) for number in range(_SESSIONS)]
        self.model: dict[tuple[int, str | None, str], ActiveSubscription] = {}

    @rule(
        number=_numbers,
        share=_shares,
        filter_=filters,
        qos=st.integers(0, 2),
        no_local=st.booleans(),
        keep=st.booleans(),
        identifier=st.integers(0, 300),
    )
    def subscribe(
        self, number: int, share: str | None, filter_: str, qos: int, no_local: bool, keep: bool, identifier: int
    ) -> None:
        options = Subscription(filter=filter_, qos=qos, no_local=no_local and share is None, retain_as_published=keep)
        subscription = ActiveSubscription(options, identifier)
        is_new = self.routes.subscribe(self.sessions[number], share, filter_, subscription)
        assert is_new == ((number, share, filter_) not in self.model)
        self.model[number, share, filter_] = subscription

    @rule(number=_numbers, share=_shares, filter_=filters)
    def unsubscribe(self, number: int, share: str | None, filter_: str) -> None:
        there = self.model.pop((number, share, filter_), None) is not None
        assert self.routes.unsubscribe(self.sessions[number], share, filter_) == there

    @rule(data=st.data())
    def unsubscribe_one_that_is_there(self, data: st.DataObject) -> None:
        if self.model:
            self.unsubscribe(*data.draw(st.sampled_from(sorted(self.model, key=str))))

    @rule(topic=names)
    def route(self, topic: str) -> None:
        key = topic.encode()
        route = self.routes.known.get(key) or self.routes.find(topic, key)
        for number, session in enumerate(self.sessions):
            wanted = [
                subscription
                for (owner, share, filter_), subscription in self.model.items()
                if owner == number and share is None and matches(filter_, topic)
            ]
            grants = [grant for grant in route.grants if grant.receiver is session]
            assert len(grants) == bool(wanted), "one copy for each session, however many subscriptions match"
            if wanted:
                self.compare(grants[0], wanted)
        groups = {
            (share, filter_): {owner for owner, *rest in self.model if rest == [share, filter_]}
            for _, share, filter_ in self.model
            if share is not None and matches(filter_, topic)
        }
        found = {
            tuple(group.share): {self.sessions.index(session) for session in group.members}  # type: ignore[arg-type]  # theirs
            for group in route.groups
        }
        assert found == groups
        assert len(route.groups) == len(groups)
        assert route.is_simple == (not groups and not any(grant.no_local for grant in route.grants))

    @staticmethod
    def compare(grant: Grant, wanted: list[ActiveSubscription]) -> None:
        assert grant.qos == max(subscription.options.qos for subscription in wanted)
        assert grant.keep_retain == any(subscription.options.retain_as_published for subscription in wanted)
        assert grant.no_local == any(subscription.options.no_local for subscription in wanted)
        assert Counter(_identifiers(grant.identifiers)) == Counter(
            subscription.identifier for subscription in wanted if subscription.identifier
        )
        others = [subscription for subscription in wanted if not subscription.options.no_local]
        if grant.no_local and others:
            assert grant.others is not None
            Memory.compare(grant.others, others)
        else:
            assert grant.others is None

    def teardown(self) -> None:
        if not hasattr(self, "routes"):
            return
        assert self.routes.count == len(self.model)
        assert len(self.routes.known) <= max(1, self.routes._limit)
        for number, share, filter_ in self.model:
            self.routes.unsubscribe(self.sessions[number], share, filter_)
        assert self.routes.count == self.routes.weight == 0
        assert len(self.routes._buckets) == 0


def _identifiers(encoded: bytes) -> list[int]:
    """The Subscription Identifier properties: 11 and a variable byte integer each."""
    found: list[int] = []
    pos = 0
    while pos < len(encoded):
        assert encoded[pos] == 11
        value, shift, pos = 0, 0, pos + 1
        while True:
            byte = encoded[pos]
            pos += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        found.append(value)
    return found


TestMemory = Memory.TestCase
TestMemory.settings = examples(60, stateful_step_count=60)


def subscription(filter_: str, **options: object) -> ActiveSubscription:
    return ActiveSubscription(Subscription(filter=filter_, **options), 0)  # type: ignore[arg-type]  # the test names real options


def test_change_elsewhere_leaves_the_memory_alone() -> None:
    routes, session = Routes(100), lone_session("s", 10, 1_000)
    routes.subscribe(session, None, "a/#", subscription("a/#"))
    kept = routes.find("a/b", b"a/b")
    routes.find("x/y", b"x/y")
    routes.subscribe(session, None, "x/+", subscription("x/+"))
    assert routes.known == {b"a/b": kept}


def test_the_memory_is_bounded_in_number() -> None:
    routes = Routes(10)
    for number in range(95):
        routes.find(f"t/{number}", b"t/%d" % number)
    assert len(routes.known) <= 10
    assert routes.resets == 9


@pytest.mark.parametrize("topic", ["{}" + "/a" * 120, "{}/" + "x" * 60_000])
def test_the_memory_is_bounded_in_bytes(topic: str) -> None:
    routes = Routes(1_000)
    for number in range(1_000):
        name = topic.format(number)
        routes.find(name, name.encode())
    assert routes.resets > 0
    assert len(routes.known) < 1_000
    assert sum(len(key) for key in routes.known) < 5_000_000


def test_system_topics_leave_the_memory_alone() -> None:
    routes = Routes(2)
    routes.find("a", b"a")
    routes.find("b", b"b")
    routes.find("$SYS/broker/uptime", b"$SYS/broker/uptime")
    assert sorted(routes.known) == [b"a", b"b"]


def test_one_filter_for_everything_forgets_quickly() -> None:
    routes, session = Routes(50_000), lone_session("s", 10, 1_000)
    for number in range(20_000):
        routes.find(f"t/{number}", b"t/%d" % number)
    routes.subscribe(session, None, "#", subscription("#"))
    assert routes.known == {}
    assert [grant.receiver for grant in routes.find("t/1", b"t/1").grants] == [session]
    assert len(routes._names) == len(routes.known) == 1


def test_topics_with_one_filter_share_one_route() -> None:
    routes, session = Routes(100), lone_session("s", 10, 1_000)
    routes.subscribe(session, None, "a/#", subscription("a/#"))
    assert routes.find("a/1", b"a/1") is routes.find("a/2", b"a/2")


def test_without_a_memory_nothing_is_kept() -> None:
    routes = Routes(0)
    routes.find("a", b"a")
    assert routes.known == {}
    assert len(routes._names) == 0


def test_a_grant_says_what_it_is() -> None:
    session = lone_session("s", 10, 1_000)
    assert repr(grant_for(session, [subscription("a", qos=2)])) == "<Grant s QoS 2>"


def test_a_filter_of_many_levels_counts_for_more_than_one() -> None:
    world = World(subscriptions=100)
    client = world.client("c")
    granted = refused = 0
    for number in range(100):
        suback = client.subscribe(f"{number}" + "/a" * 127)
        if suback.reasons == (0,):
            granted += 1
        else:
            refused += 1
            assert suback.reasons == (0x97,)
    assert granted
    assert refused
    assert world.client("other").subscribe("a/b").reasons == (0,)


def test_forgetting_is_bounded_by_what_it_visits() -> None:
    """A filter that matches none of the remembered topics must not walk through all of them each time."""
    routes, session = Routes(50_000), lone_session("s", 10, 1_000)
    for number in range(30_000):
        routes.find(f"t/{number}", b"t/%d" % number)
    with counting() as lines:
        for number in range(100):
            routes.subscribe(session, None, f"+/+/{number}", subscription(f"+/+/{number}"))
        for number in range(100):
            routes.unsubscribe(session, None, f"+/+/{number}")
    assert lines.count < 200 * 1_000, "a walk would take 30,000 lines each time"


def test_the_receivers_of_remembered_topics_are_shared_or_charged() -> None:
    """Many who want everything and one who wants a part: every topic has a route of its own."""
    routes = Routes(131_072)
    for number in range(500):
        routes.subscribe(lone_session(f"s{number}", 10, 1_000), None, "#", subscription("#"))
    routes.subscribe(lone_session("one more", 10, 1_000), None, "t/#", subscription("t/#"))
    for number in range(2_000):
        route = routes.find(f"t/{number}", b"t/%d" % number)
        assert len(route.grants) == 501
    kept = {id(grant) for route in routes.known.values() for grant in route.grants}
    places = sum(len(route.grants) for route in routes.known.values())
    assert len(kept) * 106 + places * 8 < 32_000_000
