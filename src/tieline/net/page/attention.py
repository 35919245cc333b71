"""What needs attention: a table of rules, each of which looks at what is known and says what it finds.

A rule is a function without memory, so the table can be tested as a table.  The sentences are for whoever has to act:
what is wrong, whom it harms, and the command that tells more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from tieline.core.answers.why import MEANING
from tieline.net.page.seen import ClassSeen, ClientSeen, Finding, LinkSeen, Seen, State
from tieline.net.page.words import argument, duration, several, share, shortened, size
from tieline.sched.levels import URGENT

#: A client is slow when what goes next to it has waited so long, or when it has lost something and is still behind.
SLOW_S: Final = 1.0
#: A loop that is so late keeps everybody waiting.
LATE_S: Final = 0.05
VERY_LATE_S: Final = 0.5
#: The part of a link, and of the memory for what waits, that is nearly all of it.
FULL: Final = 0.8
QUITE_FULL: Final = 0.95
#: The part of payloads that cannot be read, and how many in a second, that is no accident.
UNREADABLE: Final = 0.01
UNREADABLE_PER_S: Final = 0.2
#: Logins refused unheard in a minute.
REFUSED_LOGINS: Final = 5

Rule = Callable[[Seen], Iterator[Finding]]


def attention(seen: Seen) -> list[Finding]:
    """Everything that needs attention now, the worst first."""
    found = [finding for rule in RULES for finding in rule(seen)]
    return sorted(found, key=lambda finding: (finding.state != "bad", -finding.weight))


def _store(seen: Seen) -> Iterator[Finding]:
    if seen.store_trouble:
        yield Finding(
            state="bad",
            title="The store takes nothing",
            text=f"{shortened(seen.store_trouble)}. Publishers of QoS 1 and 2 wait until it has room again.",
            command="tieline top",
            view="messages",
            verb="Watch",
            weight=9.0,
        )


def _urgent_lost(seen: Seen) -> Iterator[Finding]:
    if seen.dropped_urgent_hour:
        was = "was" if seen.dropped_urgent_hour == 1 else "were"
        yield Finding(
            state="bad",
            title=f"{several(seen.dropped_urgent_hour, 'urgent message')} {was} dropped",
            text="Somebody should have got them within the last hour, and did not.",
            command="tieline why '*' dropped --class 3",
            view="messages",
            verb="Which",
            weight=8.0,
        )


def _late_classes(seen: Seen) -> Iterator[Finding]:
    for each in seen.classes:
        worst = max(each.p99_s or 0.0, each.oldest_s)
        if worst <= each.limit_s:
            continue
        yield Finding(
            state="bad" if each.level == URGENT else "warn",
            title=f"Messages of class {shortened(each.name)} wait too long",
            text=f"{_how_long(each)}, and {duration(each.limit_s)} is their limit. {several(each.waiting, 'message')} "
            f"of the class {'waits' if each.waiting == 1 else 'wait'}.",
            command="tieline top --once",
            view="messages",
            subject=str(each.level),
            verb="Classes",
            weight=4.0 + each.level,
        )


def _how_long(each: ClassSeen) -> str:
    if each.oldest_s > each.limit_s:
        return f"The oldest has waited for {duration(each.oldest_s)}"
    return f"One of 100 waits for {duration(each.p99_s or 0.0)} or more"


def _memory(seen: Seen) -> Iterator[Finding]:
    limit = seen.waiting_limit
    if limit and seen.waiting_bytes >= FULL * limit:
        is_over = seen.waiting_bytes >= limit
        yield Finding(
            state="bad" if is_over else "warn",
            title="Memory for waiting messages is full" if is_over else "Memory for waiting messages is nearly full",
            text=f"{size(seen.waiting_bytes)} of {size(limit)} wait. At the bound, those that do not keep up get "
            "nothing more: it is dropped as `memory_full`, or its publishers are refused.",
            command="tieline clients --state slow",
            view="clients",
            verb="Who",
            weight=6.0,
        )


def _slow_clients(seen: Seen) -> Iterator[Finding]:
    for client in seen.slow:
        is_behind = bool(client.waiting) and client.why not in {"away", "caught_up"}
        if not is_behind or (client.oldest_s < SLOW_S and not client.dropped):
            continue
        yield _about(
            client,
            seen,
            f"{shortened(client.client)} is too slow for what it asked for",
            f"{_waits_for(client)} {several(client.waiting, 'message')} {'waits' if client.waiting == 1 else 'wait'}, "
            f"the next one for {duration(client.oldest_s)}.{_lost(client)}",
            weight=min(3.0, client.waiting_bytes / 1e7) + (0.5 if URGENT in client.behind else 0.0),
        )


def _waits_for(client: ClientSeen) -> str:
    if client.why == "busy":
        return "It waits for its own socket (`busy`)."
    if client.why == "inflight_full":
        return "It does not acknowledge what it got (`inflight_full`)."
    return f"It is held (`{client.why}`)."


def _lost(client: ClientSeen) -> str:
    return f" It has lost {several(client.dropped, 'message')}." if client.dropped else " It has lost nothing."


def _held_clients(seen: Seen) -> Iterator[Finding]:
    for client in seen.held:
        meaning = MEANING.get(client.why, f"it is not read ({client.why})")
        whose = f" Its place is behind {shortened(client.waits_for)}." if client.waits_for else ""
        yield _about(
            client,
            seen,
            f"{shortened(client.client)} is held",
            f"{meaning[:1].upper()}{meaning[1:]} (`{client.why}`).{whose}",
            weight=0.2,
        )


def _about(client: ClientSeen, seen: Seen, title: str, text: str, weight: float) -> Finding:
    named = argument(client.client)
    where = f" It is at broker {shortened(client.at)}." if client.at and client.at != seen.name else ""
    return Finding(
        state="warn",
        title=title,
        text=text + where,
        command="tieline clients --state slow" if named is None else f"tieline why {named}",
        view="clients",
        subject=shortened(client.client),
        weight=weight,
    )


def _late_loop(seen: Seen) -> Iterator[Finding]:
    if seen.lag_s > LATE_S:
        yield Finding(
            state="bad" if seen.lag_s > VERY_LATE_S else "warn",
            title="The broker is late itself",
            text=f"Its loop was {duration(seen.lag_s)} late: everything waits so much longer. Its processor is busy, "
            "or shared.",
            command="tieline top",
            view="messages",
            verb="Watch",
            weight=5.0,
        )


def _unreadable(seen: Seen) -> Iterator[Finding]:
    if seen.unreadable_per_s > UNREADABLE_PER_S and seen.unreadable_per_s > UNREADABLE * seen.read_per_s:
        part = seen.unreadable_per_s / max(seen.read_per_s, seen.unreadable_per_s)
        yield Finding(
            state="warn",
            title="Payloads cannot be read",
            text=f"{share(part)} of the messages that conditions look at are not what their event type says. Nobody "
            "who asks for a condition gets those.",
            command="tieline subscriptions --conditions",
            view="clients",
            verb="Conditions",
            weight=1.0,
        )


def _logins(seen: Seen) -> Iterator[Finding]:
    if seen.refused_logins >= REFUSED_LOGINS:
        yield Finding(
            state="warn",
            title="Logins are refused",
            text=f"{seen.refused_logins:,} logins of the last minute were "
            "refused unheard: too many before them had failed, or too many were being checked.",
            command="tieline top --once",
            view="clients",
            verb="Counters",
            weight=1.5,
        )


def _brokers(seen: Seen) -> Iterator[Finding]:
    for broker in seen.brokers:
        if broker.is_here:
            continue
        name = shortened(broker.name)
        if not broker.is_reachable:
            text = "No link leads there. What is assured for its clients is kept until one does; QoS 0 is dropped."
            yield _of_network("bad", f"Broker {name} cannot be reached", text, name, 7.0)
        elif broker.is_silent:
            said = "it has said nothing" if broker.age_s is None else f"its last word is {duration(broker.age_s)} old"
            text = f"A way leads there, and {said}: what is shown of it is from then."
            yield _of_network("warn", f"Broker {name} does not answer", text, name, 2.0)


def _links(seen: Seen) -> Iterator[Finding]:
    for link in seen.links:
        name, used = shortened(link.name), link.used
        if not link.is_up:
            since = "" if link.since_s is None else f" for {duration(link.since_s)}"
            why = f"{shortened(link.why)[:1].upper()}{shortened(link.why)[1:]}. " if link.why else ""
            yield _of_network("bad", f"Link {name} is down{since}", f"{why}{_way_around(link, seen)}", link.name, 6.5)
        elif used is not None and used >= FULL:
            state = "bad" if used >= QUITE_FULL else "warn"
            text = f"{_waiting_at(link)}What is urgent goes first; the rest of its traffic waits or is dropped by name."
            yield _of_network(state, f"Link {name} is {share(used)} full", text, link.name, 3.0 + used)


def _planner(seen: Seen) -> Iterator[Finding]:
    plan = seen.plan
    if plan is None or plan.planner not in _PLANNERS:
        return
    title, state = _PLANNERS[plan.planner]
    yield Finding(
        state=state,
        title=title,
        text=f"{shortened(plan.planner_said)[:1].upper()}{shortened(plan.planner_said)[1:]}.",
        command="tieline plan status",
        view="plan",
        verb="Compare plans",
        weight=1.2,
    )


#: What a planner does that somebody should know of.
_PLANNERS: Final[dict[str, tuple[str, State]]] = {
    "proposed": ("A plan that would help waits", "warn"),
    "refused": ("The plan that was found is no better", "warn"),
    "failed": ("The planner fails", "warn"),
}


def _waiting_at(link: LinkSeen) -> str:
    if not link.waiting:
        return ""
    return f"{several(link.waiting, 'message')} {'waits' if link.waiting == 1 else 'wait'} for it. "


def _way_around(link: LinkSeen, seen: Seen) -> str:
    lost = [broker.name for broker in seen.brokers if not broker.is_reachable and broker.name in link.ends]
    if lost:
        return "It was the only way there."
    return "Its traffic goes another way; nothing that is assured is lost."


def _of_network(state: str, title: str, text: str, subject: str, weight: float) -> Finding:
    return Finding(
        state="bad" if state == "bad" else "warn",
        title=title,
        text=text,
        command="tieline net",
        view="network",
        subject=subject,
        verb="Show link" if "–" in subject else "Show",
        weight=weight,
    )


#: Every rule; their order decides nothing.
RULES: Final[tuple[Rule, ...]] = (
    _store,
    _urgent_lost,
    _late_classes,
    _memory,
    _slow_clients,
    _held_clients,
    _late_loop,
    _unreadable,
    _logins,
    _brokers,
    _links,
    _planner,
)
