"""What the broker shows of itself at one moment: plain values, taken in its own thread and read in another."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from tieline.core.figures.traffic import ClassReport, report
from tieline.version import __version__

if TYPE_CHECKING:
    from tieline.net.services import Running
    from tieline.overlay.figures import LinkNumbers


class Net(Struct, frozen=True, kw_only=True):
    """What is known of the network of brokers, and what passed this one's own links."""

    totals: dict[str, int]
    #: What happened between brokers, and how often links were lost, by name.
    counts: dict[str, int]
    lost: dict[str, int]
    links: list[LinkNumbers]
    #: The names of the levels, the lowest first.
    classes: list[str]


class Figures(Struct, frozen=True, kw_only=True):
    """Numbers by name; counters only grow."""

    name: str
    version: str
    counters: dict[str, float]
    gauges: dict[str, float]
    #: Discarded messages, by reason and class.
    drops: list[tuple[str, str, int]]
    closed: dict[str, int]
    #: Sessions that the broker has ended, by reason.
    ended: dict[str, int]
    refusals: dict[str, int]
    holds: dict[str, int]
    #: What is kept because of clients: bytes by kind.
    memory: dict[str, int]
    classes: list[ClassReport]
    #: Waiting times of congested messages, by class: how many waited less than 2^n milliseconds.
    waits: dict[str, list[int]]
    #: The network of brokers; empty while this one is alone.
    net: Net | None
    #: What is known of the ring: what is so now, and what happened, by name; None where this broker is on none.
    ring: tuple[dict[str, int], dict[str, int]] | None
    #: Why the broker should not be sent new clients; empty when it is ready.
    troubles: list[str]


def take(server: Running) -> Figures:
    """Look, once; called in the broker's thread.  The time this takes grows with the number of sessions."""
    core = server.core
    account, routes = core.account, core.routes
    now = monotonic()
    sessions = core.sessions.values()
    connected = sum(session.connection is not None for session in sessions)
    names = (*core.priorities.classes.names, "")
    return Figures(
        name=server.settings.name,
        version=__version__,
        counters={
            "received_bytes": account.bytes_in,
            "sent_bytes": account.bytes_out,
            "received_packets": account.packets_in,
            "received_messages": account.publishes_in,
            "sent_messages": account.publishes_out,
            "accepted_connections": account.connections,
            "expired_sessions": account.sessions_expired,
            "congestions": account.congestions,
            "lowered_claims": core.priorities.claims.lowered,
            "throttled_claims": core.priorities.claims.throttled,
            "unknown_levels": account.unknown_levels,
            "content_sifted_messages": account.examinations,
            "content_unreadable_messages": account.unreadable,
            "content_forgotten_references": core.references.forgotten_alone + core.references.forgotten_together,
            "store_commits": core.journal.commits,
            "forgotten_producers": core.producers.forgotten,
            "throttled_logins": server.logins.get("throttled", 0),
            "turned_away_logins": server.logins.get("turned_away", 0),
            "gc_seconds": server.vitals.gc_s,
            "lost_log_events": account.lost_events,
        },
        gauges={
            "uptime_seconds": now - server.started,
            "connections": len(core.connections),
            "connected_sessions": connected,
            "away_sessions": len(core.sessions) - connected,
            "subscriptions": routes.count,
            "shared_subscriptions": routes.shared,
            "content_subscriptions": routes.conditional,
            "content_references": core.references.kept,
            "retained_messages": len(core.retained),
            "retained_bytes": core.retained.bytes,
            "producers": len(core.producers),
            "queued_messages": sum(session.queue.messages for session in sessions),
            "queued_bytes": core.queued_bytes,
            "spilled_messages": core.spills.messages,
            "spilled_bytes": core.spills.bytes,
            "inflight_messages": sum(len(session.inflight) for session in sessions),
            "loop_lag_seconds": server.vitals.lag_s,
            "gc_pause_max_seconds": server.vitals.longest_gc_s,
            "given_heat_entries": len(core.heat_source.table or ()),
            "given_heat_left_seconds": core.heat_source.left_s(now),
            "store_waiting": core.journal.waiting,
            "store_is_durable": not core.journal.is_volatile,
            "store_is_behind": core.journal.is_behind,
        },
        drops=[
            (why.value, name, count)
            for name, drops in zip(names, account.drops_by_level, strict=True)
            for why, count in drops.items()
        ],
        closed=dict(account.closed),
        ended=dict(account.sessions_ended),
        refusals=dict(account.refusals),
        holds=dict(account.holds),
        memory={str(kind): size for kind, size in core.holdings.by_kind().items()},
        classes=report(sessions, core.priorities.classes, account, now),
        waits={name: list(buckets) for name, buckets in zip(core.priorities.classes.names, account.waits, strict=True)},
        net=_net(server),
        ring=None if server.ring is None else (server.ring.totals(), server.ring.counts),
        troubles=troubles(server),
    )


def _net(server: Running) -> Net | None:
    net = server.net
    if net is None:
        return None
    classes = server.core.priorities.classes.names
    return Net(totals=net.totals(), counts=net.counts, lost=net.lost, links=net.links, classes=[*classes])


def troubles(server: Running) -> list[str]:
    """Why no client should be sent here; empty when the broker is ready."""
    found = [] if server.urls else ["no listener is open"]
    if server.core.journal.trouble:
        found.append(f"the store takes nothing: {server.core.journal.trouble}")
    return found
