"""The sentence with which each view of the page begins, and the line below it; ``tieline top`` says the first one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tieline.net.page.attention import attention
from tieline.net.page.seen import Finding, PlanFigures, Seen, State, View
from tieline.net.page.words import are, beginning, duration, several, share, shortened, size
from tieline.sched.levels import URGENT

#: The states, the worst last.
_ORDER: Final[tuple[State, ...]] = ("ok", "warn", "bad")


class Verdict(Struct, frozen=True, kw_only=True):
    """How it is, in a sentence; ``detail`` is the evidence in a line, ``badge`` how much needs attention there."""

    state: State
    text: str
    detail: str = ""
    badge: int = 0


def verdicts(seen: Seen) -> tuple[dict[View, Verdict], list[Finding]]:
    """A verdict for each view that there is, and everything that needs attention, the worst first."""
    findings = attention(seen)
    by_view: dict[View, list[Finding]] = {}
    for finding in findings:
        by_view.setdefault(finding.view, []).append(finding)
    views: dict[View, Verdict] = {
        "overview": _overview(seen, findings),
        "messages": _messages(seen, by_view.get("messages", [])),
        "clients": _clients(seen, by_view.get("clients", [])),
        "network": _network(seen, by_view.get("network", [])),
        "plan": _plan(seen, by_view.get("plan", [])),
    }
    if seen.grid:
        views["grid"] = Verdict(state="ok", text="Voltage and frequency of every node.", detail=f"`{seen.grid}`")
    return views, findings


def _overview(seen: Seen, findings: Sequence[Finding]) -> Verdict:
    parts = [several(max(1, len(seen.brokers)), "broker")]
    down = sum(not link.is_up for link in seen.links)
    if down:
        parts.append(f"{several(down, 'link')} down")
    here = " here" if len(seen.brokers) > 1 else ""
    parts += [several(seen.connected, "client") + here, f"up {duration(seen.uptime_s)}"]
    detail = " · ".join(parts)
    if not findings:
        return Verdict(state="ok", text="Everything is in order.", detail=detail)
    needs = f"{beginning(len(findings), 'thing')} {'needs' if len(findings) == 1 else 'need'} attention."
    return Verdict(state=_worst(findings), text=f"{_urgent(seen)} {needs}", detail=detail, badge=len(findings))


def _urgent(seen: Seen) -> str:
    """Whether what matters most gets through."""
    if seen.dropped_urgent_hour:
        return "Urgent messages were lost."
    if any(each.level == URGENT and _is_late(each.p99_s, each.oldest_s, each.limit_s) for each in seen.classes):
        return "Urgent messages are late."
    return "Urgent messages arrive in time."


def _is_late(p99_s: float | None, oldest_s: float, limit_s: float) -> bool:
    return max(p99_s or 0.0, oldest_s) > limit_s


def _messages(seen: Seen, findings: Sequence[Finding]) -> Verdict:
    floor = f"floor {share(seen.floor)} for lower classes" if seen.floor else "no floor for lower classes"
    crowd = f"{seen.congested:,} of {seen.connected:,} clients {are(seen.congested)} congested"
    rest = ", the rest is first in, first out" if seen.congested else ": everything is first in, first out"
    detail = f"Policy `{seen.policy}` · {floor} · {crowd}{rest}"
    urgent = next((each for each in seen.classes if each.level == URGENT), None)
    if seen.dropped_urgent_hour:
        was = "was" if seen.dropped_urgent_hour == 1 else "were"
        text = f"{beginning(seen.dropped_urgent_hour, 'urgent message')} {was} dropped within the last hour."
    elif urgent is not None and _is_late(urgent.p99_s, urgent.oldest_s, urgent.limit_s):
        text = "Urgent messages wait longer than they may."
    elif urgent is not None and urgent.waiting:
        text = "Urgent first: what is urgent waits only for its own kind, and nothing of it was dropped."
    else:
        text = "Urgent first: nothing urgent waits or was dropped."
    return Verdict(state=_worst(findings), text=text, detail=detail, badge=len(findings))


def _clients(seen: Seen, findings: Sequence[Finding]) -> Verdict:
    slow = [finding for finding in findings if finding.title.endswith("asked for")]
    caught_up = max(0, seen.connected - seen.waiting - seen.held_count)
    parts = [f"{caught_up:,} of {seen.sessions:,} {are(caught_up)} caught up"]
    if seen.away:
        parts.append(f"{seen.away:,} {are(seen.away)} away")
    if seen.held_count:
        parts.append(f"{seen.held_count:,} {are(seen.held_count)} held")
    if slow:
        they = "it" if len(slow) == 1 else "they"
        text = f"{beginning(len(slow), 'client')} {are(len(slow))} slower than what {they} asked for."
    elif findings:
        text = f"{findings[0].title}."
    elif seen.sessions:
        text = "Every client keeps up."
    else:
        text = "Nobody is connected."
    return Verdict(state=_worst(findings), text=text, detail=" · ".join(parts), badge=len(findings))


def _network(seen: Seen, findings: Sequence[Finding]) -> Verdict:
    if len(seen.brokers) < 2 and not seen.links:
        return Verdict(
            state="ok", text="This broker stands alone.", detail="Join it with another by `tieline serve --join`."
        )
    parts = [several(len(seen.brokers), "broker"), f"strategy `{shortened(seen.strategy)}`"]
    if seen.plan is not None and seen.plan.epoch:
        parts[-1] += f", plan {seen.plan.epoch} where it covers"
    if seen.useless is not None:
        parts.append(f"{share(seen.useless)} of what came was useless")
    return Verdict(state=_worst(findings), text=_of_links(seen), detail=" · ".join(parts), badge=len(findings))


def _of_links(seen: Seen) -> str:
    gone = [broker for broker in seen.brokers if not broker.is_reachable]
    down = [link for link in seen.links if not link.is_up]
    full = [link for link in seen.links if link.is_up and (link.used or 0.0) >= 0.8]
    if gone:
        return f"{beginning(len(gone), 'broker')} cannot be reached."
    if down:
        found = "its traffic found another way" if len(down) == 1 else "their traffic found other ways"
        return f"{beginning(len(down), 'link')} of {len(seen.links)} {are(len(down))} down; {found}."
    if full:
        return f"{beginning(len(full), 'link')} of {len(seen.links)} {are(len(full))} nearly full."
    return f"All {several(len(seen.brokers), 'broker')} can be reached, and {_all_links(len(seen.links))} up."


def _all_links(count: int) -> str:
    return "the link is" if count == 1 else f"all {count} links are"


def _plan(seen: Seen, findings: Sequence[Finding]) -> Verdict:
    plan = seen.plan
    if plan is None:
        return Verdict(state="ok", text="There is nothing to plan: this broker stands alone.")
    state, badge = _worst(findings), len(findings)
    said = f"{shortened(plan.planner_said)[:1].upper()}{shortened(plan.planner_said)[1:]}" if plan.planner else ""
    good = plan.figures
    if good is not None and not good.is_applied:
        return Verdict(state=state, text=f"A plan waits that would {_serves(good)}.", detail=said, badge=badge)
    if not plan.epoch:
        text = "No plan is in force: messages take the shortest ways."
        hint = "Make one of the traffic that brokers carry with `tieline plan`."
        return Verdict(state=state, text=text, detail=said or hint, badge=badge)
    total = plan.planned + plan.astray
    kept = f"{share(plan.planned / total)} of what was published here went by it" if total else "nothing went by it yet"
    parts = [f"{several(plan.topics, 'topic')} of this broker", kept, *([said] if said else [])]
    if good is None:
        name = f" ({shortened(plan.name)})" if plan.name else ""
        text = f"Plan {plan.epoch}{name} is in force."
    else:
        text = f"Plan {plan.epoch} serves{_serves(good).removeprefix('serve')}."
        if good.waited is not None and good.waits is not None:
            parts.insert(0, f"Before it {size(good.waited)} waited for links, and {size(good.waits)} now")
    return Verdict(state=state, text=text, detail=" · ".join(parts), badge=badge)


def _serves(plan: PlanFigures) -> str:
    """How many a plan serves, and how good another one could be."""
    served = plan.requests - plan.unmet
    who = f"all {several(plan.requests, 'request')}" if not plan.unmet else f"{served:,} of {plan.requests:,} requests"
    if plan.gap is None:
        return f"serve {who}"
    better = "no plan is cheaper" if plan.gap < 1e-9 else f"no plan can be cheaper by more than {share(plan.gap)}"
    return f"serve {who}, and {better}"


def _worst(findings: Sequence[Finding]) -> State:
    return max((finding.state for finding in findings), key=_ORDER.index, default="ok")
