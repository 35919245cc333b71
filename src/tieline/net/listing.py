"""Lists on the management channel, a page at a time: sessions, subscriptions, retained messages; and who is sent away.

A list belongs to the connection that asked for it: ``{"do": "more"}`` goes on where the page before it ended.  While a
page is made the event loop has its turns, so a list of a million sessions keeps nobody waiting.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal  # Any: values of JSON

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict

from tieline.core.answers import listing
from tieline.core.answers.listing import ListedRetained, ListedSession, ListedSubscription
from tieline.net.inquiry import InquiryError
from tieline.wire.errors import ProtocolError
from tieline.wire.reason import Reason
from tieline.wire.topics import check_filter

if TYPE_CHECKING:
    from tieline.core.broker import Broker

#: Entries of one page.
MOST: Final = 1_000

Most = Annotated[int, Meta(ge=1, le=MOST)]
Listed = ListedSession | ListedSubscription | ListedRetained


class Sessions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``{"do": "sessions", …}``: who is connected, and who is kept although it is away."""

    do: Literal["sessions"]
    #: A pattern with * and ?.
    client: str = "*"
    user: str | None = None
    state: Literal["", "connected", "away", "slow"] = ""
    most: Most = 100


class Subscriptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``{"do": "subscriptions", …}``: who has asked for what."""

    do: Literal["subscriptions"]
    client: str = "*"
    #: Only those that match this topic.
    topic: str | None = None
    #: Only those with a condition.
    conditions: bool = False
    most: Most = 100


class Retained(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``{"do": "retained", …}``: the last message of each topic."""

    do: Literal["retained"]
    #: A topic filter.
    filter: str = "#"
    most: Most = 100


class Kick(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``{"do": "kick", "client": …}``: end a connection, and the session too if that is wanted."""

    do: Literal["kick"]
    client: str
    forget: bool = False


_LISTS: Final[dict[str, type[Sessions | Subscriptions | Retained]]] = {
    "sessions": Sessions,
    "subscriptions": Subscriptions,
    "retained": Retained,
}
#: What this module answers.
KNOWN: Final = (*_LISTS, "more")


class Listing:
    """The list that one connection is reading."""

    def __init__(self) -> None:
        self._name = ""
        self._most = 0
        self._found: Iterator[Listed | None] | None = None

    async def answer(self, core: Broker, request: dict[str, Any], now: float) -> dict[str, Any]:
        """The first page of a list, or the next one; raises InquiryError."""
        if request["do"] == "more":
            if self._found is None:
                raise InquiryError("there is no list to go on with")
        else:
            self._begin(core, request, now)
        return await self._page()

    def _begin(self, core: Broker, request: dict[str, Any], now: float) -> None:
        try:
            asked = msgspec.convert(request, _LISTS[request["do"]])
        except msgspec.ValidationError as problem:
            raise InquiryError(str(problem).lower()) from None
        if isinstance(asked, Sessions):
            self._found = listing.sessions(core, now, client=asked.client, user=asked.user, state=asked.state)
        elif isinstance(asked, Subscriptions):
            self._found = listing.subscriptions(
                core, client=asked.client, topic=asked.topic, with_condition=asked.conditions
            )
        else:
            try:
                check_filter(asked.filter, core.settings.limits.topic_levels)
            except ProtocolError as problem:
                raise InquiryError(str(problem)) from None
            self._found = listing.retained(core, now, filter_=asked.filter)
        self._name, self._most = asked.do, asked.most

    async def _page(self) -> dict[str, Any]:
        entries: list[dict[str, Any]] = []
        assert self._found is not None
        for found in self._found:
            if found is None:
                await asyncio.sleep(0)
                continue
            entries.append(_shown(found))
            if len(entries) == self._most:
                return {self._name: entries, "more": True}
        self._found = None
        return {self._name: entries, "more": False}


def _shown(found: Listed) -> dict[str, Any]:
    shown = asdict(found)
    if isinstance(found, ListedSession):
        return {**asdict(shown.pop("standing")), **shown}
    if isinstance(found, ListedRetained):
        shown["payload"] = b64encode(found.payload).decode()
    return shown


def kick(core: Broker, request: dict[str, Any], now: float) -> dict[str, Any]:
    """End the connection of a client, which may come back at once; with ``forget`` nothing of it is kept."""
    try:
        asked = msgspec.convert(request, Kick)
    except msgspec.ValidationError as problem:
        raise InquiryError(str(problem).lower()) from None
    session = core.sessions.get(asked.client)
    if session is None:
        raise InquiryError(f"there is no session {asked.client} at this broker")
    conn = session.connection
    if conn is not None:
        core.shut(conn, "kicked", now, reason=Reason.ADMINISTRATIVE_ACTION, text="an operator ended the connection")
    left = core.sessions.get(asked.client)
    if asked.forget and left is not None and left.connection is None:
        core.end_session(left, now)
    return {"was_connected": conn is not None, "is_kept": asked.client in core.sessions}
