"""What the HTTP application asks of the broker: each question is answered in the broker's own thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar  # Any: values of JSON

from msgspec import structs

from tieline.core.figures.history import Extract
from tieline.core.ports import Allowed, Login, Refused
from tieline.net.heat_upload import shown
from tieline.net.inquiry import answer_demand
from tieline.net.log import log
from tieline.net.page.questions import answer as answer_question
from tieline.web.figures import Figures, take
from tieline.wire.reason import Reason

if TYPE_CHECKING:
    import socket

    from tieline.core.routing.heat_table import HeatTable
    from tieline.net.entrance import Entrance
    from tieline.net.services import Running
    from tieline.web.rights import Right

T = TypeVar("T")

#: How long the broker may take to answer.
ANSWER_S: Final = 10.0
_STATUS: Final = {
    Reason.CONNECTION_RATE_EXCEEDED: 429,
    Reason.SERVER_BUSY: 503,
    Reason.QUOTA_EXCEEDED: 503,
}


class Inside:
    """The broker as the thread of the HTTP server sees it."""

    def __init__(self, server: Running, entrance: Entrance, login: Login, *, is_local: bool) -> None:
        """``login`` is what all who come in here have in common; made in the broker's thread."""
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._entrance = entrance
        self._login = login
        #: Whether only programs of this machine reach the server.
        self.is_local = is_local

    # -- what the application asks, in its own thread

    async def admit(
        self, user: str | None, password: bytes | None, peer: str, *, right: Right, is_here: bool
    ) -> tuple[int, str]:
        """Ask the broker's access control."""
        login = structs.replace(
            self._login, client_id=f"http:{user or ''}", username=user, password=password, peer=peer
        )
        return await self._in_broker(self._judge(login, right=right, is_here=is_here))

    async def patience(self, user: str | None, peer: str) -> tuple[int | None, float]:
        """Ask how many logins may still fail, and how long to wait if that is none."""
        return await self._in_broker(self._patience(user or "", peer))

    async def figures(self) -> Figures:
        """Ask the broker for its figures."""
        return await self._in_broker(self._look())

    @property
    def topic_levels(self) -> int:
        """As the settings say, which do not change under a reader's hands."""
        return self._server.settings.limits.topic_levels

    @property
    def name(self) -> str:
        """What the broker is called, which does not change while it runs."""
        return self._server.settings.name

    @property
    def has_users(self) -> bool:
        """Whether a reader has to say who it is."""
        return self._server.has_users

    async def heat(self) -> dict[str, Any]:
        """Ask whose heat counts."""
        return await self._in_broker(self._heat())

    async def give_heat(self, table: HeatTable | None, period_s: float, by: str) -> dict[str, Any]:
        """Hand a table over."""
        return await self._in_broker(self._give_heat(table, period_s, by))

    async def demand(self, question: dict[str, Any], by: str) -> dict[str, Any]:
        """Ask what there is to carry."""
        return await self._in_broker(self._demand(question, by))

    async def network(self, *, everywhere: bool) -> dict[str, Any] | None:
        """Ask what is known of the network of brokers."""
        return await self._in_broker(self._network(everywhere=everywhere))

    async def history(self, span_s: int) -> Extract:
        """Ask for what is remembered of the last so many seconds."""
        return await self._in_broker(self._history(span_s))

    async def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Ask one question of those that change nothing; raises InquiryError."""
        return await self._in_broker(answer_question(self._server, question))

    def take_in(self, sock: socket.SocketType, peer: str, begun: bytes) -> None:
        """Hand over a connection that turned out to be MQTT over WebSocket, and what was read of it."""
        self._loop.call_soon_threadsafe(self._take_in, sock, peer, begun)

    async def _in_broker(self, question: Coroutine[Any, Any, T]) -> T:
        asked = asyncio.run_coroutine_threadsafe(question, self._loop)
        return await asyncio.wait_for(asyncio.wrap_future(asked), ANSWER_S)

    # -- the answers, in the broker's thread

    def _take_in(self, sock: socket.SocketType, peer: str, begun: bytes) -> None:
        self._entrance.take_in(sock, peer, monotonic(), begun)
        self._server.poke()

    async def _look(self) -> Figures:
        return take(self._server)

    async def _patience(self, user: str, peer: str) -> tuple[int | None, float]:
        door = self._server.door
        return (None, 1.0) if door is None else door.gate.patience(peer, user)

    async def _history(self, span_s: int) -> Extract:
        page = self._server.page
        page.watch(monotonic())
        return page.history.last(span_s)

    async def _heat(self) -> dict[str, Any]:
        core = self._server.core
        # a table names topics, and whoever may see numbers may not therefore know of all of them
        return shown(core, monotonic(), 10 if core.access.is_open else 0)

    async def _give_heat(self, table: HeatTable | None, period_s: float, by: str) -> dict[str, Any]:
        server = self._server
        if table is None:
            server.core.heat_source.clear(by=by)
        else:
            server.core.heat_source.put(table, period_s, monotonic(), by=by)
        server.poke()
        return shown(server.core, monotonic())

    async def _demand(self, question: dict[str, Any], by: str) -> dict[str, Any]:
        try:
            return answer_demand(self._server.core, question, monotonic(), by=by)
        finally:
            self._server.poke()

    async def _network(self, *, everywhere: bool) -> dict[str, Any] | None:
        server = self._server
        if server.net is None or server.across is None:
            return None
        found = server.net.answer("http", monotonic())
        return await server.across.of_all(found, {"do": "net"}) if everywhere else found

    async def _judge(self, login: Login, *, right: Right, is_here: bool) -> tuple[int, str]:
        server = self._server
        if login.username is None and server.has_users:
            # whether or not MQTT lets nobody in particular in: there are users, so a reader is one of them
            return 401, ""
        verdict = await _verdict(lambda done: server.inquiries.admit(server, login, done))
        if isinstance(verdict, Refused):
            log.warning("http refused %s: %s", login.peer, verdict.rule, extra={"fields": _fields(login, verdict)})
            return _STATUS.get(verdict.reason, 401), ""
        user = verdict.name_of(login)
        known = structs.replace(login, user=user, password=None)
        if right.action == "publish":
            return await self._judge_right(server, known, right.subject, is_here=is_here and self.is_local)
        if server.core.access.is_open:
            return 200, ""
        verdict = await _verdict(lambda done: server.inquiries.may_see(server, known, right.subject, done))
        return (403, verdict.rule) if isinstance(verdict, Refused) else (200, "")

    async def _judge_right(self, server: Running, login: Login, right: str, *, is_here: bool) -> tuple[int, str]:
        """To look is one thing: who does more is named in a rule, or alone with the broker on its machine."""
        if login.user is None if server.has_users else not is_here:
            return 403, ""
        if server.core.access.is_open:
            return (403, f"no rule allows to publish to {right}") if server.has_users else (200, "")
        verdict = await _verdict(lambda done: server.inquiries.may_publish(server, login, right, done))
        return (403, verdict.rule) if isinstance(verdict, Refused) else (200, "")


async def _verdict(ask: Callable[[Callable[[Allowed | Refused], None]], None]) -> Allowed | Refused:
    future: asyncio.Future[Allowed | Refused] = asyncio.get_running_loop().create_future()

    def done(verdict: Allowed | Refused) -> None:
        if not future.done():
            future.set_result(verdict)

    ask(done)
    return await future


def _fields(login: Login, verdict: Refused) -> dict[str, object]:
    return {"event": "http_refused", "client": login.client_id, "peer": login.peer, "why": verdict.reason.name.lower()}
