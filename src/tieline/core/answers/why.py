"""Why something happens to one client: what it may publish or subscribe to, what waits for it, and what it lost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec import Struct

from tieline.conf.quantities import bound
from tieline.core.account import Drop, Dropped
from tieline.core.answers.steps import (
    Outcome,
    Step,
    access_step,
    claim_rule,
    level_rule,
    may_not_read,
    name_step,
    named_level,
    no,
    note,
    own_level,
    unknown,
    yes,
)
from tieline.core.broker import Broker
from tieline.core.client import Connection, Hold, Session
from tieline.core.inbound.subscription_request import SubscriptionRequest, lack_of_room, read_request, refusal_of
from tieline.core.receiver import ActiveSubscription
from tieline.core.routing.route import ConditionalSubscription
from tieline.match.cover.filters import overlap
from tieline.sched.levels import LEVELS, URGENT
from tieline.wire.errors import ProtocolError
from tieline.wire.packets import Subscription
from tieline.wire.reason import Reason
from tieline.wire.topics import matches, split_share

#: What each state means, for people.
MEANING: Final = {
    "away": "its client is not connected; the session collects what it may",
    "caught_up": "nothing waits for it",
    "inflight_full": "what waits needs acknowledgements of the client first: its in-flight window is full",
    "busy": "what waits goes out as fast as the client and the network take it",
    Hold.VERDICT.value: "it is not read: an access decision is pending",
    Hold.QUEUE_FULL.value: "it is not read: it published to somebody whose queue is full",
    Hold.TURN.value: "it is not read for the moment: what it sent has caused much work, and others come first",
    Hold.NOT_READING.value: "it is not read: it leaves our answers unread",
    Hold.RATE.value: "it is not read: it, or its user, sends faster than it may",
    Hold.COMMIT.value: "it is not read: its session is being made permanent",
    Hold.STORE.value: "it is not read: the store cannot keep up, or has no room",
    Hold.PEERS.value: "it is not read: other brokers are told of its subscriptions",
    Hold.HOME.value: "it is not read: another broker hands its session over",
}


class Standing(Struct, frozen=True, kw_only=True):
    """One session at one moment."""

    client: str
    user: str | None
    peer: str
    queued: int
    queued_bytes: int
    #: Of what waits, what waits in the store alone.
    spilled: int
    spilled_bytes: int
    inflight: int
    #: How long the message that is served next has been with the broker; 0 when nothing waits.
    oldest_s: float
    #: A key of ``MEANING``.
    paused: str
    #: Whose full queue it waits for.
    waits_for: str
    #: Classes in which it is congested, the most urgent first.
    congested: tuple[str, ...]
    #: Messages discarded that it should have got.
    dropped: int


def standing(broker: Broker, session: Session, now: float) -> Standing:
    """Where a session stands now."""
    conn = session.connection
    backlog = session.backlog
    return Standing(
        client=session.client_id,
        user=session.user,
        peer=conn.peer if conn else "",
        queued=session.queue.messages,
        queued_bytes=session.queue.bytes,
        spilled=0 if session.spill is None else session.spill.count,
        spilled_bytes=0 if session.spill is None else session.spill.bytes,
        inflight=len(session.inflight),
        oldest_s=_oldest_s(session, now),
        paused=_paused(session),
        waits_for=conn.waits_for.client_id if conn is not None and conn.waits_for is not None else "",
        congested=()
        if backlog is None
        else tuple(
            broker.priorities.classes.names[level]
            for level in range(LEVELS - 1, -1, -1)
            if backlog.congestion.states[level]
        ),
        dropped=session.dropped,
    )


def _paused(session: Session) -> str:
    conn = session.connection
    if conn is None:
        return "away"
    if conn.hold is not None:
        return conn.hold.value
    if not session.queue.messages:
        return "caught_up"
    if not conn.quota and (session.queue.blocked or session.backlog is not None):
        return "inflight_full"
    return "busy"


def _oldest_s(session: Session, now: float) -> float:
    queue = session.queue
    if session.backlog is not None:
        heads = [session.backlog.policy.oldest(level) for level in range(LEVELS)]
        since = [head.since for head in heads if head is not None]
        if since:
            return max(0.0, now - min(since))
    for line in (queue.blocked, queue.entries):
        if line:
            return max(0.0, now - line[0][0].at)
    return 0.0


def standing_of(broker: Broker, client: str, now: float) -> list[Step]:
    """How a client is doing: connected or not, served or not, and why not."""
    session = broker.sessions.get(client)
    if session is None:
        return [no("client", f"there is no session {client}: it is not connected, and nothing is kept for it")]
    stands = standing(broker, session, now)
    where = f"connected from {stands.peer}" if stands.peer else "away"
    whose = f", user {session.user}" if session.user is not None else ""
    steps = [yes("client", f"{client} is {where}{whose}, with {len(session.subscriptions)} subscriptions")]
    to = f": the queue of {stands.waits_for}" if stands.waits_for else ""
    steps.append(note("served", f"{stands.paused}: {MEANING[stands.paused]}{to}"))
    if stands.queued:
        text = f"{stands.queued} messages, {stands.queued_bytes} bytes; the next one came {stands.oldest_s:.1f} s ago"
        messages, size = session.queue.bounds
        limits = f"limits: {messages} messages, {size} bytes"
        steps.append(note("queue", text, limits))
    if stands.spilled:
        text = (
            f"{stands.spilled} messages, {stands.spilled_bytes} bytes wait in the store alone, behind those in memory"
        )
        bounds = broker.settings.limits
        steps.append(note("spilled", text, f"limits: {bounds.spill_messages} messages, {bounds.spill_bytes} bytes"))
    if stands.inflight:
        window = f" of {session.connection.window}" if session.connection else ""
        steps.append(note("in flight", f"{stands.inflight}{window} messages wait for its acknowledgement"))
    if session.backlog is not None:
        classes = ", ".join(stands.congested) or "no class at the moment"
        steps.append(note("congested", f"congested in: {classes}", f"priority.policy = {session.backlog.policy.name}"))
    if stands.dropped:
        steps.append(note("dropped", f"{stands.dropped} messages that it should have got were discarded"))
    return steps


#: Subscriptions of one client that are looked at, and those that are listed.
LOOKED_AT: Final = 10_000
LISTED: Final = 50
#: The settings behind what the broker does not do.
_SWITCHES: Final = {
    Reason.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED: "mqtt.shared_available = false",
    Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED: "mqtt.wildcard_available = false",
}


def may_publish(broker: Broker, client: str, topic: str, now: float) -> list[Step]:
    """Whether a client may publish to a topic, by which rule, and what would stop it otherwise."""
    session = broker.sessions.get(client)
    conn = None if session is None else session.connection
    steps = list(standing_of(broker, client, now)[:2])
    name = name_step(broker, conn, topic)
    if name.outcome is Outcome.NO:
        return [*steps, name]
    steps.append(access_step(broker, client, "publish", topic))
    if steps[-1].outcome is Outcome.NO:
        return steps
    priorities = broker.priorities
    # the route is not asked: it may have a hundred thousand receivers
    ruled = broker.routes.level_of(topic)
    level = ruled if ruled >= 0 else own_level(broker, conn)
    origin = level_rule(broker, topic, conn)
    steps.append(note("level", f"{named_level(broker, level)}, unless the message claims another", origin))
    if conn is not None and not priorities.claims.is_open:
        granted = priorities.claims.look(conn, topic, URGENT, 1, now)
        text = f"at most {named_level(broker, granted.level)}, whatever it claims"
        steps.append(note("level", text, claim_rule(conn, granted.claim)))
    packet = broker.settings.limits.packet_bytes if conn is None else conn.allowance.packet_bytes
    most = priorities.classes.max_packet[level]
    if most is None or packet < most:
        steps.append(note("size", f"at most {packet} bytes", "limits.packet_bytes"))
    else:
        steps.append(note("size", f"at most {most} bytes", origin))
    steps.append(_subscribers(broker, topic))
    return steps


def _subscribers(broker: Broker, topic: str) -> Step:
    buckets = broker.routes.buckets(topic)
    plain = sum(len(bucket.members) for bucket in buckets)
    groups = sum(len(bucket.groups) for bucket in buckets)
    asking = sum(len(bucket.conditionals) for bucket in buckets if bucket.conditionals is not None)
    text = f"{plain} plain subscriptions, {groups} shared groups and {asking} conditions match; `trace` lists them"
    return note("subscribers", text) if plain or groups or asking else note("subscribers", "nobody is subscribed")


def may_subscribe(broker: Broker, client: str, written: str, now: float) -> list[Step]:
    """Whether a client may subscribe to a filter, by which rule, and which of its subscriptions already do."""
    session = broker.sessions.get(client)
    conn = None if session is None else session.connection
    steps = list(standing_of(broker, client, now)[:2])
    settings = broker.settings
    question_mark = settings.content.question_mark == "on"
    request = read_request(Subscription(filter=written), (), question_mark=question_mark)
    refusal = _filter_step(broker, conn, request)
    if refusal is not None:
        return [*steps, refusal]
    steps.append(access_step(broker, client, "subscribe", request.filter))
    if session is None or steps[-1].outcome is Outcome.NO:
        return steps
    most = bound(settings.limits.subscriptions) if conn is None else conn.allowance.subscriptions
    lack = lack_of_room(written, session, most, broker.routes.weight, settings.limits.subscriptions_total)
    if lack is not None:
        return [*steps, no("limit", f"{lack.rule}, and this one has {session.weight}", "limits")]
    steps += _own(broker, session, request.filter)
    lost = sum(one.messages for one in victims(broker, client=client, topic=request.filter))
    if lost:
        steps.append(note("dropped", f"{lost} messages of these topics were lost to it lately; see `dropped`"))
    return steps


def _filter_step(broker: Broker, conn: Connection | None, request: SubscriptionRequest) -> Step | None:
    """Why a filter is refused, whoever asks for it; None when it is not."""
    levels = broker.settings.limits.topic_levels if conn is None else conn.allowance.topic_levels
    try:
        refusal = refusal_of(request, broker.settings.mqtt, levels, 5 if conn is None else conn.version)
    except ProtocolError as error:
        return no("filter", str(error), error.clause)
    if refusal is None:
        return None
    stage = "condition" if refusal is request.refusal else "filter"
    return no(stage, refusal.rule, _SWITCHES.get(refusal.reason, ""))


def _own(broker: Broker, session: Session, filter_: str) -> Iterator[Step]:
    """The subscriptions of a session that have to do with a filter."""
    is_name = "+" not in filter_ and "#" not in filter_
    found: list[tuple[str, ActiveSubscription]] = []
    for written, subscription in islice(session.subscriptions.items(), LOOKED_AT):
        own = subscription.filter if isinstance(subscription, ConditionalSubscription) else split_share(written)[1]
        if matches(own, filter_) if is_name else overlap(own, filter_):
            found.append((written, subscription))
    if not found:
        yield no("subscribed", f"none of its {len(session.subscriptions)} subscriptions matches {filter_}")
        return
    for written, subscription in found[:LISTED]:
        how = f"{written} matches, QoS {subscription.options.qos}" + (
            ", No Local" if subscription.options.no_local else ""
        )
        if isinstance(subscription, ConditionalSubscription):
            yield unknown("subscribed", f"{how}; its condition depends on the message", subscription.predicate.text)
        else:
            yield yes("subscribed", how)
    if len(found) > LISTED:
        yield note("subscribed", f"and {len(found) - LISTED} more")
    refusal = may_not_read(broker, session, filter_) if is_name else None
    if refusal is not None:
        yield no("read", f"subscribed or not, it gets nothing of {filter_}", refusal)


def victims(
    broker: Broker,
    *,
    client: str | None = None,
    topic: str | None = None,
    why: Drop | None = None,
    level: int | None = None,
    since: float | None = None,
    most: int | None = None,
) -> list[Dropped]:
    """The last discarded messages that fit, newest first; ``topic`` is a filter, ``since`` a time of the broker."""
    found = (
        one
        for one in reversed(broker.account.last_drops)
        if (client is None or one.client == client)
        and (why is None or one.why is why)
        and (level is None or one.level == level)
        and (since is None or one.when >= since)
        and (topic is None or matches(topic, one.topic))
    )
    return list(islice(found, most))
