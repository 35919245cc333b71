"""The page without being asked for: on this machine, at a port that is free, and never in the way of the broker."""

from __future__ import annotations

import logging
import socket
import threading
import urllib.request
from contextlib import ExitStack

import msgspec
import pytest

from tests.kits.patience import PATIENCE_S
from tieline.conf.schema import Http, Listener, Settings
from tieline.pytest_plugin import BrokerThread

pytest.importorskip("uvicorn")

from tieline.cli import serve
from tieline.cli.trouble import Trouble
from tieline.web import service
from tieline.web.service import HttpService

PLAIN = Settings(listener=(Listener(url="tcp://127.0.0.1:0"),))


def threads() -> list[str]:
    """The threads that serve HTTP."""
    return [thread.name for thread in threading.enumerate() if thread.name == "tieline-http"]


def with_http(http: Http) -> Settings:
    return msgspec.structs.replace(PLAIN, http=http)


@pytest.fixture(name="ports")
def _ports(monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Two ports that are free, in place of those from 8080."""
    with ExitStack() as stack:
        socks = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        first, second = (sock.getsockname()[1] for sock in socks)
    monkeypatch.setattr(service, "DEFAULT_PORTS", (first, second))
    return first, second


def test_the_first_port_that_is_free(ports: tuple[int, int]) -> None:
    http = HttpService(by_default=True)
    with BrokerThread(PLAIN, services=[http]) as broker:
        assert http.page_url == f"http://127.0.0.1:{ports[0]}/page/" == broker._server.page_url
        other = HttpService(by_default=True)
        with BrokerThread(PLAIN, services=[other]):
            assert other.page_url == f"http://127.0.0.1:{ports[1]}/page/"
    assert http.page_url == "", "and nothing once it has stopped"


def test_without_a_free_port_the_broker_runs_without_a_page(
    ports: tuple[int, int], caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as stack:
        for port in ports:
            stack.enter_context(socket.create_server(("127.0.0.1", port)))
        http = HttpService(by_default=True)
        with caplog.at_level(logging.WARNING), BrokerThread(PLAIN, services=[http]) as broker:
            assert broker.urls and http.page_url == "" and broker._server.page_url == ""
    assert "there is no page: ports" in caplog.text


def test_nothing_is_loaded_before_somebody_comes(ports: tuple[int, int]) -> None:
    http = HttpService(by_default=True)
    with BrokerThread(PLAIN, services=[http]):
        assert threads() == []
        with urllib.request.urlopen(http.page_url, timeout=PATIENCE_S) as answer:
            assert answer.status == 200
        assert threads() == ["tieline-http"]
    assert threads() == []


def test_an_address_that_was_named_is_not_exchanged_for_another(ports: tuple[int, int]) -> None:
    with socket.create_server(("127.0.0.1", ports[0])), pytest.raises(OSError, match="cannot listen on http"):
        BrokerThread(with_http(Http(url=f"http://127.0.0.1:{ports[0]}")), services=[HttpService()]).__enter__()


def test_which_brokers_have_http_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(serve._services(PLAIN)) == 1
    assert serve._services(with_http(Http(page="off"))) == []
    assert len(serve._services(with_http(Http(url="http://127.0.0.1:0", page="off")))) == 1
    monkeypatch.setattr("tieline.net.preflight.is_installed", lambda _name: False)
    assert serve._services(PLAIN) == [], "without the extra nothing has changed"
    for http, key in ((Http(url="http://127.0.0.1:0"), "http.url"), (Http(page="on"), "http.page")):
        with pytest.raises(Trouble, match=f"{key} needs the extra"):
            serve._services(with_http(http))
