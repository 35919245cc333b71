"""Sessions for the page: those that wait most come first, however many there are, in the words of its other tables."""

from __future__ import annotations

import asyncio
from fnmatch import fnmatchcase
from heapq import nlargest
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal  # Any: values of JSON

import msgspec
from msgspec import Meta

from tieline.core.account import MOST_SHOWN
from tieline.core.answers.listing import PAUSE
from tieline.core.answers.survey import HELD
from tieline.core.answers.why import standing
from tieline.net.inquiry import InquiryError
from tieline.net.page.words import shortened

if TYPE_CHECKING:
    from tieline.core.answers.why import Standing
    from tieline.core.broker import Broker
    from tieline.core.client import Session

#: Sessions in one answer.
MOST: Final = 1_000
#: What somebody waits for, in a word or two behind the name of the reason.
TEXTS: Final = {
    "busy": "its socket",
    "inflight_full": "its acknowledgements",
    "away": "collects",
    "caught_up": "",
}


class Sessions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``{"do": "sessions", …}``: whose ids fit a pattern with ``*`` and ``?``, and who is in one state."""

    do: Literal["sessions"]
    client: str = "*"
    user: str | None = None
    state: Literal["", "connected", "away", "slow", "waiting", "held"] = ""
    most: Annotated[int, Meta(ge=1, le=MOST)] = 100


async def sessions(core: Broker, question: dict[str, Any], at: str, now: float) -> dict[str, Any]:
    """Those that fit, the ones that wait most first; raises InquiryError.  Others have their turn meanwhile."""
    try:
        asked = msgspec.convert(question, Sessions)
    except msgspec.ValidationError as problem:
        raise InquiryError(str(problem).lower()) from None
    found: list[tuple[int, int, Session]] = []
    total = 0
    for number, session in enumerate([*core.sessions.values()], 1):
        if number % PAUSE == 0:
            found = nlargest(asked.most, found)
            await asyncio.sleep(0)
        if fnmatchcase(session.client_id, asked.client) and _is_asked_for(session, asked):
            total += 1
            # the number makes entries of equal weight comparable
            found.append((_waiting_bytes(session), -number, session))
    shown = [_shown(core, session, at, now) for _, _, session in nlargest(asked.most, found)]
    return {"sessions": shown, "total": total, "more": total > len(shown)}


def _is_asked_for(session: Session, asked: Sessions) -> bool:
    if asked.user is not None and session.user != asked.user:
        return False
    conn, waits = session.connection, bool(_waiting_bytes(session))
    is_held = conn is not None and conn.hold in HELD
    return {
        "": True,
        "connected": conn is not None,
        "away": conn is None,
        "slow": waits or is_held,
        "waiting": waits and conn is not None,
        "held": is_held,
    }[asked.state]


def _waiting_bytes(session: Session) -> int:
    return session.queue.bytes + (0 if session.spill is None else session.spill.bytes)


def _shown(core: Broker, session: Session, at: str, now: float) -> dict[str, Any]:
    conn, stands = session.connection, standing(core, session, now)
    return row(stands, at, core.priorities.classes.names) | {
        "user": stands.user,
        "peer": stands.peer,
        "is_connected": conn is not None,
        "version": 0 if conn is None else conn.version,
        "away_s": 0.0 if session.left is None else max(0.0, now - session.left),
        "inflight": stands.inflight,
        "subscriptions": len(session.subscriptions),
    }


def row(stands: Standing, at: str, names: tuple[str, ...]) -> dict[str, Any]:
    """A session as every table of the page has it."""
    text = TEXTS.get(stands.paused, "held")
    shown = shortened(stands.client)
    return {
        "client": shown,
        # for questions about it, where what is shown is not its whole name
        "id": stands.client if shown != stands.client and len(stands.client) <= MOST_SHOWN else None,
        "at": at,
        "why": stands.paused,
        "text": f"{text}: {shortened(stands.waits_for)}" if stands.waits_for else text,
        "waiting": stands.queued + stands.spilled,
        "waiting_bytes": stands.queued_bytes + stands.spilled_bytes,
        "oldest_s": stands.oldest_s,
        "behind": [names.index(name) for name in stands.congested],
        "dropped": stands.dropped,
    }
