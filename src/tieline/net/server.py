"""A running broker: listeners, loop, log and management around one core.

``async with tieline.Broker(listen=["tcp://127.0.0.1:0"]) as broker`` embeds it; :func:`run` is ``tieline serve``.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import secrets
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Self

import msgspec

from tieline.conf import urls
from tieline.conf.schema import Listener, Settings
from tieline.core.broker import Broker as Core
from tieline.net import log as logs
from tieline.net.link import LINGER_S, Link
from tieline.net.listener import ListenError, ListeningSocket
from tieline.net.log import log
from tieline.net.loop import Loop, Watched
from tieline.net.manage import Management
from tieline.net.nested import Nested
from tieline.net.pump import PumpedLoop, pump
from tieline.net.vitals import Vitals

if TYPE_CHECKING:
    from types import TracebackType

    from tieline.core.account import Drop
    from tieline.core.ports import Access, Allowed, Refused, Store

_DROP_REPORT_S = 1.0
#: How long a shutdown waits for clients to take what was queued and to close.
_STOP_S = LINGER_S + 0.5


def _name_client() -> str:
    """A client id that nobody guesses: knowing one is enough to take a session over."""
    return f"tieline-{secrets.token_hex(12)}"


class Server:
    """One broker on real sockets."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        listen: Sequence[str] | None = None,
        name: str | None = None,
        data: str | None = None,
        access: Access | None = None,
        store: Store | None = None,
        manage: bool = False,
    ) -> None:
        """Settings, or the few that an embedded broker needs; it listens on a free loopback port by default."""
        if settings is None:
            settings = Settings(listener=(Listener(url="tcp://127.0.0.1:0"),))
        if listen is not None:
            settings = msgspec.structs.replace(settings, listener=tuple(Listener(url=url) for url in listen))
        if name is not None:
            settings = msgspec.structs.replace(settings, name=name)
        if data is not None:
            settings = msgspec.structs.replace(settings, data=data)
        self.settings = settings
        self._access = access
        self._store = store
        self._manages = manage
        self.vitals = Vitals()
        self._listeners: list[ListeningSocket] = []
        self._loop: Loop | None = None
        self._core: Core | None = None
        self._management: Management | None = None
        self._told: Counter[Drop] = Counter()
        self._nested: Nested | None = None
        self._asyncio: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"<Broker {self.settings.name} {' '.join(self.urls) or 'not running'}>"

    @property
    def core(self) -> Core:
        """The broker inside, while it runs."""
        if self._core is None:
            raise RuntimeError("the broker is not running: use it inside 'async with'")
        return self._core

    @property
    def loop(self) -> Loop:
        """The loop that serves it, while it runs."""
        if self._loop is None:
            raise RuntimeError("the broker is not running: use it inside 'async with'")
        return self._loop

    @property
    def urls(self) -> list[str]:
        """Where it listens, with the ports it really got."""
        return [str(listener.url) for listener in self._listeners]

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return self._listeners[0].url.port

    async def start(self) -> None:
        """Listen on everything or, if something cannot be listened on, on nothing."""
        await self.prepare()
        self.attach()

    async def prepare(self) -> None:
        """Do everything but call turns: :meth:`attach` lets asyncio do that, :mod:`tieline.net.pump` does it itself."""
        self._asyncio = asyncio.get_running_loop()
        self._core = Core(
            self.settings,
            access=self._access,
            store=self._store,
            aside=self._do_aside,
            name_client=_name_client,
            now=monotonic(),
        )
        self._loop = Loop(self._core, self._on_fault)
        self._loop.on_events = lambda: logs.tell_events(self.core.account)
        try:
            for conf in self.settings.listener:
                self._listeners.append(ListeningSocket(self._loop, conf))
            if self._manages:
                management = Management(self)
                await management.start()
                self._management = management
        except BaseException:
            await self._close()
            raise
        self.vitals.start(self._core.timers)
        self._report_drops(monotonic())

    def attach(self) -> None:
        """Let the running asyncio loop call the turns."""
        if self._nested is None:
            self._nested = Nested(self.loop)

    async def stop(self) -> None:
        """Tell every client, let what is queued for them go out, and close."""
        loop, core = self._loop, self._core
        if loop is None or core is None:
            return
        for listener in self._listeners:
            listener.close()
        self.attach()
        core.stop(monotonic())
        self.poke()
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                await loop.emptied.wait()
        logs.tell_events(core.account)
        logs.tell_drops(core.account, self._told)
        await self._close()

    async def _close(self) -> None:
        self.vitals.stop()
        if self._management is not None:
            await self._management.close()
            self._management = None
        for listener in self._listeners:
            listener.close()
        self._listeners = []
        if self._loop is not None:
            for conn in list(self.core.connections):
                if isinstance(conn.link, Link):
                    conn.link.abort(monotonic())
            if self._nested is not None:
                self._nested.close()
            self._loop.close()
        self._loop = self._core = self._nested = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def committed(self, token: int) -> None:
        """For a store: everything up to this token is permanent."""
        self.core.committed(token)
        self.poke()

    def decided(self, token: int, verdict: Allowed | Refused) -> None:
        """For access control: the answer to a question that was pending."""
        self.core.decided(token, verdict, monotonic())
        self.poke()

    def _do_aside(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """Long work goes to a thread; its end comes back through asyncio's own loop."""
        assert self._asyncio is not None
        future = self._asyncio.run_in_executor(None, work)

        def finish(ended: asyncio.Future[None]) -> None:
            if self._core is None or ended.cancelled():
                return  # the broker has ended meanwhile
            error = ended.exception()
            done(error if isinstance(error, Exception) else None)
            self.poke()

        future.add_done_callback(finish)

    def poke(self) -> None:
        """Something outside a turn has changed the core; a pump looks by itself."""
        if self._nested is not None:
            self._nested.poke()

    def take_longest_turn(self) -> float:
        """The longest turn of the loop since the last call, in seconds."""
        if self._loop is None:
            return 0.0
        longest, self._loop.longest_turn_s = self._loop.longest_turn_s, 0.0
        return longest

    def _report_drops(self, now: float) -> None:
        logs.tell_drops(self.core.account, self._told)
        self.core.timers.at(now + _DROP_REPORT_S, self._report_drops)

    def _on_fault(self, watched: Watched | None, error: Exception) -> None:
        """A bug of ours met one connection or timer: that one is over, the rest goes on."""
        log.error("internal error, please report it: %r", watched or "a timer", exc_info=error)
        if isinstance(watched, Link):
            self.core.account.closed["internal_error"] += 1
            watched.abort(monotonic())


def run(settings: Settings, *, log_level: str = "info", log_format: str = "human") -> int:
    """Run a broker until SIGTERM, SIGINT or SIGHUP; the exit code."""
    log_writer = logs.start(log_level, log_format)
    _raise_descriptor_limit()
    aio = PumpedLoop()
    try:
        _serve(settings, aio)
    except (ListenError, OSError) as error:
        print(f"tieline: {error}", file=sys.stderr)  # noqa: T201 - the program's own last word
        return 1
    finally:
        aio.close()
        log_writer.stop()
    return 0


def _serve(settings: Settings, aio: PumpedLoop) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        aio.add_signal_handler(number, stopping.set)
    server = Server(settings, manage=True)
    aio.run_until_complete(server.prepare())
    for url in server.urls:
        if not urls.parse(url).is_loopback() and not _asks_for_certificates(settings, url):
            log.warning("%s can be reached from other machines, and every client is let in", url)
    print(f"tieline {settings.name} ready: {' '.join(server.urls)}", flush=True)  # noqa: T201 - the ready line
    _tune_garbage_collection()
    pump(server.loop, aio, stopping)
    log.info("stopping")
    aio.run_until_complete(server.stop())


def _asks_for_certificates(settings: Settings, url: str) -> bool:
    asked = urls.parse(url)
    guarded = [urls.parse(conf.url) for conf in settings.listener if conf.client_ca is not None]
    return any(conf.host == asked.host and conf.port in {0, asked.port} for conf in guarded)


def _tune_garbage_collection() -> None:
    """What exists now stays for ever; afterwards almost everything dies by reference count.

    A full collection at a million objects takes 0.3 s, so the oldest generation is left alone: the core breaks its own
    cycles (timers, links) when a connection ends.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100_000)


def _raise_descriptor_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
