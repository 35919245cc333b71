"""Log servers in threads of the test: quick to start, to stop, and to start again on the same port."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import uvicorn

from tests.kits.patience import PATIENCE_S
from tests.net.logserver.writing import Writer, fill
from tieline.conf.schema import Settings
from tieline.net.logserver.app import Bounds, LogServer
from tieline.net.logserver.visitors import Visitors


class Served:
    """A data directory with a log in it, and its log server."""

    def __init__(
        self,
        data: Path,
        name: str = "edge",
        *,
        records: int = 0,
        group: int = 10,
        settings: Settings | None = None,
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        data.mkdir(mode=0o700, exist_ok=True)
        self.writer = Writer(data)
        fill(self.writer, records, group=group)
        self._data = data
        self._settings = settings or Settings(name=name)
        self._is_configured = settings is not None
        self._certificate = certificate
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"{'http' if self._certificate is None else 'https'}://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Answer, on the same port as before."""
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._started.wait(PATIENCE_S)

    def stop(self) -> None:
        """Answer no more."""
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.is_alive():
            self.stop()
        self.writer.close()

    async def _serve(self) -> None:
        visitors = Visitors(self._settings, "tcp://127.0.0.1:9884")
        server = LogServer(self._data, self._settings, Bounds(), is_configured=self._is_configured)
        certificate, key = self._certificate or (None, None)
        config = uvicorn.Config(
            server.app(visitors), port=self.port, lifespan="off", log_config=None, ws="none",
            timeout_graceful_shutdown=1, ssl_certfile=certificate, ssl_keyfile=key,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        watching = asyncio.ensure_future(self._watch())
        try:
            await self._server.serve()
        finally:
            watching.cancel()
            visitors.close()

    async def _watch(self) -> None:
        while not self._server.started:  # noqa: ASYNC110 - uvicorn sets a plain attribute
            await asyncio.sleep(0.01)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        self._started.set()
