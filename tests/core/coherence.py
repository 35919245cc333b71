"""Whether the memory of routes still says what a search by brute force says."""

from __future__ import annotations

from tieline.core.broker import Broker
from tieline.core.routing.conditional import Asking
from tieline.core.routing.route_conditions import Sifting
from tieline.core.routing.routes import Route, grant_for
from tieline.core.session import Held, Session
from tieline.wire.topics import matches, split_share


def check_routes(broker: Broker) -> None:
    """Every remembered route is that of the subscriptions as they are now."""
    siftings: dict[Sifting, Route] = {}
    for topic, route in broker.routes.known.items():
        name = topic.decode()
        wanted: dict[Session, list[Held]] = {}
        groups: set[tuple[str, str]] = set()
        asking: set[Asking] = set()
        for session in broker.sessions.values():
            for written, held in session.subscriptions.items():
                if isinstance(held, Asking):
                    if matches(held.filter, name):
                        asking.add(held)
                    continue
                share, filter_ = split_share(written)
                if not matches(filter_, name):
                    continue
                if share is None:
                    wanted.setdefault(session, []).append(held)
                else:
                    groups.add((share, filter_))
        assert {grant.session for grant in route.grants} == wanted.keys()
        assert len(route.grants) == len(wanted)
        assert sorted((group.name, group.filter) for group in route.groups) == sorted(groups)
        assert route.is_sifted == bool(asking) or broker.events.is_birth(name)
        if route.sifting is not None:
            _check_conditions(broker, name, route.sifting, asking)
            assert {session: set(held) for session, held in route.sifting.matched.items()} == {
                session: set(held) for session, held in wanted.items()
            }
            siftings[route.sifting] = route
    _check_narrowed(broker, siftings)


def _check_conditions(broker: Broker, topic: str, sifting: Sifting, asking: set[Asking]) -> None:
    """The route knows exactly the conditions on its topic, in the words of the topic's own event type."""
    assert sifting.event is broker.events.of(topic)
    known: list[Asking] = []
    for table in sifting.tables:
        assert table.event is sifting.event
        known += [*table._numbers, *table._scanned]
    assert len(known) == len(asking)
    assert set(known) == asking


def _check_narrowed(broker: Broker, siftings: dict[Sifting, Route]) -> None:
    """A remembered route of messages is that of its topic and of those whose conditions they meet, folded."""
    for (sifting, askings), route in broker.routes.narrowed._routes.items():
        whole = siftings.get(sifting)
        is_current = all(asking.session.subscriptions.get(asking.options.filter) is asking for asking in askings)
        if whole is None or not is_current:
            continue  # of a route that is forgotten, or of somebody who has gone: nothing leads there any more
        expected = {session: list(held) for session, held in sifting.matched.items()}
        for asking in askings:
            if asking.share is None:
                expected.setdefault(asking.session, []).append(asking)
        assert {grant.session for grant in route.grants} == expected.keys()
        for grant in route.grants:
            folded = grant_for(grant.session, expected[grant.session])
            assert (grant.qos, grant.keep_retain, grant.no_local) == (folded.qos, folded.keep_retain, folded.no_local)
            assert len(grant.identifiers) == len(folded.identifiers)
        shared = {(asking.share, asking.filter) for asking in askings if asking.share is not None}
        plain = {(group.name, group.filter) for group in whole.groups}
        assert {(group.name, group.filter) for group in route.groups} == shared | plain
