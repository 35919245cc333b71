"""Whether the memory of routes still says what a search by brute force says."""

from __future__ import annotations

from tieline.core.broker import Broker
from tieline.wire.topics import matches, split_share


def check_routes(broker: Broker) -> None:
    """Every remembered route is that of the subscriptions as they are now."""
    for topic, route in broker.routes.known.items():
        wanted: set[str] = set()
        groups: set[tuple[str, str]] = set()
        for session in broker.sessions.values():
            for written in session.subscriptions:
                share, filter_ = split_share(written)
                if not matches(filter_, topic.decode()):
                    continue
                if share is None:
                    wanted.add(session.client_id)
                else:
                    groups.add((share, filter_))
        assert sorted(grant.session.client_id for grant in route.grants) == sorted(wanted)
        assert sorted((group.name, group.filter) for group in route.groups) == sorted(groups)
