"""Where there are users: no credentials, no answer; and with them, what the rules allow and nothing else."""

from __future__ import annotations

import base64
import http.client
import json
import signal
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from tests.kits.certificates import issue
from tests.kits.patience import until
from tests.net.logserver.conftest import Serve, Server, Start
from tests.net.logserver.writing import Writer, record
from tieline.log.record import Occurrence
from tieline.net.auth import passwords

CONFIG = """
name = "edge"
[auth]
password_file = "users"
failures = "none"
[log]
readers = ["spark"]
[[rule]]
filter = "secret/#"
deny = "all"
[[rule]]
filter = "#"
allow = "all"
users = ["alice"]
[[rule]]
filter = "$SYS/#"
allow = "all"
users = ["alice"]
[[rule]]
filter = "devices/%u/#"
allow = ["read", "subscribe"]
"""
TOPICS = ("secret/plan", "devices/bob/1", "devices/alice/1", "grid/1")


@pytest.fixture(name="place", scope="module")
def _place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("data")
    quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    for user in ("alice", "bob"):
        passwords.put(place / "users", user, f"{user}'s".encode(), quick)
    (place / "tieline.toml").write_text(CONFIG)
    writer = Writer(place)
    writer.append([record(number, topic=TOPICS[number % 4]) for number in range(400)])
    writer.append(
        [
            Occurrence(1, "connect", "x"),
            Occurrence(2, "drop", "x", "secret/plan"),
            Occurrence(3, "drop", "x", "grid/1"),
        ],
        stream="events",
    )
    writer.close()
    return place


@pytest.fixture(name="server", scope="module")
def _server(place: Path, serve: Serve) -> Server:
    return serve(place, "--config", str(place / "tieline.toml"))


DOORS = [
    ("GET", "/v1/offsets"),
    ("GET", "/v1/offsets?stream=events"),
    ("GET", "/v1/read?from=0"),
    ("GET", "/v1/read?from=0&stream=events"),
    ("GET", "/v1/read?from=99999"),
    ("GET", "/v1/read?nonsense"),
    ("HEAD", "/v1/read?from=0"),
    ("GET", "/v1/readers"),
    ("PUT", "/v1/readers/spark"),
    ("GET", "/"),
    ("GET", "/docs"),
    ("GET", "/openapi.json"),
    ("DELETE", "/v1/readers/spark"),
    ("OPTIONS", "/v1/read"),
    ("GET", "/v1/../tieline.db"),
]


@pytest.mark.parametrize(("method", "path"), DOORS)
def test_without_credentials_every_door_says_the_same(server: Server, method: str, path: str) -> None:
    bodies = set()
    for how in ({}, {"auth": "alice:wrong"}, {"headers": {"Authorization": "Bearer x"}}):
        with server.open(path, method=method, body=b'{"position": 1}', **how) as response:
            assert response.status == 401
            assert response.headers["WWW-Authenticate"].startswith("Basic ")
            bodies.add(response.read())
    assert all(b"edge" not in body and b"offset" not in body for body in bodies)
    assert len(bodies) <= 2  # nothing in them depends on what was asked for


def test_rows_that_the_rules_do_not_allow_are_withheld_and_counted(server: Server) -> None:
    alice = server.read("/v1/read?from=0&columns=topic", auth="alice:alice's")
    assert {row["topic"] for row in alice.rows} == set(TOPICS) - {"secret/plan"}
    assert alice.ended["withheld"] == 100
    bob = server.read("/v1/read?from=0&columns=topic", auth="bob:bob's")
    assert {row["topic"] for row in bob.rows} == {"devices/bob/1"}
    assert (bob.ended["rows"], bob.ended["withheld"]) == (100, 300)


def test_neither_topics_nor_a_condition_widen_what_is_allowed(server: Server) -> None:
    for more in ("topics=secret/%23", "topics=%23", "where=number%20%3E=%200", "topics=secret/plan&where=number%3D0"):
        found = server.read(f"/v1/read?from=0&columns=topic&{more}", auth="bob:bob's")
        assert {row["topic"] for row in found.rows} <= {"devices/bob/1"}
        assert found.ended["withheld"] == 300


def test_events_follow_the_rules_too(server: Server) -> None:
    alice = server.read("/v1/read?from=0&stream=events", auth="alice:alice's")
    assert [(row["kind"], row["topic"]) for row in alice.rows] == [("connect", ""), ("drop", "grid/1")]
    assert alice.ended["withheld"] == 1
    assert server.read("/v1/read?from=0&stream=events", auth="bob:bob's").rows == []


def test_only_who_may_moves_a_reader_and_only_one_that_there_is(server: Server) -> None:
    def put(name: str, auth: str) -> int:
        return server.ask(f"/v1/readers/{name}", method="PUT", body=b'{"position": 7}', auth=auth)[0]

    assert put("spark", "bob:bob's") == 403
    assert put("spark", "alice:alice's") == 200
    assert put("stranger", "alice:alice's") == 404
    assert server.ask("/v1/readers", auth="alice:alice's")[1] == [{"name": "spark", "position": 7, "behind": 393}]
    assert server.ask("/v1/readers", auth="bob:bob's")[1] == []


def test_a_changed_configuration_counts_after_sighup(place: Path, tmp_path: Path, serve: Serve) -> None:
    config = tmp_path / "tieline.toml"
    config.write_text(CONFIG.replace('"users"', f'"{place / "users"}"'))
    server = serve(place, "--config", str(config))
    assert len(server.read("/v1/read?from=0", auth="bob:bob's").rows) == 100
    config.write_text(config.read_text().replace('filter = "devices/%u/#"', 'filter = "grid/#"'))
    server.process.send_signal(signal.SIGHUP)
    until(
        lambda: {row["topic"] for row in server.read("/v1/read?from=0", auth="bob:bob's").rows} == {"grid/1"},
        "the new rules hold",
    )
    config.write_text("nonsense = 1\n")
    server.process.send_signal(signal.SIGHUP)
    assert server.process.stderr is not None
    while "not reloaded" not in server.process.stderr.readline():
        assert server.process.poll() is None
    assert {row["topic"] for row in server.read("/v1/read?from=0", auth="bob:bob's").rows} == {"grid/1"}


def test_encrypted(place: Path, tmp_path_factory: pytest.TempPathFactory, start: Start) -> None:
    made = issue(tmp_path_factory.mktemp("certificates"))
    flags = ("--certificate", str(made.certificate), "--key", str(made.key), "--config", str(place / "tieline.toml"))
    process = start("--data", str(place), "--url", "https://127.0.0.1:0", *flags)
    assert process.stdout is not None
    ready = process.stdout.readline()
    assert ready.startswith("tieline log ready: https://127.0.0.1:")
    connection = http.client.HTTPSConnection("127.0.0.1", int(ready.rpartition(":")[2]), context=made.context())
    token = base64.b64encode(b"bob:bob's").decode()
    connection.request("GET", "/v1/offsets", headers={"Connection": "close", "Authorization": f"Basic {token}"})
    with connection.getresponse() as response:
        assert response.status == 200 and json.loads(response.read())["latest"] == 400
