"""Questions that change nothing, for those who look at a broker from outside: the verbs of the management channel.

Everything here is also there; what is not here (reload, heat, kick, drain, plans that are put in force) is for whoever
owns the process.  Lists come without a next page: who wants more asks for less.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Final  # Any: values of JSON

from tieline.core.routing.classes import NO_RULE
from tieline.net import inquiry
from tieline.net.inquiry import InquiryError
from tieline.net.listing import Listing
from tieline.net.page.people import sessions
from tieline.net.page.plan import detail

if TYPE_CHECKING:
    from tieline.net.services import Running

#: What may be asked.
KNOWN: Final = ("conditions", "drops", "net", "plan", "sessions", "subscriptions", "top", "trace", "why")


async def answer(server: Running, question: dict[str, Any]) -> dict[str, Any]:
    """Answer one question; raises InquiryError."""
    what = question.get("do")
    if what not in KNOWN:
        raise InquiryError(f"this is not answered here; known are {', '.join(KNOWN)}")
    now = monotonic()
    server.page.watch(now)
    try:
        if what in inquiry.KNOWN:
            if server.across is not None:
                return await server.across.answer(question, now)
            return inquiry.answer(server.core, inquiry.here(question), now)
        if what == "sessions":
            return await sessions(server.core, question, server.settings.name, now)
        if what == "subscriptions":
            return await Listing().answer(server.core, question, now)
        if what == "conditions":
            return await server.page.conditions(question, now)
        return await _figures(server, str(what), question, now)
    finally:
        server.poke()


async def _figures(server: Running, what: str, question: dict[str, Any], now: float) -> dict[str, Any]:
    """``top``, ``net`` or ``plan``, of this broker, of another one or of all that can be reached."""
    if unknown := sorted(question.keys() - {"do", "all", "at", *(("detail",) if what == "plan" else ())}):
        raise InquiryError(f'"{what}" here knows "all" and "at", and not "{unknown[0]}"')
    across, at = server.across, question.get("at")
    asked = {"do": what}
    if at is not None and at != server.settings.name:
        if across is None:
            raise InquiryError("this broker is not joined with others")
        return await across.of_one(asked, str(at))
    if what == "top":
        found = _with_levels(server, server.top.answer("page"))
    elif across is None or server.net is None:
        raise InquiryError("this broker is not joined with others")
    elif what == "net":
        found = server.net.answer("ask", now)
    else:
        found = across.plans.answer(asked, now)
        if question.get("detail") is True:
            found |= detail(found)
    return await across.of_all(found, asked) if question.get("all") is True and across is not None else found


def _with_levels(server: Running, found: dict[str, Any]) -> dict[str, Any]:
    """The same, with the level that topic rules give each of the hottest topics."""
    priorities = server.core.priorities
    levels = (priorities.classes.level(topic) for topic, *_ in found["hottest"])
    return found | {"hottest_levels": [priorities.default_level if level == NO_RULE else level for level in levels]}
