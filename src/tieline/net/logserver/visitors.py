"""Who asks, and what of the log they may see: the broker's own users and rules, at an HTTP door.

Theory of operation
-------------------
Where the configuration has users, every request needs the name and the password of one of them (HTTP Basic), whatever
``auth.anonymous`` says: a browser, a script or a cluster is not the machine's own client.  Without users the server is
bound to loopback only, and everybody is nobody in particular, whom rules call ``-``.  Then the name by which the server
was addressed has to be a loopback name too, or any web page could have a browser read the log for it.

Rules speak of topics.  What has none gets one: who may ``read`` :data:`EVENTS` sees the broker's events, except those
about topics that the user may not read or filters that the user may not subscribe to; positions of readers are
:data:`READERS` followed by the reader's name, to ``read`` and to ``write``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tieline.core.ports import Allowed, Login, Refused
from tieline.match.where import ExpressionError, split
from tieline.net.auth.door import Door, read_users
from tieline.net.http.headers import CHALLENGE, credentials, is_addressed_locally, peer_of
from tieline.net.log import log
from tieline.net.logserver.response import error
from tieline.wire.reason import Reason

if TYPE_CHECKING:
    from tieline.access.gate import Gate
    from tieline.conf.schema import Settings
    from tieline.log.record import Occurrence

EVENTS: Final = "$SYS/broker/tieline/log/events"
READERS: Final = "$SYS/broker/tieline/log/readers/"
SIZE: Final = "$SYS/broker/tieline/log/size"

#: Kinds of events whose topic is a filter.
_ABOUT_FILTERS: Final = frozenset({"subscribe", "unsubscribe"})


@dataclass(frozen=True, slots=True)
class Turned:
    """Not let in: the status of the answer, and why, as far as a stranger may know."""

    status: int
    text: str


class Visitor:
    """Somebody who was let in."""

    def __init__(self, gate: Gate, user: str | None, *, question_mark: bool = True) -> None:
        """``question_mark`` says whether filters may be spelled ``filter?expression``."""
        self._gate = gate
        self._question_mark = question_mark
        #: None for nobody in particular.
        self.user = user

    def __repr__(self) -> str:
        return f"<Visitor {self.user or '-'}>"

    @property
    def is_open(self) -> bool:
        """There are no rules: nothing is withheld."""
        return self._gate.is_open

    def record(self, topic: str) -> bool:
        """Whether messages of a topic may be seen."""
        return self._gate.may("read", self.user, "", topic)

    def occurrence(self, occurrence: Occurrence) -> bool:
        """Whether an event of the broker may be seen."""
        gate, topic = self._gate, occurrence.topic
        if not gate.may("read", self.user, "", EVENTS):
            return False
        if not topic:
            return True
        if occurrence.kind in _ABOUT_FILTERS:
            return self._may_subscribe(topic)
        return gate.may("read", self.user, "", topic)

    def _may_subscribe(self, written: str) -> bool:
        try:
            bare = split(written, question_mark=self._question_mark).filter
        except ExpressionError:
            return False
        return self._gate.may("subscribe", self.user, "", bare)

    def sees_reader(self, name: str) -> bool:
        """Whether the position of a named reader may be seen."""
        return self._gate.may("read", self.user, "", READERS + name)

    def why_not_move(self, name: str) -> str | None:
        """The rule by which a named reader may not be moved; None when it may."""
        verdict = self._gate.explain("write", self.user, "", READERS + name)
        return verdict.rule if isinstance(verdict, Refused) else None

    @property
    def sees_size(self) -> bool:
        """Whether it may be known how much the log holds: its growth is the size of what others publish."""
        return self._gate.may("read", self.user, "", SIZE)


class Visitors:
    """Lets requests in; belongs to the running loop."""

    def __init__(self, settings: Settings, listener: str) -> None:
        """``listener`` is the address of the server as the broker's listeners are written."""
        loop = asyncio.get_running_loop()
        self._listener = listener
        self._door = Door(
            settings,
            authenticator=None,
            deliver=loop.call_soon_threadsafe,
            decided=lambda _token, _verdict: None,  # only MQTT connections ask by token
            clock=loop.time,
        )
        self._take(settings)

    def renew(self, settings: Settings) -> None:
        """Other users and rules from now on; raises PasswordFileError and changes nothing if they cannot be read."""
        users = read_users(settings)
        self._door.renew(settings, users)
        self._take(settings)

    def _take(self, settings: Settings) -> None:
        self._has_users = settings.auth.password_file is not None
        self._question_mark = settings.content.question_mark == "on"

    def close(self) -> None:
        """Let nobody in any more."""
        self._door.close()

    async def admit(self, scope: Scope) -> Visitor | Turned:
        """Who sends a request, by its headers."""
        if not self._has_users:
            if not is_addressed_locally(scope):
                return Turned(421, "this server answers to the names of this machine only: localhost, 127.0.0.1, [::1]")
            return self._visitor(None)
        with suppress(ValueError):
            given = credentials(scope)
            if given is not None:
                return await self._known(*given, peer_of(scope))
        return Turned(401, "a user name and a password are needed")

    async def _known(self, username: str, password: bytes, peer: str) -> Visitor | Turned:
        login = Login(client_id="", username=username, password=password, listener=self._listener, peer=peer)
        verdict = await self._verdict(login)
        if isinstance(verdict, Allowed):
            return self._visitor(verdict.user)
        if verdict.reason in (Reason.CONNECTION_RATE_EXCEEDED, Reason.SERVER_BUSY):
            return Turned(429, verdict.rule)
        if verdict.reason is Reason.SERVER_UNAVAILABLE:
            return Turned(503, verdict.rule)
        return Turned(401, "the user name or the password is wrong")

    def _visitor(self, user: str | None) -> Visitor:
        return Visitor(self._door.gate, user, question_mark=self._question_mark)

    async def _verdict(self, login: Login) -> Allowed | Refused:
        later: asyncio.Future[Allowed | Refused] = asyncio.get_running_loop().create_future()

        def done(verdict: Allowed | Refused) -> None:
            if not later.done():  # the request may have been cancelled meanwhile
                later.set_result(verdict)

        now = self._door.gate.admit(login, done)
        return await later if now is None else now


