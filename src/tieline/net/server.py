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
from collections.abc import Sequence
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
from tieline.net.vitals import Vitals

if TYPE_CHECKING:
    from types import TracebackType

    from tieline.core.account import Drop
    from tieline.core.ports import Access, Store

_DROP_REPORT_S = 1.0
#: The process is the broker's alone: under traffic it waits for the next message in its own set, which saves a trip
#: through the asyncio loop per message; an embedded broker never makes its host wait.
_PATIENCE_S = 0.001
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
        patience_s: float = 0.0,
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
        self._patience_s = patience_s
        self.vitals = Vitals()
        self._listeners: list[ListeningSocket] = []
        self._loop: Loop | None = None
        self._core: Core | None = None
        self._management: Management | None = None
        self._told: Counter[Drop] = Counter()
        self._report: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Broker {self.settings.name} {' '.join(self.urls) or 'not running'}>"

    @property
    def core(self) -> Core:
        """The broker inside, while it runs."""
        if self._core is None:
            raise RuntimeError("the broker is not running: use it inside 'async with'")
        return self._core

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
        self._core = Core(
            self.settings, access=self._access, store=self._store, name_client=_name_client, now=monotonic()
        )
        self._loop = Loop(self._core, self._on_fault, patience_s=self._patience_s)
        self._loop.after_turn = lambda: logs.tell_events(self.core.account)
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
        self.vitals.start()
        self._report_drops()
        self._loop.poke()

    async def stop(self) -> None:
        """Tell every client, let what is queued for them go out, and close."""
        loop, core = self._loop, self._core
        if loop is None or core is None:
            return
        for listener in self._listeners:
            listener.close()
        core.stop(monotonic())
        loop.poke()
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                await loop.emptied.wait()
        logs.tell_events(core.account)
        logs.tell_drops(core.account, self._told)
        await self._close()

    async def _close(self) -> None:
        self.vitals.stop()
        if self._report is not None:
            self._report.cancel()
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
            self._loop.close()
        self._loop = self._core = None

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
        if self._loop is not None:
            self._loop.poke()

    def take_longest_turn(self) -> float:
        """The longest turn of the loop since the last call, in seconds."""
        if self._loop is None:
            return 0.0
        longest, self._loop.longest_turn_s = self._loop.longest_turn_s, 0.0
        return longest

    def _report_drops(self) -> None:
        logs.tell_drops(self.core.account, self._told)
        self._report = asyncio.get_running_loop().call_later(_DROP_REPORT_S, self._report_drops)

    def _on_fault(self, watched: Watched, error: Exception) -> None:
        """A bug of ours met one connection: that one is closed, the rest goes on."""
        log.error("internal error, please report it: %r", watched, exc_info=error)
        if isinstance(watched, Link):
            self.core.account.closed["internal_error"] += 1
            watched.abort(monotonic())


def run(settings: Settings, *, log_level: str = "info", log_format: str = "human") -> int:
    """Run a broker until SIGTERM or SIGINT; the exit code."""
    listener = logs.start(log_level, log_format)
    _raise_descriptor_limit()
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(_serve(settings))
    except (ListenError, OSError) as error:
        print(f"tieline: {error}", file=sys.stderr)  # noqa: T201 - the program's own last word
        return 1
    finally:
        listener.stop()


async def _serve(settings: Settings) -> int:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    server = Server(settings, manage=True, patience_s=_PATIENCE_S)
    await server.start()
    for url in server.urls:
        if not urls.parse(url).is_loopback():
            log.warning("%s can be reached from other machines, and every client is let in", url)
    print(f"tieline {settings.name} ready: {' '.join(server.urls)}", flush=True)  # noqa: T201 - the ready line
    _tune_garbage_collection()
    await stopping.wait()
    log.info("stopping")
    await server.stop()
    return 0


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


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    """Uvloop where it is installed; plain asyncio serves as well."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop
