"""One look of a planner that stands by: measure the network, compare it with its plan, and give it the next one.

Nothing of this is needed for messages to travel.  A look that fails changes nothing, and whatever ends the planner
leaves brokers with the plan that they have.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple  # Any: values of JSON

import msgspec

from tieline.cli.management import Management, RunningBroker, Visitor
from tieline.cli.plan.brokers import RunningBroker as Asked
from tieline.cli.plan.brokers import survey
from tieline.cli.plan.files import instance_in
from tieline.cli.plan.installing import Said, all_brokers, check_brokers, install, parts_in_force, several
from tieline.cli.plan.network import briefs, everywhere, net_of
from tieline.cli.plan.reporting import LONGEST, links, passing, proposed
from tieline.cli.trouble import MISUSED, Trouble
from tieline.net.plan_requests import AppliedReport, PlannerReport

if TYPE_CHECKING:
    from tieline.net.plan_requests import Passing
    from tieline.plan.adapt.deviation import Expected
    from tieline.plan.adapt.next_plan import Proposal
    from tieline.plan.in_force import InForce
    from tieline.plan.instance import Instance
    from tieline.plan.reading.backbone import Backbone
    from tieline.plan.reading.steady import Steadied
    from tieline.plan.tables import Part

State = Literal["stays", "waits", "proposed", "applied", "refused", "failed"]
#: Reasons of a report.
_MOST_REASONS: Final = 20
#: Paces that differ by less than this share are the same.
_SAME_PACE: Final = 0.05


class Wishes(NamedTuple):
    """How to watch, and how much may be changed."""

    #: Seconds of each look, in which brokers count.
    every_s: float
    #: Seconds from one plan to the next at least.
    least_s: float
    #: The share of a link's capacity by which its load may differ from the plan.
    margin: float
    #: The share of each link's capacity that is left free.
    headroom: float
    #: Flows that may move only because that saves something.
    most_moves: int
    #: Seconds that a search for a plan may take.
    search_s: float
    unit: Literal["bytes", "messages"]
    party: Literal["client", "broker"]
    #: An instance with the traffic, such as `tieline pipeline traffic` writes; None to count at the brokers.
    traffic: Path | None
    is_dry: bool


class Outcome(NamedTuple):
    """What a look came to."""

    state: State
    verdict: str
    reasons: tuple[str, ...] = ()
    now: InForce | None = None
    proposal: Proposal | None = None
    checker: str = ""
    #: From the end of what was counted until the plan was in force, or until it was clear that there is none.
    took_s: float = 0.0


class _Seen(NamedTuple):
    """What a look has measured."""

    instance: Instance
    #: The same with all that links carry, nothing of which is left free.
    whole: Instance
    brokers: Said
    parts: dict[str, Part]
    at: Mapping[str, str]
    now: InForce
    #: When the counting was over.
    counted_at: float
    #: What links carried meanwhile, and what waited for them at its end.
    passing: Passing


class Looks:
    """The looks of one planner, and what it remembers from one to the next."""

    def __init__(self, at: RunningBroker, wishes: Wishes) -> None:
        self._at = at
        self._wishes = wishes
        self._steadied: Steadied | None = None
        #: What the plan in force was made for; None before the first look.
        self._expected: Expected | None = None
        self._applied_at = -math.inf
        #: The last plan that moved something, as reports tell it, and since when it is in force; None before the first.
        self._applied: AppliedReport | None = None
        self._moved_at = 0.0
        #: What the last look has measured of links; None if it has failed.
        self._passing: Passing | None = None
        #: Flows that a better plan would still move.
        self._left = 0
        self._number = 0
        self._counted_at = time.monotonic()

    def look(self) -> Outcome:
        """Measure, compare, and re-plan if there is a reason to; the brokers are told what came of it."""
        self._number += 1
        self._passing = None
        with self._at.reach() as channel:
            found = self._look(channel)
            found = found._replace(took_s=time.monotonic() - self._counted_at)
            channel.ask("plan", act="report", report=self._report(found))
            return found

    def _look(self, channel: Management) -> Outcome:
        from tieline.plan.flaws import Flawed

        try:
            seen = self._see(channel)
            self._counted_at, self._passing = seen.counted_at, seen.passing
        except Flawed as flaw:
            return Outcome("stays", f"{flaw}: there is nothing to plan for")
        if self._expected is None:
            from tieline.plan.adapt.deviation import expected

            # what runs when the first look is taken is what later ones are compared with
            self._expected = expected(seen.now, knows_left=False)
        reasons = tuple(self._reasons(seen))
        epoch = max(said["epoch"] for said in seen.brokers.values())
        if not reasons:
            return Outcome("stays", f"plan {epoch} stays: everything is as it was planned", now=seen.now)
        wait_s = self._applied_at + self._wishes.least_s - time.monotonic()
        if wait_s > 0:
            said = f"plan {epoch} stays for now: the next plan may come in {wait_s:.0f} s"
            return Outcome("waits", said, reasons, seen.now)
        return self._replan(channel, seen, epoch, reasons)

    def _see(self, channel: Management) -> _Seen:
        from tieline.plan.in_force import InForce, homes
        from tieline.plan.instance import UNLIMITED
        from tieline.plan.reading.joined import with_headroom, with_links

        answer = net_of(channel)
        if answer is None:
            raise Trouble("this broker is not joined with others: there is nothing to plan.", code=MISUSED)
        in_bytes = self._wishes.unit == "bytes"
        reached, reached_at = everywhere(channel, answer, capacity=UNLIMITED, in_bytes=in_bytes), time.monotonic()
        running = with_headroom(reached.backbone, self._wishes.headroom)
        if self._wishes.traffic is None:
            instance = self._counted(reached.brokers, running)
        else:
            time.sleep(self._wishes.every_s)
            instance = with_links(instance_in(str(self._wishes.traffic)), running)
        counted_at = time.monotonic()
        passed = passing(reached.answers, briefs(reached.brokers), counted_at - reached_at)
        said = all_brokers(channel)
        parts, at = parts_in_force(channel, said), homes(instance)
        return _Seen(
            instance,
            with_links(instance, reached.backbone),
            said,
            parts,
            at,
            InForce(instance, at, parts),
            counted_at,
            passed,
        )

    def _counted(self, brokers: list[Asked], running: Backbone) -> Instance:
        from tieline.overlay.plans import FRAMED
        from tieline.plan.reading.running import observed
        from tieline.plan.reading.steady import Steadied

        if self._steadied is None:
            self._steadied = Steadied()
        surveys = self._steadied.after(survey(brokers, self._wishes.every_s, Visitor(), is_told=False))
        wishes = self._wishes
        return observed(surveys, running, name="running", unit=wishes.unit, party=wishes.party, framed=FRAMED).instance

    def _reasons(self, seen: _Seen) -> list[str]:
        from tieline.plan.adapt.deviation import departures

        epochs = {name: said["epoch"] for name, said in seen.brokers.items()}
        newest = max(epochs.values())
        if not newest:
            return ["no plan is in force", *departures(None, seen.now, margin=self._wishes.margin)]
        behind = sorted(name for name, epoch in epochs.items() if epoch != newest)
        found = [f"plan {newest} is not in force at {', '.join(behind)}"] if behind else []
        found += departures(self._expected, seen.now, margin=self._wishes.margin)
        if self._left:
            found.append(f"{several(self._left, 'flow')} could take a cheaper way")
        return found

    def _replan(self, channel: Management, seen: _Seen, epoch: int, reasons: tuple[str, ...]) -> Outcome:
        from tieline.plan.adapt.deviation import expected
        from tieline.plan.adapt.next_plan import next_plan

        wishes = self._wishes
        found = next_plan(
            seen.instance,
            seen.now,
            seen.at,
            most_moves=wishes.most_moves,
            paced=seen.whole if wishes.unit == "bytes" else None,
            seconds=wishes.search_s,
        )
        checker = f"proven: every limit is kept, {several(found.plan.unmet, 'request')} left to the shortest way"
        self._left = found.left
        objection = found.objection
        if objection is not None:
            said = f"plan {epoch} stays: the one that was found is no better, because {objection}"
            self._expected = expected(seen.now)
            return Outcome("refused", said, reasons, seen.now, found, f"refused: {objection}")
        behind = any(said["epoch"] != epoch for said in seen.brokers.values())
        if epoch and not behind and _is_same(seen, found):
            self._expected = expected(seen.now)
            return Outcome("stays", f"plan {epoch} stays: no better one is known", reasons, seen.now, found, checker)
        concerned = check_brokers(seen.brokers, dict(found.parts))
        change = f"{several(found.moved, 'flow')} moved"
        if found.shortfall_before > 0:
            change += (
                f", {found.shortfall_before:,.0f} would not have got through and {found.shortfall_after:,.0f} will not"
            )
        if wishes.is_dry:
            said = f"plan {epoch + 1} could be applied to {several(len(concerned), 'broker')}: {change}"
            return Outcome("proposed", said, reasons, seen.now, found, checker)
        number = install(channel, seen.brokers, concerned, seen.instance.name)
        self._applied_at = time.monotonic()
        self._expected = expected(found.after)
        self._remember(number, epoch, seen, found, checker)
        said = f"plan {number} is in force at {several(len(concerned), 'broker')}: {change}"
        return Outcome("applied", said, reasons, seen.now, found, checker)

    def _remember(self, number: int, before: int, seen: _Seen, found: Proposal, checker: str) -> None:
        """Keep what was before the plan that is now in force, to compare it with what later looks measure."""
        if self._applied is not None and not found.moved:
            # only paces are others: what is compared is still the plan that has moved something
            self._applied = msgspec.structs.replace(self._applied, epoch=number)
            return
        self._moved_at = self._applied_at
        self._applied = AppliedReport(
            epoch=number,
            before_epoch=before,
            ago_s=0.0,
            proposal=proposed(found, seen.now, checker),
            links=links(seen.now, self._expected),
            before=seen.passing,
        )

    def _report(self, outcome: Outcome) -> dict[str, Any]:
        found, now = outcome.proposal, outcome.now
        report = PlannerReport(
            state=outcome.state,
            verdict=outcome.verdict[:LONGEST],
            look=self._number,
            every_s=self._wishes.every_s,
            reasons=tuple(reason[:LONGEST] for reason in outcome.reasons[:_MOST_REASONS]),
            proposal=None if found is None or now is None else proposed(found, now, outcome.checker),
            links=() if now is None else links(now, self._planned(outcome)),
            unit=self._wishes.unit,
            published=None if now is None else sum(topic.rate for topic in now.instance.topics),
            applied=self._since(outcome),
        )
        told: dict[str, Any] = msgspec.to_builtins(report)
        return told

    def _planned(self, outcome: Outcome) -> Expected | None:
        """What the plan of an outcome is to put on links: the one that is found, or else the one in force."""
        from tieline.plan.adapt.deviation import expected

        found = outcome.proposal
        return expected(found.after) if outcome.state == "proposed" and found is not None else self._expected

    def _since(self, outcome: Outcome) -> AppliedReport | None:
        """The plan that was applied last, with what this look has measured since."""
        if self._applied is None:
            return None
        # what the look counted in which it was applied, was before it
        after = None if self._moved_at == self._applied_at and outcome.state == "applied" else self._passing
        return msgspec.structs.replace(self._applied, ago_s=time.monotonic() - self._moved_at, after=after)


def _is_same(seen: _Seen, found: Proposal) -> bool:
    """Whether a plan would change neither ways nor, by much, the paces of links."""
    if found.after.ways != seen.now.ways or found.after.uncovered != seen.now.uncovered:
        return False
    return all(
        abs(pace - seen.parts[broker].paces.get(peer, 0.0)) <= _SAME_PACE * pace
        for broker, part in found.parts.items()
        if broker in seen.parts
        for peer, pace in part.paces.items()
    )
