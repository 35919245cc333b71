"""HTTP beside the broker: what is on the pages, who may see them, and that nobody else notices."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.kits.dial import dial
from tests.kits.patience import PATIENCE_S
from tieline import Listener, Settings
from tieline.conf.schema import Auth, Class, Http, Rule
from tieline.core.account import Drop
from tieline.core.ports import Allowed, Login, Pending, Refused, Verdict
from tieline.net.server import Server
from tieline.pytest_plugin import BrokerThread
from tieline.version import __version__
from tieline.wire.packets import Publish
from tieline.wire.reason import Reason

pytest.importorskip("uvicorn")

from prometheus_client.parser import text_string_to_metric_families

from tieline.web import doors, figures, inside, metrics, service
from tieline.web import serving as serving_module

DOORS = ("/metrics", "/ready", "/nothing", "/metrics/", "//metrics", "/healthy", "/health/", "/log")
LISTENER = (Listener(url="tcp://127.0.0.1:0"),)


class Serving:
    """A broker with HTTP beside it."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        self._http = service.HttpService()
        self.broker = BrokerThread(settings, services=[self._http], **options)
        self.broker.__enter__()
        self.port = int(self._http.url.rsplit(":", 1)[1])

    def get(
        self, path: str, *, method: str = "GET", user: str = "", password: str = "", **headers: str
    ) -> tuple[int, str, dict[str, str]]:
        if user:
            headers["Authorization"] = "Basic " + b64encode(f"{user}:{password}".encode()).decode()
        asking = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            asking.request(method, path, headers=headers)
            answer = asking.getresponse()
            return (
                answer.status,
                answer.read().decode(errors="replace"),
                {name.lower(): text for name, text in answer.headers.items()},
            )
        finally:
            asking.close()

    def raw(self, data: bytes) -> bytes:
        """What bytes are answered with, to the end."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as sock:
            sock.sendall(data)
            answer = b""
            while piece := sock.recv(65_536):
                answer += piece
            return answer

    def is_well(self) -> bool:
        """MQTT goes on."""
        with dial(self.broker.urls[0], "probe") as client:
            client.subscribe("here")
            client.send(Publish(topic="here", payload=b"x"))
            return client.expect(Publish).payload == b"x"

    def close(self) -> None:
        self.broker.__exit__(None, None, None)


def settings(**options: Any) -> Settings:
    return Settings(listener=LISTENER, http=Http(url="http://127.0.0.1:0"), **options)


@pytest.fixture(scope="module")
def open_() -> Iterator[Serving]:
    serving = Serving(settings(class_=(Class(name="control", filter="cmd/#", level=3),)))
    yield serving
    serving.close()


class Checker:
    """Two users, and one whose check fails."""

    def authenticate(self, login: Login) -> str | None:
        if login.username == "trouble":
            raise RuntimeError("the directory is down")
        return login.username if login.password == b"right" else None


RULES = (
    Rule(filter="$SYS/#", allow="all", users=("operator",)),
    Rule(filter="public/#", allow="all"),
)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Serving]:
    serving = Serving(settings(rule=RULES, auth=Auth(failures="none")), authenticator=Checker())
    yield serving
    serving.close()


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_health_says_nothing_but_ok(open_: Serving, guarded: Serving) -> None:
    for serving in (open_, guarded):
        status, body, headers = serving.get("/health")
        assert (status, body) == (200, "ok\n")
        assert "server" not in headers and headers["connection"] == "close"
    assert open_.get("/health", method="HEAD")[:2] == (200, "")


def test_metrics_count_what_happened(open_: Serving) -> None:
    with dial(open_.broker.urls[0], "watched") as client:
        client.subscribe("cmd/#")
        client.send(Publish(topic="cmd/a", payload=b"x"))
        client.expect(Publish)
        open_.broker.ask(lambda core: core.account.drop(0.0, Drop.QUEUE_FULL, "c", b"t", 7, level=3))
        status, body, headers = open_.get("/metrics")
    assert status == 200 and headers["content-type"].startswith("text/plain")
    found = samples(body)
    assert found["tieline_class_received_messages_total", (("class", "control"), ("level", "3"))] >= 1
    assert found["tieline_dropped_messages_total", (("class", "control"), ("why", "queue_full"))] == 7
    assert found["tieline_connected_sessions", ()] == 1
    assert found["tieline_subscriptions", ()] == 1
    assert ("tieline_info", (("name", "tieline"), ("version", __version__))) in found
    assert found["tieline_class_wait_seconds_bucket", (("class", "control"), ("le", "+Inf"), ("level", "3"))] == 0


def test_every_metric_has_a_name_of_ours_and_a_sentence(open_: Serving) -> None:
    body = open_.get("/metrics")[1]
    helps = dict(re.findall(r"^# HELP (\S+) (.+)$", body, re.MULTILINE))
    names = {line.split("{")[0].split(" ")[0] for line in body.splitlines() if line and not line.startswith("#")}
    assert all(name.startswith("tieline_") for name in names)
    assert all(text.endswith(".") for text in helps.values())
    assert set(metrics.COUNTERS).isdisjoint(metrics.GAUGES)


def test_openmetrics_for_those_who_ask(open_: Serving) -> None:
    _, body, headers = open_.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert headers["content-type"].startswith("application/openmetrics-text") and body.endswith("# EOF\n")


def test_ready(open_: Serving) -> None:
    status, body, _ = open_.get("/ready")
    assert status == 200 and json.loads(body) == {"ready": True, "troubles": []}


def test_a_store_in_trouble_is_not_ready() -> None:
    serving = Serving(settings())
    try:
        serving.broker.ask(lambda core: setattr(core.journal, "trouble", "the disk is full"))
        status, body, _ = serving.get("/ready")
        assert status == 503 and json.loads(body)["troubles"] == ["the store takes nothing: the disk is full"]
        assert serving.get("/health")[0] == 200, "alive it is"
    finally:
        serving.close()


def test_where_nobody_is_known_no_door_but_these_exists(open_: Serving) -> None:
    assert open_.get("/nothing")[:2] == (404, "there is no such page\n")
    assert open_.get("/metrics", method="POST")[:2] == (405, "only GET and HEAD are answered\n")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS", "PROPFIND"])
def test_without_credentials_every_door_says_401_and_nothing_else(guarded: Serving, door: str, method: str) -> None:
    status, body, headers = guarded.get(door, method=method)
    assert (status, body) == (401, "who are you?\n")
    assert headers["www-authenticate"].startswith("Basic ")


@pytest.mark.parametrize(
    "given",
    ["Basic", "Basic !!!", "Basic " + b64encode(b"nocolon").decode(), "Basic " + b64encode(b":right").decode(),
     "Basic " + b64encode(b"\xff:right").decode(), "Bearer abc", "Digest username=operator", ""],
)  # fmt: skip
def test_credentials_that_make_no_sense(guarded: Serving, given: str) -> None:
    assert guarded.get("/metrics", Authorization=given)[:2] == (401, "who are you?\n")


def test_the_users_and_rules_of_mqtt(guarded: Serving) -> None:
    assert guarded.get("/metrics", user="operator", password="right")[0] == 200
    assert guarded.get("/ready", user="operator", password="right")[0] == 200
    assert guarded.get("/metrics", user="operator", password="wrong")[:2] == (401, "who are you?\n")
    refused = (403, "not for you: no rule that allows to subscribe covers all of this\n")
    assert guarded.get("/metrics", user="nosy", password="right")[:2] == refused
    assert guarded.get("/nothing", user="nosy", password="right")[:2] == refused
    assert guarded.get("/metrics", user="trouble", password="right")[0] in {401, 503}


def test_two_authorizations_are_none(guarded: Serving) -> None:
    word = b64encode(b"operator:right")
    data = b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + 2 * (b"Authorization: Basic " + word + b"\r\n") + b"\r\n"
    assert guarded.raw(data).startswith(b"HTTP/1.1 401 ")


def test_too_many_failures_are_not_heard() -> None:
    serving = Serving(settings(auth=Auth(failures=2)), authenticator=Checker())
    try:
        seen = [serving.get("/metrics", user="operator", password="wrong")[0] for _ in range(4)]
        assert seen[:2] == [401, 401] and seen[-1] == 429
    finally:
        serving.close()


class Later:
    """An access of somebody's own that answers later."""

    is_open = False

    def __init__(self) -> None:
        self.broker: BrokerThread | None = None
        self.token = 0

    def _answer(self, verdict: Allowed | Refused) -> Verdict:
        self.token += 1
        broker, token = self.broker, self.token
        assert broker is not None and broker._loop is not None
        broker._loop.call_soon(broker._server.decided, token, verdict)
        return Pending(token)

    def connect(self, login: Login) -> Verdict:
        return self._answer(Allowed() if login.password == b"right" else Refused("no", Reason.NOT_AUTHORIZED))

    def publish(self, login: Login, topic: str) -> Verdict:
        return Allowed()

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        assert login.password is None, "a password is not kept any longer than it is needed"
        return self._answer(Allowed() if (login.user, filter_) == ("operator", "$SYS/#") else Refused("no"))


