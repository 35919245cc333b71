"""Requests about plans on the management channel: from JSON to what a joined broker does with them, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal  # Any: values of JSON

import msgspec
from msgspec import Meta

from tieline.net.inquiry import InquiryError
from tieline.overlay.plans import Piece, PlanError

if TYPE_CHECKING:
    from tieline.net.peers import Peers

#: What is counted of messages that go by a plan, or do not although one is in force.
COUNTED: Final = ("planned", "plan_uncovered", "plan_unknown", "plan_links_down", "plan_loops")


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``{"do": "plan", …}``: look, take in a piece of a plan, give one out again, or go by a plan."""

    do: Literal["plan"]
    act: Literal["show", "put", "get", "use"] = "show"
    #: Put: the piece.
    piece: Piece | None = None
    #: Use: the plan to go by; 0 for none.  Get: the plan that the piece is of.
    epoch: Annotated[int, Meta(ge=0)] = 0
    #: Get: which piece.
    number: Annotated[int, Meta(ge=0)] = 0


class PlanDoor:
    """The plans of one broker, for those who ask by JSON."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

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
            elif asked.act == "use":
                before = joined.plans.tables.epoch
                joined.go_by_plan(asked.epoch, now)
                self._peers.tune_all(now)
                if asked.epoch != before:
                    self._tell(asked.epoch)
        except PlanError as problem:
            raise InquiryError(str(problem)) from None
        return self._shown()

    def _tell(self, epoch: int) -> None:
        plans = self._peers.joined.plans
        said = (
            f"what is published here goes by plan {epoch} ({plans.name})" if epoch else "no plan is in force any more"
        )
        self._peers.tell("plan", "", "", said)

    def _shown(self) -> dict[str, Any]:
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
        }
