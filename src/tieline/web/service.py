"""The HTTP server beside a broker: a thread with a loop of its own, which asks the broker only for what it shows."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar  # Any: values of JSON

import uvicorn
from msgspec import structs

from tieline.conf.urls import parse_http
from tieline.core.ports import Allowed, Login, Refused
from tieline.net.address import bind, secure_context
from tieline.net.heat_upload import shown
from tieline.net.http.connections import Places
from tieline.net.inquiry import answer_demand
from tieline.net.log import log
from tieline.web.doors import Right, application
from tieline.web.figures import Figures, take
from tieline.wire.reason import Reason

if TYPE_CHECKING:
    from tieline.core.routing.heat_table import HeatTable
    from tieline.net.services import Running

T = TypeVar("T")

#: Connections at once, all of them and those of one address; beyond the first number only ``/health`` is answered.
MOST_CONNECTIONS: Final = 64
RESERVED_CONNECTIONS: Final = 16
CONNECTIONS_PER_ADDRESS: Final = 48
#: The longest request head, how long it may take to come, and how long a connection may last: one question, one answer,
#: whoever dawdles.
MOST_HEAD: Final = 16_384
HEAD_S: Final = 10.0
LIFE_S: Final = 30.0
#: How long the broker may take to answer this thread.
ANSWER_S: Final = 10.0
_START_S: Final = 10.0
_STATUS: Final = {
    Reason.CONNECTION_RATE_EXCEEDED: 429,
    Reason.SERVER_BUSY: 503,
    Reason.QUOTA_EXCEEDED: 503,
}


class HttpService:
    """Serves ``[http]`` of the settings; see :class:`tieline.net.services.Service`."""

    def __init__(self) -> None:
        #: Where it listens, with the port it really got.
        self.url = ""
        self.places = Places(
            MOST_CONNECTIONS,
            reserve=RESERVED_CONNECTIONS,
            per_address=CONNECTIONS_PER_ADDRESS,
            head_s=HEAD_S,
            life_s=LIFE_S,
        )
        self._server: Running | None = None
        self._broker_loop: asyncio.AbstractEventLoop | None = None
        self._uvicorn: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._is_local = False
        self._login = Login(client_id="http", username=None, password=None, listener="", peer="")

    async def start(self, server: Running) -> None:
        """Listen; raises an OSError that says why not."""
        conf = server.settings.http
        if conf.url is None:
            return
        url = parse_http(conf.url)
        if not url.is_loopback() and not server.has_users:
            raise OSError(f"{conf.url} could be read from other machines: set auth.password_file first, or stay local")
        self._server, self._broker_loop = server, asyncio.get_running_loop()
        self._is_local = url.is_loopback()
        try:
            listening = bind(url.host, url.port, backlog=MOST_CONNECTIONS)
        except OSError as error:
            raise OSError(f"cannot listen on http {url.host}:{url.port}: {error.strerror or error}") from error
        port: int = listening.getsockname()[1]
        scheme = "https" if url.is_tls else "http"
        self.url = f"{scheme}://{f'[{url.host}]' if ':' in url.host else url.host}:{port}"
        self._login = structs.replace(self._login, listener=str(replace(url, port=port)))
        if not url.is_loopback() and not url.is_tls:
            log.warning("%s can be reached from other machines, and passwords for it travel unencrypted", self.url)
        config = uvicorn.Config(
            application(self, self.places),
            http=self.places.protocol(),
            ws="none",
            lifespan="off",
            interface="asgi3",
            loop="asyncio",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            headers=[("Connection", "close"), ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")],
            h11_max_incomplete_event_size=MOST_HEAD,
            timeout_graceful_shutdown=1,
        )
        try:
            config.load()
            if conf.certificate is not None and conf.key is not None:
                # uvicorn's own would take ciphers that nothing authenticates, and ask for passwords on the terminal
                config.ssl = secure_context(conf.certificate, conf.key)
        except (OSError, ValueError) as error:
            listening.close()
            raise OSError(f"{conf.url}: the certificate or key cannot be used: {error}") from error
        self._uvicorn = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, args=(listening,), name="tieline-http", daemon=True)
        self._thread.start()
        log.info("%s answers /metrics, /ready, /health, /v1/heat, /v1/demand and /v1/net", self.url)

    async def stop(self) -> None:
        """End; open answers have a second."""
        thread, serving = self._thread, self._uvicorn
        if thread is None or serving is None:
            return
        serving.should_exit = True
        # not joined on the broker's loop: an answer under way may need it
        await asyncio.get_running_loop().run_in_executor(None, thread.join, _START_S)
        self._thread = self._uvicorn = self._server = None

    def _run(self, listening: socket.socket) -> None:
        assert self._uvicorn is not None
        with listening:
            asyncio.run(self._uvicorn.serve([listening]))

    # -- what the application asks, in its own thread

    async def admit(
        self, user: str | None, password: bytes | None, peer: str, *, right: Right, is_here: bool
    ) -> tuple[int, str]:
        """Ask the broker's access control."""
        login = structs.replace(
            self._login, client_id=f"http:{user or ''}", username=user, password=password, peer=peer
        )
        return await self._in_broker(self._judge(login, right=right, is_here=is_here))

    async def figures(self) -> Figures:
        """Ask the broker for its figures."""
        return await self._in_broker(self._look())

    @property
    def topic_levels(self) -> int:
        """As the settings say, which do not change under a reader's hands."""
        assert self._server is not None
        return self._server.settings.limits.topic_levels

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

    async def _in_broker(self, question: Coroutine[Any, Any, T]) -> T:
        assert self._broker_loop is not None
        asked = asyncio.run_coroutine_threadsafe(question, self._broker_loop)
        return await asyncio.wait_for(asyncio.wrap_future(asked), ANSWER_S)

    # -- the answers, in the broker's thread

    async def _look(self) -> Figures:
        assert self._server is not None
        return take(self._server)

    async def _heat(self) -> dict[str, Any]:
        server = self._server
        assert server is not None
        # a table names topics, and whoever may see numbers may not therefore know of all of them
        return shown(server.core, monotonic(), 10 if server.core.access.is_open else 0)

    async def _give_heat(self, table: HeatTable | None, period_s: float, by: str) -> dict[str, Any]:
        server = self._server
        assert server is not None
        if table is None:
            server.core.heat_source.clear(by=by)
        else:
            server.core.heat_source.put(table, period_s, monotonic(), by=by)
        server.poke()
        return shown(server.core, monotonic())

    async def _demand(self, question: dict[str, Any], by: str) -> dict[str, Any]:
        server = self._server
        assert server is not None
        try:
            return answer_demand(server.core, question, monotonic(), by=by)
        finally:
            server.poke()

    async def _network(self, *, everywhere: bool) -> dict[str, Any] | None:
        server = self._server
        assert server is not None
        if server.net is None or server.across is None:
            return None
        found = server.net.answer("http", monotonic())
        return await server.across.of_all(found, {"do": "net"}) if everywhere else found

    async def _judge(self, login: Login, *, right: Right, is_here: bool) -> tuple[int, str]:
        server = self._server
        assert server is not None
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
            return await self._judge_right(server, known, right.subject, is_here=is_here and self._is_local)
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
