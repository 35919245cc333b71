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
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Self

import msgspec

from tieline.conf import urls
from tieline.conf.peers import is_joined, with_identity
from tieline.conf.schema import Listener, Settings
from tieline.core.broker import Broker as Core
from tieline.net import log as logs
from tieline.net.auth.door import Door
from tieline.net.auth.passwords import PasswordFileError
from tieline.net.entrance import Entrance
from tieline.net.link import LINGER_S, SocketLink
from tieline.net.listener import ListenError, ListeningSocket
from tieline.net.log import log
from tieline.net.loop import Loop
from tieline.net.manage import Management
from tieline.net.nested import Nested
from tieline.net.page.page import Page
from tieline.net.preflight import warn
from tieline.net.pump import PumpedLoop, pump
from tieline.net.reload import ReloadError, on_hangup
from tieline.net.services import Inquiries, Renewal, Service
from tieline.net.store.keeper import Keeper, wants_store
from tieline.net.store.schema import Unusable
from tieline.net.top import TopReport
from tieline.net.turns import Watched
from tieline.net.vitals import Vitals, keep_memory
from tieline.wire.reason import Reason

if TYPE_CHECKING:
    from types import TracebackType

    from tieline.access.users import Authenticator
    from tieline.core.account import Drop
    from tieline.core.client import Connection
    from tieline.core.ports import Access, Allowed, Refused, Store
    from tieline.core.timers import Action
    from tieline.net.across import Across
    from tieline.net.neighbours import Neighbours
    from tieline.net.net_report import NetReport
    from tieline.net.peer_listener import PeerListener
    from tieline.net.ring_neighbours import RingNeighbours
    from tieline.net.ring_report import RingReport

_DROP_REPORT_S = 1.0
#: How long the ready line waits for brokers that are to be joined, and how often it looks.
_SETTLE_S, _SETTLE_STEP_S = 1.0, 0.02
#: How long a shutdown waits for clients to take what was queued and to close.
_STOP_S = LINGER_S + 0.5
#: Buffers up to this size are made of memory that the process has, and so much of it may lie unused.
_KEPT_BLOCK = 4 << 20
_KEPT_UNUSED = 16 << 20


def _name_client() -> str:
    """A client id that nobody guesses: knowing one is enough to take a session over."""
    return f"tieline-{secrets.token_hex(12)}"


class Server:
    """One broker on real sockets."""

    def __init__(  # what a program that embeds a broker may choose, each by its name
        self,
        settings: Settings | None = None,
        *,
        listen: Sequence[str] | None = None,
        name: str | None = None,
        data: str | None = None,
        access: Access | None = None,
        authenticator: Authenticator | None = None,
        store: Store | None = None,
        manage: bool = False,
        reread: Callable[[], Settings] | None = None,
        services: Sequence[Service] = (),
    ) -> None:
        """Settings, or the few that an embedded broker needs; it listens on a free loopback port by default.

        An ``authenticator`` checks logins in place of a password file; ``access`` decides everything itself, and then
        neither is asked.  ``reread`` reads the settings again, for a reload.  The ``services`` begin and
        end with the broker; ``[http]`` is served by ``tieline.web.service.HttpService()``.
        """
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
        self._authenticator = authenticator
        #: Who may come in; None where ``access`` decides that.
        self.door: Door | None = None
        self.reread = reread
        #: Held by the reload that is under way.
        self.reloading = asyncio.Lock()
        self._store = store
        #: The store of the data directory; None without one.
        self._keeper: Keeper | None = None
        #: Why the broker cannot go on; empty while it can.  Whoever runs it is called then.
        self.failure = ""
        self.on_failure: Callable[[], None] = self._stop_soon
        self._manages = manage
        self._services = tuple(services)
        #: What other doors than MQTT have asked.
        self.inquiries = Inquiries()
        #: When it began to serve, in monotonic time.
        self.started = monotonic()
        self.vitals = Vitals()
        self._listeners: list[ListeningSocket | PeerListener] = []
        self._loop: Loop | None = None
        #: Other brokers; None while it is alone.
        self._peers: Neighbours | RingNeighbours | None = None
        #: What is known of the ring; None where this broker is on none.
        self.ring: RingReport | None = None
        #: What is known of the network of brokers; None while it is alone.
        self.net: NetReport | None = None
        #: Asks other brokers, and answers them; None while it is alone.
        self.across: Across | None = None
        self.top = TopReport(self)
        self._page: Page | None = None
        self._core: Core | None = None
        self._management: Management | None = None
        self._told: Counter[Drop] = Counter()
        self._nested: Nested | None = None
        self._asyncio: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Task[None] | None = None

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
    def page(self) -> Page:
        """What is measured for the live page, while it runs."""
        if self._page is None:
            raise RuntimeError("the broker is not running: use it inside 'async with'")
        return self._page

    def entrance(self, conf: Listener) -> Entrance:
        """Where connections come in that another door has accepted; without TLS, which that door has taken off."""
        return Entrance(self.loop, conf, urls.parse(conf.url), None)

    @property
    def urls(self) -> list[str]:
        """Where it listens, with the ports it really got."""
        return [str(listener.url) for listener in self._listeners]

    @property
    def page_url(self) -> str:
        """Where the live page is; empty where none is served."""
        return next((service.page_url for service in self._services if service.page_url), "")

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return self._listeners[0].url.port

    @property
    def has_users(self) -> bool:
        """Whether anything can tell who somebody is."""
        return not self.core.access.is_open if self.door is None else self.door.has_users

    @property
    def logins(self) -> dict[str, int]:
        """Logins that were refused without being checked, through any door, by name."""
        door = self.door
        return {} if door is None else {"throttled": door.throttled, "turned_away": door.turned_away}

    async def start(self) -> None:
        """Listen on everything or, if something cannot be listened on, on nothing."""
        await self.prepare()
        self.attach()

    async def prepare(self) -> None:
        """Do everything but call turns: :meth:`attach` lets asyncio do that, :mod:`tieline.net.pump` does it itself."""
        self._asyncio = asyncio.get_running_loop()
        if self.settings.http.url is not None and not self._services:
            raise OSError("http.url is set, and nothing serves it: give services=[tieline.web.service.HttpService()]")
        if self._access is None:
            self.door = Door(
                self.settings,
                authenticator=self._authenticator,
                deliver=self._asyncio.call_soon_threadsafe,
                decided=self.decided,
                clock=monotonic,
            )
        if self._store is None and wants_store(self.settings):
            self._keeper = Keeper(self.settings, self._fail)
        self._core = Core(
            self.settings,
            access=self._access if self.door is None else self.door.gate,
            store=self._store if self._keeper is None else self._keeper.store,
            aside=self._do_aside,
            name_client=_name_client,
            now=monotonic(),
        )
        self._core.system.beside = self._beside
        self._loop = Loop(self._core, self._on_fault)
        self._loop.on_events = lambda: logs.tell_events(self.core.account)
        try:
            if is_joined(self.settings):
                self._meet_others(self._core, self._loop)
            if self._keeper is not None:
                self._keeper.begin(self._core, self._loop)
            self._page = Page(self)
            self._listen(self._core, self._loop)
            if self._manages:
                management = Management(self)
                await management.start()
                self._management = management
            for service in self._services:
                await service.start(self)
        except BaseException:
            await self._close()
            raise
        self.vitals.start(self._core.timers)
        self.page.start(monotonic())
        self._report_drops(monotonic())

    def _meet_others(self, core: Core, loop: Loop) -> None:
        """Make what this broker has for others, in a group or on a ring: modules that one alone has no use for."""
        notes = [] if self._keeper is None else self._keeper.notes
        if self.settings.overlay.mode == "ring":
            from tieline.net.ring_neighbours import RingNeighbours
            from tieline.net.ring_report import RingReport

            ringed = self._peers = RingNeighbours(core, loop, self.settings, notes, self._deliver)
            self.ring = RingReport(ringed)
            return
        from tieline.net.across import Across
        from tieline.net.neighbours import Neighbours
        from tieline.net.net_report import NetReport

        grouped = self._peers = Neighbours(self.settings, core, loop, self._deliver, notes)
        self.net = NetReport(grouped.inside, grouped.outside)
        self.across = Across(self, grouped.inside, self.net)

    def _listen(self, core: Core, loop: Loop) -> None:
        """Listen for clients and for other brokers, and dial those that are to be joined."""
        for conf in self.settings.listener:
            if not urls.parse(conf.url).is_peer:
                self._listeners.append(ListeningSocket(loop, conf))
            elif self._peers is not None:
                from tieline.net.peer_listener import PeerListener

                self._listeners.append(PeerListener(self._peers.of(conf), with_identity(conf, self.settings.overlay)))
        if self._peers is not None:
            self._peers.begin_all([listener.url for listener in self._listeners])

    def _deliver(self, action: Action) -> None:
        """For other threads: have something done in the next turn."""
        assert self._asyncio is not None
        self._asyncio.call_soon_threadsafe(self._do_soon, action)

    def _do_soon(self, action: Action) -> None:
        if self._core is not None:  # it may have ended meanwhile
            self._core.timers.soon(action)
            self.poke()

    @property
    def joined(self) -> list[str]:
        """The other brokers that are connected, by their names."""
        return [] if self._peers is None else self._peers.up

    @property
    def is_settled(self) -> bool:
        """Whether something has come of the first attempt to reach each broker that is to be joined."""
        return self._peers is None or self._peers.is_settled

    def _beside(self) -> dict[str, int]:
        """What ``$SYS`` shows of the shell."""
        found = {f"tieline/logins/{name}": count for name, count in self.logins.items()}
        if self.ring is not None:
            found |= self.ring.topics()
        return found if self.net is None else found | self.net.topics()

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
        if self._keeper is not None:
            # answers that wait for the disk leave before the goodbye
            await self._keeper.catch_up()
        core.stop(monotonic())
        if self._peers is not None:
            self._peers.stop(monotonic())
        self.poke()
        if self._keeper is not None:
            self._keeper.detach()
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                await loop.emptied.wait()
        logs.tell_events(core.account)
        logs.tell_drops(core.account, self._told)
        await self._close()

    async def _close(self) -> None:
        self.vitals.stop()
        if self._page is not None:
            self._page.stop()
        for service in self._services:
            await service.stop()
        if self._management is not None:
            await self._management.close()
            self._management = None
        for listener in self._listeners:
            listener.close()
        self._listeners = []
        if self._peers is not None:
            self._peers.stop(monotonic())
            self._peers = self.net = self.across = self.ring = None
        if self.door is not None:
            self.door.close()
            self.door = None
        if self._loop is not None:
            for watched in self._loop.watched:
                # also those that are over for the core and only wait for their peers to close
                if isinstance(watched, SocketLink):
                    watched.abort(monotonic())
            if self._keeper is not None:
                self._keeper.detach()
            if self._nested is not None:
                self._nested.close()
            self._loop.close()
        if self._keeper is not None:
            keeper, self._keeper = self._keeper, None
            await keeper.end()
        self._loop = self._core = self._nested = self._page = None

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
        if self.inquiries.decided(token, verdict):
            return
        if self._core is not None:  # it may have ended meanwhile
            self._core.decided(token, verdict, monotonic())
            self.poke()

    def renew(self, renewal: Renewal) -> int:
        """Act by what was read again; how many clients had to go.  ReloadError if the broker has ended meanwhile."""
        if not self._listeners:
            raise ReloadError("nothing was changed: this broker has ended while files were read")
        settings, contexts, users, known = renewal
        core, now = self.core, monotonic()
        stays = None if self.door is None else self.door.renew(settings, users)
        self.settings = settings
        untrusted: list[tuple[Connection, str]] = []
        for listener, conf, context in zip(self._listeners, settings.listener, contexts, strict=True):
            untrusted += listener.renew(conf, context)
        core.renew(settings)
        if self._peers is not None and known is not None:
            self._peers.renew(settings, known, now)
        gone = len(untrusted)
        for conn, why_not in untrusted:
            core.shut(conn, "certificate_revoked", now, reason=Reason.ADMINISTRATIVE_ACTION, text=why_not)
        for conn in [*core.connections]:
            why = stays(conn.login) if stays is not None and conn.session is not None and conn.login else None
            if why is not None:
                core.shut(conn, "user_revoked", now, reason=Reason.ADMINISTRATIVE_ACTION, text=why)
                gone += 1
        self.poke()
        return gone

    def _fail(self, text: str) -> None:
        """The store is lost, and nothing can be acknowledged any more: better no broker than one that forgets."""
        log.critical("the broker stops: %s", text)
        self.failure = text
        self.on_failure()

    def _stop_soon(self) -> None:
        assert self._asyncio is not None
        self._stopping = self._asyncio.create_task(self.stop())

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
        if isinstance(watched, SocketLink):
            self.core.account.closed["internal_error"] += 1
            watched.abort(monotonic())


