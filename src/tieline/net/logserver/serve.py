"""The process of the log server: its socket, its signals, its one line that says that it is ready."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import uvicorn

from tieline.conf.error import ConfError
from tieline.conf.schema import Settings
from tieline.conf.urls import ListenerUrl, UrlError, parse_http
from tieline.net import log as story
from tieline.net import vitals
from tieline.net.address import bind, load_certificate, secure_context
from tieline.net.auth.passwords import PasswordFileError
from tieline.net.http.connections import Places
from tieline.net.log import log
from tieline.net.logserver.app import Bounds, LogServer
from tieline.net.logserver.visitors import Visitors

#: How long a reader may take nothing at all before its connection is given up.  Spark stops reading while it works.
_STALL_MS: Final = 600_000
#: How long readers may go on when the server has been told to stop.
_FAREWELL_S: Final = 3
#: From the opening of a connection, or from the first byte of a later request, to the end of the request's head.
_HEAD_S: Final = 15.0
#: Open connections, reading or not.
_MOST_CONNECTIONS: Final = 256
#: Request line and headers together; a condition has at most 1,024 characters, and there may be a hundred topics.
_MOST_HEAD: Final = 65_536
#: What lies unused is no more than what was once in use at the same time, which :class:`Bounds` limits.
_UNUSED_BYTES: Final = 64 << 20


class Unservable(Exception):
    """The server cannot start; the message is a sentence for the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the server listens."""

    listener: ListenerUrl
    certificate: Path | None = None
    key: Path | None = None

    def __str__(self) -> str:
        """As readers write it."""
        return f"{'https' if self.listener.is_tls else 'http'}://{str(self.listener).partition('://')[2]}"

    def at(self, port: int) -> Address:
        """The same with the port that the system gave."""
        return replace(self, listener=replace(self.listener, port=port))


def address(text: str, certificate: Path | None = None, key: Path | None = None) -> Address:
    """Take a URL apart."""
    try:
        listener = parse_http(text)
    except UrlError as problem:
        raise Unservable(str(problem)) from None
    if listener.is_tls and (certificate is None or key is None):
        raise Unservable(f"{text} encrypts: give --certificate and --key.")
    if not listener.is_tls and (certificate is not None or key is not None):
        raise Unservable("--certificate and --key go with https://")
    return Address(listener=listener, certificate=certificate, key=key)


class _Listening(uvicorn.Server):
    """Says when it answers, and stops from then on when it is told to."""

    ready = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and tell whoever started us that we do."""
        await super().startup(sockets)
        print(self.ready, flush=True)  # noqa: T201 - whoever started us waits for this


def run(
    data: Path,
    where: Address,
    settings: Settings,
    bounds: Bounds,
    *,
    reload: Callable[[], Settings] | None = None,
    log_level: str = "info",
    log_format: str = "human",
) -> None:
    """Serve until SIGTERM or SIGINT; ``reload`` gives the settings again on SIGHUP, if they came from a file."""
    _check(where, settings)
    _context(where)
    vitals.keep_memory(vitals.LARGEST, _UNUSED_BYTES)
    bound = _bind(where)
    where = where.at(bound.getsockname()[1])
    writing = story.start(log_level, log_format)
    if not where.listener.is_loopback() and where.certificate is None:
        log.warning("passwords and the log cross the network in the clear: use https:// with --certificate and --key")
    logging.getLogger("uvicorn.error").handlers = log.handlers
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    try:
        asyncio.run(_serve(bound, data, where, settings, bounds, reload))
    finally:
        bound.close()
        writing.stop()


async def _serve(
    bound: socket.socket,
    data: Path,
    where: Address,
    settings: Settings,
    bounds: Bounds,
    reload: Callable[[], Settings] | None,
) -> None:
    visitors = Visitors(settings, str(where.listener))
    server = LogServer(data, settings, bounds, is_configured=reload is not None)
    places = Places(_MOST_CONNECTIONS, reserve=0, per_address=_MOST_CONNECTIONS, head_s=_HEAD_S)
    config = uvicorn.Config(
        server.app(visitors),
        http=places.protocol(),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=_MOST_HEAD,
        timeout_graceful_shutdown=_FAREWELL_S,
    )
    config.load()
    config.ssl = _context(where)

    def renew() -> None:
        """Take configuration, users and certificate as they are now; what cannot be used changes nothing."""
        try:
            if config.ssl is not None:
                _certify(config.ssl, where)
            if reload is not None:
                changed = reload()
                _check(where, changed)
                visitors.renew(changed)
                server.renew(changed)
        except (ConfError, PasswordFileError, Unservable) as problem:
            log.error("not reloaded: %s", problem)
        else:
            log.info("reloaded")

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, renew)
    listening = _Listening(config)
    listening.ready = f"tieline log ready: {where}"
    # Also once uvicorn has stopped: then it gives signals back to the handlers that were there before, and the end on
    # request is no failure.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: setattr(listening, "should_exit", True))
    try:
        await listening.serve(sockets=[bound])
    finally:
        visitors.close()


def _check(where: Address, settings: Settings) -> None:
    """Refuse to let in everybody, or nobody."""
    if settings.auth.password_file is not None:
        return
    if not where.listener.is_loopback():
        raise Unservable(
            f"{where} can be reached from other machines, and without users anybody could read the log: set "
            "auth.password_file in --config, or use 127.0.0.1"
        )
    if settings.auth.anonymous == "nowhere":
        raise Unservable('nobody could read the log: auth.anonymous = "nowhere", and there is no auth.password_file')


def _context(where: Address) -> ssl.SSLContext | None:
    """What TLS needs at an address; None where there is no TLS."""
    if where.certificate is None or where.key is None:
        return None
    with _told(where):
        return secure_context(where.certificate, where.key)


def _certify(context: ssl.SSLContext, where: Address) -> None:
    """Give a context the certificate as its files are now; connections that are open keep the one they have."""
    if where.certificate is not None:
        with _told(where):
            load_certificate(context, where.certificate, where.key)


@contextmanager
def _told(where: Address) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as problem:
        raise Unservable(f"{where.certificate} and {where.key} cannot be used together: {problem}") from None


def _bind(where: Address) -> socket.socket:
    # inherited by accepted sockets: also ends those whose reader keeps its window closed
    options = ((socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _STALL_MS),) if hasattr(socket, "TCP_USER_TIMEOUT") else ()
    try:
        return bind(where.listener.host, where.listener.port, backlog=128, options=options)
    except OSError as problem:
        raise Unservable(f"cannot listen on {where}: {(problem.strerror or str(problem)).lower()}") from None