def test_an_access_that_answers_later() -> None:
    access = Later()
    serving = Serving(settings(), access=access)
    access.broker = serving.broker
    try:
        assert serving.get("/ready", user="operator", password="right")[0] == 200
        assert serving.get("/ready", user="operator", password="wrong")[0] == 401
        assert serving.get("/ready", user="nosy", password="right")[0] == 403
        assert serving.get("/ready")[0] == 401
    finally:
        serving.close()


def test_other_machines_only_if_there_are_users() -> None:
    outside = msgspec.structs.replace(settings(), http=Http(url="http://0.0.0.0:0"))
    with pytest.raises(OSError, match=r"set auth\.password_file first"):
        Serving(outside)
    serving = Serving(outside, authenticator=Checker())
    assert serving.get("/metrics")[0] == 401
    serving.close()


def test_an_address_in_use_is_said_so(open_: Serving) -> None:
    taken = msgspec.structs.replace(settings(), http=Http(url=f"http://127.0.0.1:{open_.port}"))
    with pytest.raises(OSError, match=r"cannot listen on http 127\.0\.0\.1"):
        Serving(taken)


def test_settings_that_nobody_serves_are_refused() -> None:
    with pytest.raises(OSError, match="nothing serves it"), BrokerThread(settings()):
        pass


