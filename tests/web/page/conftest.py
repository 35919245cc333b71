"""A browser, brokers that it looks at, and what holds on every view.

Playwright keeps an event loop in the thread that uses it, so a browser lives no longer than the tests of one file:
whatever comes after them in the same process may want a loop of its own.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.conftest import need
from tests.kits.dial import Dial, dial
from tests.kits.patience import PATIENCE_S, until
from tests.net.test_peers import reaches
from tieline import Settings
from tieline.conf.overlay import Peer
from tieline.conf.schema import Attribute, Class, Event, Http, Listener
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish

pytest.importorskip("uvicorn")

from tieline.web.service import HttpService

FLAGS: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--enable-precise-memory-info"),
)
DESK: Final = (1280, 800)
PHONE: Final = (390, 844)
CLASSES: Final = (
    Class(name="protection", filter="microgrid/+/+/protection", level=3),
    Class(name="command", filter="microgrid/+/+/command", level=2),
    Class(name="reading", filter="microgrid/+/+/reading", level=0),
)
READING: Final = Event(
    topic="microgrid/+/+/reading",
    attributes=(
        Attribute(name="voltage", kind="number", bounds=(0.0, 400.0)),
        Attribute(name="frequency", kind="number", bounds=(40.0, 60.0)),
    ),
)
_PATIENCE_MS: Final = PATIENCE_S * 1000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium as the system has it; nothing is downloaded."""
    program = need("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser
        browser.close()


class Shown:
    """A broker with its page."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        self._http = HttpService()
        self.broker = BrokerThread(settings, services=[self._http], **options)
        self.broker.__enter__()

    @property
    def url(self) -> str:
        return f"{self._http.url}/page/"

    @property
    def port(self) -> int:
        return int(self._http.url.rsplit(":", 1)[1])

    def close(self) -> None:
        self.broker.__exit__(None, None, None)


def settings(name: str = "kitchen", *, http_port: int = 0, is_joined: bool = False, **options: Any) -> Settings:
    """One broker that shows itself; ``options`` are further settings."""
    listener = [Listener(url="tcp://127.0.0.1:0")]
    if is_joined:
        listener.append(Listener(url="peer://127.0.0.1:0"))
    return Settings(name=name, listener=tuple(listener), http=Http(url=f"http://127.0.0.1:{http_port}"), **options)


class Eye:
    """One tab: it looks at a page, and remembers everything that was said or asked for behind it."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.url = url
        self.said: list[str] = []
        self.page: Page = context.new_page()
        self.page.set_default_timeout(_PATIENCE_MS)
        origin = url.removesuffix("/page/")
        allowed = (origin, origin.replace("http:", "ws:"), "data:")
        self.page.on("console", lambda message: self._hear(message.type, message.text))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("request", lambda request: self._note(request.url, allowed))
        self.page.on("websocket", lambda socket: self._note(socket.url, allowed))

    def _hear(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.said.append(f"{kind}: {text}")

    def _note(self, url: str, allowed: tuple[str, ...]) -> None:
        if not url.startswith(allowed):
            self.said.append(f"asked for {url}")

    def look(self, view: str = "overview") -> Page:
        """Show a view, and wait until it has something to show."""
        self.page.goto(f"{self.url}#/{view}")
        self.await_view(view)
        return self.page

    def await_view(self, view: str) -> None:
        # a locator keeps no hold of what it has found, so the page may forget it
        self.page.locator(f'main[data-view="{view}"] .content > *').first.wait_for()

    def verdict(self) -> str:
        return self.page.locator("main h1").inner_text()

    def check(self) -> None:
        """Nothing went wrong, nothing came from elsewhere, nothing is wider than the screen."""
        assert self.said == []
        wide, screen = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= screen, f"{wide} px on a screen of {screen}"


Open = Callable[..., Eye]


@pytest.fixture
def open_eye(browser: Browser) -> Iterator[Open]:
    """Opens tabs, each in a profile of its own, and closes them."""
    with ExitStack() as stack:

        def open_(url: str, *, theme: str = "light", size: tuple[int, int] = DESK, init: str = "") -> Eye:
            context = browser.new_context(
                viewport={"width": size[0], "height": size[1]},
                color_scheme="dark" if theme == "dark" else "light",
            )
            stack.callback(context.close)
            if init:
                context.add_init_script(init)
            return Eye(context, url)

        yield open_


class World:
    """Three joined brokers and those who use them: one reads nothing any more, some ask by content."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._stop = threading.Event()
        self._clients: list[Dial] = []
        self.others: dict[str, BrokerThread] = {}
        shown = Shown(settings("control", is_joined=True, class_=CLASSES, event={"reading": READING}, data=str(folder)))
        stack.callback(shown.close)
        self.shown = shown
        peer = shown.broker.urls[1]
        for name in ("north", "south"):
            quiet = Settings(
                name=name,
                listener=(Listener(url="tcp://127.0.0.1:0"),),
                peer=(Peer(url=peer, capacity=512_000),),
                class_=CLASSES,
                event={"reading": READING},
            )
            self.others[name] = stack.enter_context(BrokerThread(quiet))
        until(lambda: reaches(shown.broker, 2), "all brokers are joined")
        stack.callback(self._end)
        for name, wanted in (
            ("guard", "$where/frequency<49 or frequency>51/microgrid/+/+/reading"),
            ("control-room", "$where/voltage<207/microgrid/+/+/reading"),
            ("historian", "microgrid/#"),
        ):
            self._join(name).subscribe(wanted)
        # a window of nothing, and a subscriber that never reads: what it asked for waits for its socket
        sleepy = self._join("archive")
        sleepy.subscribe("microgrid/#")
        drains = [client for client in self._clients if client is not sleepy]
        threading.Thread(target=self._drain, args=(drains,), daemon=True).start()
        threading.Thread(target=self._speak, args=(self._join("meters"),), daemon=True).start()

    def _join(self, name: str) -> Dial:
        client = dial(self.shown.broker.urls[0], name)
        self._clients.append(client)
        return client

    def _drain(self, clients: list[Dial]) -> None:
        for client in clients:
            client.sock.settimeout(0.02)
        while not self._stop.is_set():
            for client in clients:
                with suppress(OSError):
                    client.sock.recv(1 << 20)

    def _speak(self, meters: Dial) -> None:
        number = 0
        with suppress(OSError):
            while not self._stop.wait(0.1):
                number += 1
                for node in range(8):
                    said = {"voltage": 200.0 + 3 * node + number % 3, "frequency": 48.9 + 0.01 * (number % 30)}
                    meters.send(
                        Publish(topic=f"microgrid/lv/R{node}/reading", payload=json.dumps(said).ljust(4096).encode())
                    )
                meters.send(Publish(topic="microgrid/lv/S1/command", payload=b"{}"))

    def _end(self) -> None:
        self._stop.set()
        for client in self._clients:
            client.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(tmp_path_factory.mktemp("data"), stack)
