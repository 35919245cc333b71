"""Whether the memory of routes still says what a search by brute force says."""

from __future__ import annotations

from tieline.core.broker import Broker
from tieline.core.client import Session
from tieline.core.receiver import ActiveSubscription
from tieline.core.routing.route import ConditionalSubscription, Route, RouteConditions, grant_for
from tieline.wire.topics import matches, split_share


def check_routes(broker: Broker) -> None:
    """Every remembered route is that of the subscriptions as they are now."""
    by_conditions: dict[RouteConditions, Route] = {}
    for topic, route in broker.routes.known.items():
        name = topic.decode()
        wanted: dict[Session, list[ActiveSubscription]] = {}
        groups: set[tuple[str, str]] = set()
        conditional: set[ConditionalSubscription] = set()
        for session in broker.sessions.values():
            for written, held in session.subscriptions.items():
                if isinstance(held, ConditionalSubscription):
                    if matches(held.filter, name):
                        conditional.add(held)
                    continue
                share, filter_ = split_share(written)
                if not matches(filter_, name):
                    continue
                if share is None:
                    wanted.setdefault(session, []).append(held)
                else:
                    groups.add((share, filter_))
        assert {grant.receiver for grant in route.grants} == wanted.keys()
        assert len(route.grants) == len(wanted)
        assert sorted(group.share for group in route.groups) == sorted(groups)
        assert route.is_conditional == bool(conditional) or broker.events.is_birth(name)
        if route.conditions is not None:
            _check_conditions(broker, name, route.conditions, conditional)
            assert {session: set(held) for session, held in route.conditions.matched.items()} == {
                session: set(held) for session, held in wanted.items()
            }
            by_conditions[route.conditions] = route
    _check_narrowed(broker, by_conditions)


def _check_conditions(
    broker: Broker, topic: str, conditions: RouteConditions, conditional: set[ConditionalSubscription]
) -> None:
    """The route knows exactly the conditions on its topic, in the words of the topic's own event type."""
    assert conditions.event is broker.events.of(topic)
    known: list[ConditionalSubscription] = []
    for table in conditions.tables:
        assert table.event is conditions.event
        known += [*table._numbers, *table._scanned]
    assert len(known) == len(conditional)
    assert set(known) == conditional


def _check_narrowed(broker: Broker, by_conditions: dict[RouteConditions, Route]) -> None:
    """A remembered route of messages is that of its topic and of those whose conditions they meet, folded."""
    for (conditions, conditionals), route in broker.routes.message_routes._routes.items():
        whole = by_conditions.get(conditions)
        is_current = all(
            isinstance(conditional.receiver, Session)
            and conditional.receiver.subscriptions.get(conditional.options.filter) is conditional
            for conditional in conditionals
        )
        if whole is None or not is_current:
            continue  # of a route that is forgotten, or of somebody who has gone: nothing leads there any more
        expected = {session: list(held) for session, held in conditions.matched.items()}
        for conditional in conditionals:
            if conditional.share is None:
                expected.setdefault(conditional.receiver, []).append(conditional)
        assert {grant.receiver for grant in route.grants} == expected.keys()
        for grant in route.grants:
            folded = grant_for(grant.receiver, expected[grant.receiver])
            assert (grant.qos, grant.keep_retain, grant.no_local) == (folded.qos, folded.keep_retain, folded.no_local)
            assert len(grant.identifiers) == len(folded.identifiers)
        shared = {
            (conditional.share, conditional.filter) for conditional in conditionals if conditional.share is not None
        }
        plain = {group.share for group in whole.groups}
        assert {group.share for group in route.groups} == shared | plain
