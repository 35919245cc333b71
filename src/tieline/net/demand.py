"""The question what a broker is asked to carry, from JSON to the core's own answers, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from tieline.core.figures.demand import DemandError

if TYPE_CHECKING:
    from tieline.core.broker import Broker

#: For how long a count may last, in seconds.
MOST_S: Final = 3_600.0


class Counting(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``{"do": "demand", …}``: begin to count, or take what was counted, a portion at a time."""

    do: Literal["demand"]
    act: Literal["begin", "take"]
    #: Begin: how long the count may last at most; nobody may come for it any more.
    seconds: Annotated[float, Meta(ge=1, le=MOST_S)] = 60.0
    #: Take: which count.
    number: int = 0


def answer(core: Broker, request: dict[str, Any], now: float, *, by: str = "") -> dict[str, Any]:
    """Answer one question; raises DemandError.  ``by`` is who asks, for the log."""
    try:
        asked = msgspec.convert(request, Counting)
    except msgspec.ValidationError as problem:
        raise DemandError(str(problem).lower()) from None
    if asked.act == "begin":
        return {"number": core.demand.begin(asked.seconds, now, by=by)}
    portion = core.demand.take(asked.number, now)
    return {
        "seconds": portion.seconds,
        "unnamed": portion.unnamed,
        "flows": portion.flows,
        "subscriptions": portion.subscriptions,
        "more": not portion.is_last,
    }
