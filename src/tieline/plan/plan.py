"""A plan: routes, what they are worth, how far from optimal that can be, and how it was found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from tieline.plan.routes import Route

FORMAT: Final = "tieline-plan-1"

#: optimal: no plan is better.  feasible: it obeys every limit.  interrupted: feasible, and the time was over.
Status = Literal["optimal", "feasible", "interrupted"]

#: Bound and value are taken for equal within this share: both are sums of many floats.
SAME: Final = 1e-6


class _Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan and its document have in common, in the order of the document."""

    instance: str
    method: str
    status: Status
    #: Cost of the links and price of the unmet requests together.
    objective: float
    cost: float
    #: The number of unmet requests.
    unmet: int
    #: What an unmet request of weight 1 costs: ``unmet_cost``, or more than any plan's links.
    unmet_price: float
    #: No plan has a smaller objective.
    bound: float
    seconds: float
    routes: tuple[Route, ...]
    #: Figures of the method, such as iterations or the value of its own model.
    notes: Mapping[str, float | str] = {}


class Plan(_Told, frozen=True, kw_only=True):
    """Which topic travels over which link."""

    @property
    def gap(self) -> float:
        """The share of the objective that an optimal plan might save at most; 0 when the bound is met."""
        return gap(self.objective, self.bound)

    def unmet_requests(self) -> tuple[tuple[str, str], ...]:
        """Topic and subscriber of every unmet request."""
        return tuple((route.topic, subscriber) for route in self.routes for subscriber in route.unmet)


def gap(objective: float, bound: float) -> float:
    """The relative distance of a value and a lower bound, between 0 and 1."""
    distance = objective - bound
    if distance <= SAME * max(1.0, abs(objective)):
        return 0.0
    return min(1.0, distance / abs(objective)) if math.isfinite(bound) else 1.0


class _Document(_Told, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: Literal["tieline-plan-1"]
    gap: float


def render(plan: Plan) -> bytes:
    """A plan as a JSON document."""
    document: dict[str, object] = {"format": FORMAT}
    for name in Plan.__struct_fields__:
        document[name] = getattr(plan, name)
        if name == "bound":
            document["gap"] = plan.gap
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def parse(text: str | bytes) -> Plan:
    """The plan in a JSON document; whether it is true is for :mod:`tieline.plan.proof` to say."""
    document = msgspec.json.decode(text, type=_Document)
    fields = {name: getattr(document, name) for name in Plan.__struct_fields__}
    return Plan(**fields)


def read(path: Path) -> Plan:
    """The plan in a file."""
    return parse(path.read_bytes())


def write(plan: Plan, path: Path) -> None:
    """Store a plan in a file."""
    path.write_bytes(render(plan))
