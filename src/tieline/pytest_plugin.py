"""A pytest fixture that runs a real broker beside the test: ``def test_x(tieline_broker): …``.

The broker runs in a thread with an event loop of its own, so blocking clients such as paho can talk to it from the
test.  Ask for other settings with a marker: ``@pytest.mark.tieline(listen=["ws://127.0.0.1:0"])``; its arguments are
those of ``tieline.Broker``.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar  # Any: arguments are passed on as they come

import pytest

if TYPE_CHECKING:
    from types import TracebackType

    from tieline.core.broker import Broker as Core
    from tieline.net.server import Server

T = TypeVar("T")

_START_S = 10.0


class BrokerThread:
    """A broker in a thread: ``with BrokerThread(listen=[…]) as broker``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Arguments as for ``tieline.Broker``."""
        from tieline.net.server import Server

        self._server: Server = Server(*args, **kwargs)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = threading.Event()
        self._stopping: asyncio.Event | None = None
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="tieline", daemon=True)
        self.urls: list[str] = []

    @property
    def host(self) -> str:
        """Where the first listener is."""
        return self.urls[0].split("://", 1)[1].rsplit(":", 1)[0].strip("[]")

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return int(self.urls[0].rsplit(":", 1)[1])

    def ask(self, question: Callable[[Core], T]) -> T:
        """Run ``question(core)`` in the broker's thread and return its answer."""
        assert self._loop is not None

        async def put() -> T:
            answer = question(self._server.core)
            self._server.poke()  # the question may have changed something
            return answer

        return asyncio.run_coroutine_threadsafe(put(), self._loop).result(_START_S)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._started.wait(_START_S):
            raise TimeoutError("the broker did not start in time")
        if self._failed is not None:
            raise self._failed
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._stopping is not None:
            # a broker that has ended by itself has closed its loop
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(_START_S)
        if self._failed is not None and kind is None:
            raise self._failed

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        try:
            async with self._server:
                self.urls = self._server.urls
                self._started.set()
                await self._stopping.wait()
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits for the start
            self._failed = error
        finally:
            self._started.set()


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "tieline(**settings): arguments for the broker of the tieline_broker fixture")


@pytest.fixture
def tieline_broker(request: pytest.FixtureRequest) -> Iterator[BrokerThread]:
    """A broker on a free loopback port, ended after the test."""
    marker = request.node.get_closest_marker("tieline")
    args, kwargs = (marker.args, marker.kwargs) if marker else ((), {})
    with BrokerThread(*args, **kwargs) as broker:
        yield broker