@pytest.mark.parametrize(
    "garbage",
    [b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00", b"GET / HTTP/9.9\r\n",
     b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
     b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"A" * 100_000 + b"\r\n\r\n"],
)  # fmt: skip
def test_bad_requests_disturb_nobody(open_: Serving, garbage: bytes) -> None:
    try:
        answer = open_.raw(garbage + b"\r\n\r\n")
    except ConnectionError:
        answer = b""
    assert not answer.startswith(b"HTTP/1.1 200") and b"Traceback" not in answer
    assert open_.is_well() and open_.get("/health")[0] == 200


def test_slow_readers_and_floods_stop_nobody(open_: Serving) -> None:
    dawdling = [socket.create_connection(("127.0.0.1", open_.port), PATIENCE_S) for _ in range(20)]
    for sock in dawdling:
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + (b"\r\n" if sock.fileno() % 2 else b"X: "))
    with ThreadPoolExecutor(8) as readers:
        flood = [readers.submit(open_.get, "/metrics") for _ in range(60)]
        assert all(open_.is_well() for _ in range(10))
        assert {one.result()[0] for one in flood} <= {200, 503}
    assert open_.get("/ready")[0] == 200
    for sock in dawdling:
        sock.close()


def test_whoever_asks_and_hangs_up_takes_nobodys_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "PACE_PER_S", 1.0)
    serving = Serving(settings())
    try:
        for _ in range(100):
            with socket.create_connection(("127.0.0.1", serving.port), PATIENCE_S) as sock:
                sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        # with a turn for each of them it would be the turn of this one when its time is over
        assert serving.get("/metrics")[0] == 200
    finally:
        serving.close()


def test_connections_that_say_nothing_do_not_keep_health_out(open_: Serving) -> None:
    silent = [socket.create_connection(("127.0.0.1", open_.port), PATIENCE_S) for _ in range(200)]
    for sock in silent[-20:]:
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: ")
    assert all(open_.get("/health")[:2] == (200, "ok\n") for _ in range(10))
    assert open_.get("/ready")[0] == 200
    for sock in silent:
        sock.close()


def test_requests_that_wait_for_their_password_do_not_keep_health_out() -> None:
    class Slow(Checker):
        def authenticate(self, login: Login) -> str | None:
            checking.wait(PATIENCE_S)
            return super().authenticate(login)

    checking = threading.Event()
    serving = Serving(settings(auth=Auth(failures="none", workers=1)), authenticator=Slow())
    waiting = []
    try:
        head = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Basic " + b64encode(b"operator:right")
        for _ in range(100):
            sock = socket.create_connection(("127.0.0.1", serving.port), PATIENCE_S)
            sock.sendall(head + b"\r\n\r\n")
            waiting.append(sock)
        assert [serving.get("/health")[0] for _ in range(5)] == [200] * 5
    finally:
        checking.set()
        for sock in waiting:
            sock.close()
        serving.close()


def test_a_flood_does_not_ask_the_broker_each_time(open_: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Server] = []

    def counted(server: Server) -> figures.Figures:
        asked.append(server)
        return figures.take(server)

    monkeypatch.setattr(inside, "take", counted)
    for _ in range(10):
        assert open_.get("/metrics")[0] == 200
    assert len(asked) < 10


def test_nobody_keeps_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_module, "LIFE_S", 0.05)
    serving = Serving(settings())
    try:
        assert serving.raw(b"GET /metrics HTTP/1.1\r\n") == b""
    except ConnectionResetError:
        pass
    finally:
        serving.close()


def test_https(tmp_path: Path) -> None:
    import ssl

    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    certificate.cert_chain_pems[0].write_to_path(str(chain))
    certificate.private_key_pem.write_to_path(str(key))
    secure = Http(url="https://127.0.0.1:0", certificate=str(chain), key=str(key))
    serving = Serving(msgspec.structs.replace(settings(), http=secure))
    try:
        context = ssl.create_default_context()
        authority.configure_trust(context)
        asking = http.client.HTTPSConnection("127.0.0.1", serving.port, timeout=PATIENCE_S, context=context)
        asking.request("GET", "/health")
        assert asking.getresponse().read() == b"ok\n"
        asking.close()
    finally:
        serving.close()
