"""What a planner that stands by leaves with the brokers, so that pages and ``tieline plan status`` can show it.

All of it is bounded: it travels over the management channel, and brokers keep the last one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tieline.net.plan_requests import LinkReport, MoveReport, Passing, ProposalReport, StepReport

if TYPE_CHECKING:
    from tieline.plan.adapt.deviation import Expected
    from tieline.plan.adapt.next_plan import Proposal
    from tieline.plan.in_force import InForce
    from tieline.plan.reading.joined import NetAnswer
    from tieline.plan.run import Progress

#: Links, moves, steps of a search and brokers of a way in one report.
MOST_LINKS: Final = 64
MOST_MOVES: Final = 20
MOST_STEPS: Final = 60
MOST_BROKERS: Final = 32
#: Characters of a sentence.
LONGEST: Final = 400

#: What each broker says of its own links, by name.
Answers = Mapping[str, "NetAnswer"]


def passing(before: Answers, after: Answers, seconds: float) -> Passing:
    """What links carried between two answers of their brokers, and what waited for them at the second one.

    A broker that began again meanwhile counts from zero, and what it carried before is not known.
    """
    carried = waiting = 0.0
    for name, answer in after.items():
        then = {link.peer: link.bytes_out for link in before[name].own} if name in before else {}
        for link in answer.own:
            carried += max(0.0, link.bytes_out - then.get(link.peer, link.bytes_out))
            waiting += link.waiting_bytes
    return Passing(carried=carried / max(seconds, 1e-3), waiting=waiting)


def links(now: InForce, planned: Expected | None) -> tuple[LinkReport, ...]:
    """What links carry by the ways of now and what was planned for them, the fullest first."""
    from tieline.plan.adapt.deviation import capacities, loads

    expected = {} if planned is None else planned.loads
    rooms = capacities(now.instance)
    found = [
        LinkReport(ends=ends, load=load, planned=expected.get(ends), capacity=_finite(rooms[ends]))
        for ends, load in loads(now).items()
    ]
    found.sort(key=lambda link: (-(link.load / link.capacity if link.capacity else 0.0), link.ends))
    return tuple(found[:MOST_LINKS])


def proposed(found: Proposal, now: InForce, checker: str) -> ProposalReport:
    """A plan that was found, beside the ways of now."""
    from tieline.plan.in_force import moves

    rates = {topic.key: topic.rate for topic in now.instance.topics}
    moved = [
        MoveReport(
            topic=move.flow.topic[:LONGEST],
            rate=rates[move.flow.topic, move.flow.source],
            before=move.before[:MOST_BROKERS],
            after=move.after[:MOST_BROKERS],
        )
        for move in moves(now, found.after)
    ]
    moved.sort(key=lambda move: (-move.rate, move.topic))
    return ProposalReport(
        checker=checker[:LONGEST],
        flows_moved=found.moved,
        flows_left=found.left,
        shortfall_before=found.shortfall_before,
        shortfall_after=found.shortfall_after,
        objective_before=found.objective_before,
        objective_after=found.plan.objective,
        unmet=found.plan.unmet,
        seconds=found.seconds,
        bound=_finite(found.bound),
        requests=now.instance.request_count,
        topics=len(now.instance.topics),
        moves=tuple(moved[:MOST_MOVES]),
        steps=_steps(found.steps),
    )


def _steps(told: tuple[Progress, ...]) -> tuple[StepReport, ...]:
    """The steps in which plan or bound became better, the last one always."""
    found: list[StepReport] = []
    for one in told:
        if not math.isfinite(one.objective + one.bound):
            continue
        step = StepReport(seconds=round(one.seconds, 4), objective=one.objective, bound=one.bound)
        if not found or (found[-1].objective, found[-1].bound) != (step.objective, step.bound):
            found.append(step)
    thinned = found if len(found) <= MOST_STEPS else found[:: math.ceil(len(found) / (MOST_STEPS - 1))]
    return tuple(thinned if thinned[-1:] == found[-1:] else [*thinned, found[-1]])


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