_NAMES: Final = {401: "unauthorized", 421: "misdirected", 429: "too_many_logins", 503: "busy"}


#: What a route takes: why a visitor may not have what it gives, which may depend on the name in its path; None if so.
Right = Callable[[Visitor, str], str | None]


def piece_by_piece(_visitor: Visitor, _name: str) -> str | None:
    """The right to ask: what is shown is decided record by record, reader by reader, by what answers."""
    return None


class Guard:
    """Judges requests, whatever they ask for: a stranger does not even learn which addresses there are."""

    def __init__(self, visitors: Visitors) -> None:
        self._visitors = visitors

    async def admit(self, scope: Scope, right: Right) -> Response | None:
        """Let a visitor in who has a right; the refusal otherwise."""
        found = await self._visitors.admit(scope)
        if isinstance(found, Turned):
            extra = {401: CHALLENGE, 429: {"Retry-After": "60"}, 503: {"Retry-After": "1"}}.get(found.status)
            return error(found.status, _NAMES[found.status], found.text, extra)
        scope["visitor"] = found
        rule = right(found, scope["path_params"]["name"])
        return None if rule is None else error(403, "forbidden", f"this user may not do this: {rule}")


def until_stopped(app: ASGIApp) -> ASGIApp:
    """The same application, whose requests end quietly when the server does."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except asyncio.CancelledError:
            # Only the end of the server cancels; whoever is still reading then sees a broken connection.  Raised
            # further, it would stand in the log as a fault.
            log.info("a request was left unfinished: the server stops")

    return call
