"""Who asks for what by content: each condition with how many messages it looked at, and how many of those it wanted.

Counting begins with the first question and ends when nobody has asked for a while.  However many ask, what was counted
is looked through at most once a second, in portions.
"""

from __future__ import annotations

import asyncio
from heapq import nlargest
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal  # Any: values of JSON

import msgspec
from msgspec import Meta

from tieline.core.answers.listing import PAUSE
from tieline.core.routing.match_counts import Counted, MatchCounts
from tieline.core.routing.route import ConditionalSubscription
from tieline.net.inquiry import InquiryError
from tieline.net.page.words import shortened

if TYPE_CHECKING:
    from tieline.core.broker import Broker

#: Conditions in one answer, and how old an answer may be.
MOST: Final = 200
FRESH_S: Final = 1.0
#: Nobody is counted for whom nobody has asked so long.
FORGET_S: Final = 15.0


class Conditions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``{"do": "conditions"}``: the conditions that want most, and those that are asked about every message."""

    do: Literal["conditions"]
    most: Annotated[int, Meta(ge=1, le=MOST)] = 50


class Asked:
    """Answers that question for one broker."""

    def __init__(self, core: Broker) -> None:
        self._core = core
        self._asked_at = float("-inf")
        self._found: list[dict[str, Any]] = []
        self._found_at = float("-inf")
        self._counting_s = 0.0
        self._looking = asyncio.Lock()

    async def answer(self, question: dict[str, Any], now: float) -> dict[str, Any]:
        """The answer of this second; raises InquiryError."""
        try:
            asked = msgspec.convert(question, Conditions)
        except msgspec.ValidationError as problem:
            raise InquiryError(str(problem).lower()) from None
        self._asked_at = now
        if self._core.content.counts is None:
            self._core.content.counts = MatchCounts(now)
            self._found_at = float("-inf")
            await self._look(None, now)
        elif now - self._found_at >= FRESH_S and not self._looking.locked():
            await self._look(self._core.content.counts.take(now), now)
        return {
            "conditions": self._found[: asked.most],
            "total": self._core.routes.conditional,
            "counting_s": self._counting_s,
        }

    def forget(self, now: float) -> None:
        """Stop counting if nobody has asked lately."""
        if self._core.content.counts is not None and now - self._asked_at > FORGET_S:
            self._core.content.counts = None
            self._found, self._counting_s = [], 0.0

    async def _look(self, counted: Counted | None, now: float) -> None:
        async with self._looking:
            self._found_at = now
            found: list[tuple[float, bool, ConditionalSubscription]] = []
            work = 0
            for session in [*self._core.sessions.values()]:
                work += 1 + len(session.subscriptions)
                if work > PAUSE:
                    work = 0
                    found = nlargest(MOST, found, key=_weight)
                    await asyncio.sleep(0)
                found += [
                    (0.0 if counted is None else counted.wanted_per_s(each), not self._is_indexed(each), each)
                    for each in session.subscriptions.values()
                    if isinstance(each, ConditionalSubscription)
                ]
            self._found = [self._shown(each, counted) for _, _, each in nlargest(MOST, found, key=_weight)]
            self._counting_s = 0.0 if counted is None else counted.seconds

    def _is_indexed(self, conditional: ConditionalSubscription) -> bool:
        known = self._core.routes.conditions_on(conditional.filter)
        return known is not None and not any(table.asks_always(conditional) for table in known.tables())

    def _shown(self, conditional: ConditionalSubscription, counted: Counted | None) -> dict[str, Any]:
        known = self._core.routes.conditions_on(conditional.filter)
        tables = [] if known is None else [*known.tables()]
        return {
            "client": shortened(conditional.receiver.client_id),
            "condition": shortened(conditional.predicate.text),
            "filter": shortened(conditional.filter),
            "share": conditional.share or "",
            "looked_per_s": None if counted is None else counted.looked_per_s(tables),
            "wanted_per_s": None if counted is None else counted.wanted_per_s(conditional),
            "indexed": self._is_indexed(conditional),
        }


def _weight(each: tuple[float, bool, ConditionalSubscription]) -> tuple[float, bool]:
    return each[0], each[1]