def run(
    settings: Settings,
    *,
    log_level: str = "info",
    log_format: str = "human",
    reread: Callable[[], Settings] | None = None,
    services: Sequence[Service] = (),
) -> int:
    """Run a broker until SIGTERM or SIGINT; the exit code.  SIGHUP calls ``reread`` and acts by what it says."""
    log_writer = logs.start(log_level, log_format)
    _raise_descriptor_limit()
    aio = PumpedLoop()
    try:
        failure = _serve(Server(settings, manage=True, reread=reread, services=services), aio)
    except (ListenError, PasswordFileError, Unusable, OSError) as error:
        failure = str(error)
    finally:
        aio.close()
        log_writer.stop()
    if failure:
        print(f"tieline: {failure}", file=sys.stderr)  # noqa: T201 - the program's own last word
    return 1 if failure else 0


def _serve(server: Server, aio: PumpedLoop) -> str:
    """Serve until told to stop; why the broker had to stop by itself, or nothing."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        aio.add_signal_handler(number, stopping.set)
    server.on_failure = stopping.set
    aio.run_until_complete(server.prepare())
    aio.add_signal_handler(signal.SIGHUP, on_hangup, server)
    warn(server.settings)
    _announce(server, monotonic() + _SETTLE_S, monotonic())
    _tune_garbage_collection()
    keep_memory(_KEPT_BLOCK, _KEPT_UNUSED)
    pump(server.loop, aio, stopping)
    log.info("stopping")
    aio.run_until_complete(server.stop())
    return server.failure


def _announce(server: Server, latest: float, now: float) -> None:
    """Print the ready line, once the peers that are there at all have answered, or after a moment."""
    if not server.is_settled and now < latest:
        server.core.timers.at(now + _SETTLE_STEP_S, partial(_announce, server, latest))
        return
    joined = f" joined: {' '.join(server.joined)}" if server.joined else ""
    page = f" page: {server.page_url}" if server.page_url else ""
    print(f"tieline {server.settings.name} ready: {' '.join(server.urls)}{joined}{page}", flush=True)  # noqa: T201 - the ready line


def _tune_garbage_collection() -> None:
    """What exists now stays for ever; afterwards almost everything dies by reference count.

    A full collection at a million objects takes 0.3 s, so the oldest generation is left alone: the core breaks its own
    cycles (timers, links) when a connection ends.  The others are kept small, because a client can make the broker keep
    many objects at once: a middle generation of a hundred thousand took 70 ms, and one of a million much more.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 3, 400_000)


def _raise_descriptor_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
