"""Requests about plans on the management channel: from JSON to what a joined broker does with them, and back.

A broker makes no plans.  Whoever does so beside it may leave a report of what was seen and done last, and anybody who
asks the broker for its plan is given that too, with its age: a planner that has died is a report that grows old.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal  # Any: values of JSON

import msgspec
from msgspec import Meta

from tieline.net.inquiry import InquiryError
from tieline.overlay.plans import PlanError, PlanPiece

if TYPE_CHECKING:
    from tieline.net.peers import Peers
    from tieline.overlay.joined import Joined

#: What is counted of messages that go by a plan, or do not although one is in force.
COUNTED: Final = ("planned", "plan_uncovered", "plan_unknown", "plan_links_down", "plan_loops")


#: Bytes of one answer about clients, and what each takes beside its name.
_CLIENTS_BYTES: Final = 24_000
_BESIDE: Final = 4

_Sentence = Annotated[str, Meta(max_length=400)]
_Name = Annotated[str, Meta(max_length=256)]


class LinkReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a link between two brokers carries and can, in what the planner counts in a second; None for no limit."""

    ends: tuple[_Name, _Name]
    load: float
    planned: float | None
    capacity: float | None


class MoveReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A flow that takes another way, by the brokers on it, and what it carries in a second."""

    topic: Annotated[str, Meta(max_length=400)]
    rate: float
    before: Annotated[tuple[_Name, ...], Meta(max_length=32)]
    after: Annotated[tuple[_Name, ...], Meta(max_length=32)]


class StepReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a search was after so many seconds: the best plan, and what none can be below."""

    seconds: float
    objective: float
    bound: float


class ProposalReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A plan that was found: what it would change, and what the checker says of it."""

    checker: _Sentence
    flows_moved: int
    flows_left: int
    shortfall_before: float
    shortfall_after: float
    objective_before: float | None
    objective_after: float
    unmet: int
    seconds: float
    #: No plan has an objective below this.
    bound: float | None = None
    requests: int | None = None
    topics: int | None = None
    #: The largest of what moves, and how the search went.
    moves: Annotated[tuple[MoveReport, ...], Meta(max_length=20)] = ()
    steps: Annotated[tuple[StepReport, ...], Meta(max_length=60)] = ()


class Passing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all links between brokers carried in a second, both directions together, and what waited for them."""

    carried: float
    waiting: float


class AppliedReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The last plan of this planner that moved something, what was measured before it, and what has been since."""

    #: The plan in force: later ones that moved nothing count as this one.
    epoch: int
    #: By what messages went before; 0 for the shortest ways.
    before_epoch: int
    #: How long ago, when the report was made.
    ago_s: float
    proposal: ProposalReport
    #: The links before it: their load, and what it planned for them.
    links: Annotated[tuple[LinkReport, ...], Meta(max_length=64)] = ()
    before: Passing | None = None
    #: What was measured at the last look; None until there was one.
    after: Passing | None = None


class PlannerReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a planner has seen and done at its last look."""

    #: stays: the plan is what it was; waits: it may not be changed so soon; proposed: it would be, but for --dry.
    state: Literal["stays", "waits", "proposed", "applied", "refused", "failed"]
    verdict: _Sentence
    look: int
    every_s: float
    reasons: Annotated[tuple[_Sentence, ...], Meta(max_length=20)] = ()
    proposal: ProposalReport | None = None
    links: Annotated[tuple[LinkReport, ...], Meta(max_length=64)] = ()
    unit: Literal["bytes", "messages"] = "bytes"
    #: What all publishers together sent in a second, as far as others want it.
    published: float | None = None
    applied: AppliedReport | None = None


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``{"do": "plan", …}``: look, take in a piece of a plan, say one again, go by a plan, keep a report, or agree."""

    do: Literal["plan"]
    act: Literal["show", "put", "get", "use", "report", "agree", "clients", "move"] = "show"
    #: Put: the piece.
    piece: PlanPiece | None = None
    #: Use: the plan to go by; 0 for none.  Get: the plan that the piece is of.
    epoch: Annotated[int, Meta(ge=0)] = 0
    #: Get: which piece.
    number: Annotated[int, Meta(ge=0)] = 0
    #: Report: what a planner has to say.
    report: PlannerReport | None = None
    #: Agree: how long all brokers count traffic, how long they agree then, and the share of links that is left free.
    count_s: Annotated[float, Meta(ge=0.1, le=3_000)] = 10.0
    agree_s: Annotated[float, Meta(ge=1, le=3_000)] = 30.0
    headroom: Annotated[float, Meta(ge=0, le=0.9)] = 0.1
    #: Clients: those behind this one.  Move: this one, and the broker that it should use.
    client: Annotated[str, Meta(max_length=65_535)] = ""
    to: Annotated[str, Meta(max_length=256)] = ""


class PlanDoor:
    """The plans of one broker, for those who ask by JSON."""

    def __init__(self, peers: Peers[Joined]) -> None:
        self._peers = peers
        #: The last that a planner has said, and when.
        self._report: tuple[PlannerReport, float] | None = None
        peers.joined.on_agreed = self._agreed
        peers.joined.agreeing.capacity = peers.capacity_of

    @property
    def epoch(self) -> int:
        """The number of the plan in force; 0 for none."""
        return self._peers.joined.plans.tables.epoch

    def answer(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        """Do what a request asks for; raises InquiryError, and then nothing has changed."""
        try:
            asked = msgspec.convert(request, PlanRequest)
        except msgspec.ValidationError as problem:
            raise InquiryError(str(problem).lower()) from None
        joined = self._peers.joined
        try:
            if asked.act == "put":
                if asked.piece is None:
                    raise PlanError('"put" needs a piece')
                joined.take_plan(asked.piece, now)
            elif asked.act == "get":
                return {"piece": msgspec.to_builtins(joined.plans.piece(asked.epoch, asked.number))}
            elif asked.act == "report":
                if asked.report is None:
                    raise PlanError('"report" needs a report')
                self._report = asked.report, now
            elif asked.act == "clients":
                return self._clients(asked.client)
            elif asked.act == "move":
                return self._move(asked.client, asked.to, now)
            elif asked.act == "agree":
                # later than every plan that was made with the clock or by counting
                epoch = max(int(time()), 1 + max(joined.plans.tables.tables, default=0))
                joined.agreeing.begin(epoch, asked.count_s, asked.agree_s, asked.headroom, now)
            elif asked.act == "use":
                before = joined.plans.tables.epoch
                joined.go_by_plan(asked.epoch, now)
                self._peers.tune_all(now)
                if asked.epoch != before:
                    self._tell(asked.epoch)
        except PlanError as problem:
            raise InquiryError(str(problem)) from None
        return self._shown(now)

    def _clients(self, after: str) -> dict[str, Any]:
        """A part of those clients here that may be sent to another broker, and where this one is reached."""
        core = self._peers.core
        able = sorted(
            session.client_id
            for session in core.sessions.values()
            if session.connection is not None and session.connection.is_movable and session.client_id > after
        )
        part, size = list[str](), 0
        for client in able:
            size += len(client.encode()) + _BESIDE
            if size > _CLIENTS_BYTES:
                break
            part.append(client)
        overlay = core.settings.overlay
        return {"reference": overlay.reference, "clients": part, "more": len(part) < len(able)}

    def _move(self, client: str, to: str, now: float) -> dict[str, Any]:
        core, joined = self._peers.core, self._peers.joined
        number = joined.node.directory.find(to)
        where = "" if number is None else joined.moves.reference_of(number)
        if not where:
            raise InquiryError(f"nobody knows where clients reach broker {to}")
        session = core.sessions.get(client)
        if session is None or session.connection is None or not core.move(session.connection, where, now):
            raise InquiryError(f"client {client} is not here any more, or may not be sent elsewhere")
        return {"client": client, "reference": where}

    def _agreed(self, epoch: int, now: float) -> None:
        self._peers.tune_all(now)
        self._tell(epoch)

    def _tell(self, epoch: int) -> None:
        plans = self._peers.joined.plans
        said = (
            f"what is published here goes by plan {epoch} ({plans.name})" if epoch else "no plan is in force any more"
        )
        self._peers.tell("plan", "", "", said)

    def _shown(self, now: float) -> dict[str, Any]:
        joined = self._peers.joined
        plans, counts = joined.plans, joined.node.counts
        table = plans.tables.tables.get(plans.tables.epoch)
        return {
            "name": joined.name,
            "strategy": joined.node.carrier.strategy.name,
            "epoch": plans.tables.epoch,
            "plan": plans.name,
            "epochs": [*plans.tables.tables],
            "ways": 0 if table is None else table.entries,
            "topics": 0 if table is None else table.topics,
            "paces": plans.paces,
            "counts": {name: getattr(counts, name) for name in COUNTED},
            "agreeing": joined.agreeing.shown(),
            "planner": self._reported(now),
        }

    def _reported(self, now: float) -> dict[str, Any] | None:
        if self._report is None:
            return None
        report, when = self._report
        return {"age_s": now - when, **msgspec.to_builtins(report)}
