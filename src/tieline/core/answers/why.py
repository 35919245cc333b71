"""Why something happens to one client: what it may publish, what it may subscribe to, what it lost.

Answers are made of the state as it is; asking changes nothing.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from tieline.conf.schema import bound
from tieline.core.account import Drop, Dropped
from tieline.core.answers.standing import MEANING, standing
from tieline.core.answers.steps import Outcome, Step, login_of, may_not_read, no, note, unknown, verdict_on, yes
from tieline.core.inbound.publish import RESERVED
from tieline.core.inbound.subscription_request import read_request
from tieline.core.routing.route import Conditional, weight_of
from tieline.match.cover.filters import overlap
from tieline.wire.errors import ProtocolError
from tieline.wire.packets import Subscription
from tieline.wire.topics import check_filter, check_name, matches, split_share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tieline.core.broker import Broker
    from tieline.core.client import Session
    from tieline.core.receiver import Held

#: Subscriptions of one client that are looked at, and those that are listed.
LOOKED_AT: Final = 10_000
LISTED: Final = 50


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
    if stands.inflight:
        window = f" of {session.connection.window}" if session.connection else ""
        steps.append(note("in flight", f"{stands.inflight}{window} messages wait for its acknowledgement"))
    if session.backlog is not None:
        classes = ", ".join(stands.congested) or "no class at the moment"
        steps.append(note("congested", f"congested in: {classes}", f"priority.policy = {session.backlog.policy.name}"))
    if stands.dropped:
        steps.append(note("dropped", f"{stands.dropped} messages that it should have got were discarded"))
    return steps


def may_publish(broker: Broker, client: str, topic: str, now: float) -> list[Step]:
    """Whether a client may publish to a topic, by which rule, and what would stop it otherwise."""
    session = broker.sessions.get(client)
    conn = None if session is None else session.connection
    steps = list(standing_of(broker, client, now)[:2])
    limits = broker.settings.limits
    try:
        check_name(topic, limits.topic_levels if conn is None else conn.allowance.topic_levels)
    except ProtocolError as error:
        return [*steps, no("name", str(error), error.clause)]
    if topic.startswith(RESERVED):
        return [*steps, no("access", "$SYS belongs to the broker")]
    steps.append(verdict_on(broker, login_of(broker, client), "publish", topic))
    if steps[-1].outcome is Outcome.NO:
        return steps
    rule = next((rule for rule in broker.settings.class_ if matches(rule.filter, topic)), None)
    level = rule.level if rule is not None else broker.priorities.default_level if conn is None else conn.level
    origin = f'[[class]] name = "{rule.name}", filter = "{rule.filter}"' if rule is not None else "its own level"
    steps.append(
        note("level", f"{level}, {broker.priorities.classes.names[level]}, unless the message claims another", origin)
    )
    if conn is not None and not broker.priorities.claims.is_open:
        granted, claim = broker.priorities.claims.look(conn, topic, 3, now)
        by = (
            f"listener {conn.listener}"
            if claim is None
            else f'[[claim]] user = "{claim.user}", filter = "{claim.filter}"'
        )
        steps.append(
            note("level", f"at most {granted}, {broker.priorities.classes.names[granted]}, whatever it claims", by)
        )
    packet = limits.packet_bytes if conn is None else conn.allowance.packet_bytes
    own = broker.priorities.classes.max_packet[level]
    most = packet if own is None else min(own, packet)
    steps.append(note("size", f"at most {most} bytes", "limits.packet_bytes" if own is None else origin))
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
    mqtt, limits = broker.settings.mqtt, broker.settings.limits
    request = read_request(
        Subscription(filter=written), (), question_mark=broker.settings.content.question_mark == "on"
    )
    if request.refusal is not None:
        return [*steps, no("condition", request.refusal.rule)]
    try:
        bare = request.filter if request.share is None else f"$share/{request.share}/{request.filter}"
        check_filter(bare, limits.topic_levels if conn is None else conn.allowance.topic_levels)
    except ProtocolError as error:
        return [*steps, no("filter", str(error), error.clause)]
    if request.share is not None and not mqtt.shared_available:
        return [*steps, no("filter", "shared subscriptions are switched off", "mqtt.shared_available = false")]
    if not mqtt.wildcard_available and ("+" in request.filter or "#" in request.filter):
        return [*steps, no("filter", "wildcards are switched off", "mqtt.wildcard_available = false")]
    steps.append(verdict_on(broker, login_of(broker, client), "subscribe", request.filter))
    if session is None or steps[-1].outcome is Outcome.NO:
        return steps
    most = bound(limits.subscriptions) if conn is None else conn.allowance.subscriptions
    if session.weight + weight_of(written) > most and written not in session.subscriptions:
        return [*steps, no("limit", f"it may have {most} subscriptions, and has {session.weight}", "subscriptions")]
    steps += _own(broker, session, request.filter)
    lost = sum(one.messages for one in victims(broker, client=client, topic=request.filter))
    if lost:
        steps.append(note("dropped", f"{lost} messages of these topics were lost to it lately; see `dropped`"))
    return steps


def _own(broker: Broker, session: Session, filter_: str) -> Iterator[Step]:
    """The subscriptions of a session that have to do with a filter."""
    is_name = "+" not in filter_ and "#" not in filter_
    found: list[tuple[str, Held]] = []
    for written, held in islice(session.subscriptions.items(), LOOKED_AT):
        own = held.filter if isinstance(held, Conditional) else split_share(written)[1]
        if matches(own, filter_) if is_name else overlap(own, filter_):
            found.append((written, held))
    if not found:
        yield no("subscribed", f"none of its {len(session.subscriptions)} subscriptions matches {filter_}")
        return
    for written, held in found[:LISTED]:
        how = f"{written} matches, QoS {held.options.qos}" + (", No Local" if held.options.no_local else "")
        if isinstance(held, Conditional):
            yield unknown("subscribed", f"{how}; its condition depends on the message", held.predicate.text)
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
