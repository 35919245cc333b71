"""The HTTP server beside a broker: its socket from the start, its thread from the first connection on.

Theory of operation
-------------------
To load what speaks HTTP takes a tenth of a second of the processor and eight megabytes, and most brokers are never
asked.  So :class:`HttpService` only listens, and waits in the broker's own loop until somebody connects; then a thread
is started that loads the rest and has a loop of its own.  It asks the broker only for what it shows
(:mod:`tieline.web.inside`).
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tieline.conf.schema import Listener
from tieline.conf.urls import ListenerUrl, parse_http
from tieline.core.ports import Login
from tieline.net.address import bind, secure_context
from tieline.net.log import log
from tieline.web.inside import Inside

if TYPE_CHECKING:
    from tieline.conf.schema import Http
    from tieline.net.services import Running
    from tieline.web.serving import HttpServer

#: Where the page is if nobody says where: the first of these ports that is free.
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORTS: Final = range(8080, 8100)
#: Connections that wait to be accepted.
BACKLOG: Final = 64
#: How long the thread may take to end.
_END_S: Final = 10.0
#: While the thread loads its libraries, the broker gets the interpreter back after so many seconds.
_SWITCH_S: Final = 0.0005


class HttpService:
    """Serves ``[http]`` of the settings; see :class:`tieline.net.services.Service`."""

    def __init__(self, *, by_default: bool = False) -> None:
        """With ``by_default`` the page is served on this machine where the settings name no address."""
        self._by_default = by_default
        #: Where it listens, with the port it really got; empty while it does not.
        self.url = ""
        #: Where the page is; empty where there is none.
        self.page_url = ""
        self._listening: socket.socket | None = None
        self._broker_loop: asyncio.AbstractEventLoop | None = None
        self._inside: Inside | None = None
        self._context: ssl.SSLContext | None = None
        self._conf: Http | None = None
        self._http: HttpServer | None = None
        self._thread: threading.Thread | None = None
        self._is_over = False

    async def start(self, server: Running) -> None:
        """Listen; raises an OSError that says why not."""
        conf = self._conf = server.settings.http
        self._is_over = False
        if conf.url is not None:
            self._listen(parse_http(conf.url), conf, has_users=server.has_users)
        elif not self._by_default or conf.page == "off" or not self._listen_by_default():
            return
        assert self._listening is not None
        url = parse_http(self.url)
        is_local = url.is_loopback()
        if self._has_page(is_local=is_local):
            self.page_url = f"{self.url}/page/"
        self._broker_loop = asyncio.get_running_loop()
        door = Listener(url=str(replace(url, scheme="wss" if url.is_tls else "ws")), origins=conf.origins)
        login = Login(client_id="http", username=None, password=None, listener=str(url), peer="")
        self._inside = Inside(server, server.entrance(door), login, is_local=is_local)
        self._broker_loop.add_reader(self._listening.fileno(), self._begin)
        if conf.url is not None:
            log.info("%s answers /metrics, /ready, /health, /v1/…%s", self.url, " and /page/" if self.page_url else "")

    def _listen(self, url: ListenerUrl, conf: Http, *, has_users: bool) -> None:
        if not url.is_loopback() and not has_users:
            raise OSError(f"{conf.url} could be read from other machines: set auth.password_file first, or stay local")
        try:
            if conf.certificate is not None and conf.key is not None:
                self._context = secure_context(conf.certificate, conf.key)
        except (OSError, ValueError) as error:
            raise OSError(f"{conf.url}: the certificate or key cannot be used: {error}") from error
        try:
            self._bind(url)
        except OSError as error:
            raise OSError(f"cannot listen on http {url.host}:{url.port}: {error.strerror or error}") from error
        if not url.is_loopback() and not url.is_tls:
            log.warning("%s can be reached from other machines, and passwords for it travel unencrypted", self.url)

    def _listen_by_default(self) -> bool:
        """Take the first port that is free; a broker does without its page where there is none."""
        for port in DEFAULT_PORTS:
            try:
                self._bind(ListenerUrl(scheme="tcp", host=DEFAULT_HOST, port=port))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    continue
                log.warning("there is no page: %s:%d: %s", DEFAULT_HOST, port, error.strerror or error)
                return False
            if port != DEFAULT_PORTS[0]:
                log.debug("the page is at port %d: port %d is taken", port, DEFAULT_PORTS[0])
            return True
        first, last = DEFAULT_PORTS[0], DEFAULT_PORTS[-1]
        log.warning(
            "there is no page: ports %d to %d of %s are taken; http.url names another", first, last, DEFAULT_HOST
        )
        return False

    def _bind(self, url: ListenerUrl) -> None:
        self._listening = bind(url.host, url.port, backlog=BACKLOG)
        port: int = self._listening.getsockname()[1]
        host = f"[{url.host}]" if ":" in url.host else url.host
        self.url = f"{'https' if url.is_tls else 'http'}://{host}:{port}"

    def _has_page(self, *, is_local: bool) -> bool:
        assert self._conf is not None
        return self._conf.page == "on" or (self._conf.page == "local" and is_local)

    def _begin(self) -> None:
        """Somebody connects: the thread that answers begins, and accepts it."""
        assert self._broker_loop is not None
        assert self._listening is not None
        self._broker_loop.remove_reader(self._listening.fileno())
        self._thread = threading.Thread(target=self._run, name="tieline-http", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        assert self._listening is not None
        assert self._inside is not None
        assert self._conf is not None
        usual_s = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        try:
            from tieline.web.serving import HttpServer

            http = HttpServer(self._inside, self._context, has_page=bool(self.page_url), origins=self._conf.origins)
        except Exception:  # noqa: BLE001 - whatever it is, the broker goes on without its pages
            log.exception("%s cannot be served", self.url)
            self._listening.close()
            return
        finally:
            sys.setswitchinterval(usual_s)
        self._http = http
        if self._is_over:
            http.end()
        with self._listening:
            asyncio.run(http.serve(self._listening))

    async def stop(self) -> None:
        """End; open answers have a second."""
        self._is_over = True
        if self._listening is None:
            return
        if self._thread is None:
            assert self._broker_loop is not None
            self._broker_loop.remove_reader(self._listening.fileno())
            self._listening.close()
        else:
            if self._http is not None:
                self._http.end()
            # not joined on the broker's loop: an answer under way may need it
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join, _END_S)
        self._listening = self._thread = self._http = self._inside = None
        self.url = self.page_url = ""
