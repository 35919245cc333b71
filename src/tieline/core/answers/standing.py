"""Where a session stands: what waits for it, for how long, and why it is not served."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tieline.core.answers.steps import Step, no, note, yes
from tieline.core.broker import Broker
from tieline.core.client import Hold, Session
from tieline.sched.levels import LEVELS

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
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One session at one moment."""

    client: str
    user: str | None
    peer: str
    queued: int
    queued_bytes: int
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
    if stands.inflight:
        window = f" of {session.connection.window}" if session.connection else ""
        steps.append(note("in flight", f"{stands.inflight}{window} messages wait for its acknowledgement"))
    if session.backlog is not None:
        classes = ", ".join(stands.congested) or "no class at the moment"
        steps.append(note("congested", f"congested in: {classes}", f"priority.policy = {session.backlog.policy.name}"))
    if stands.dropped:
        steps.append(note("dropped", f"{stands.dropped} messages that it should have got were discarded"))
    return steps
