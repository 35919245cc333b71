"""The log server as readers meet it: a process that answers over HTTP."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest

from tests.kits.patience import PATIENCE_S
from tests.net.logserver.conftest import Serve, Server, told
from tests.net.logserver.writing import Writer, fill, record
from tieline.conf.schema import Auth, Settings
from tieline.net.logserver.app import Bounds
from tieline.net.logserver.serve import Unservable, address, run

RECORDS = 3_000


@pytest.fixture(name="stored", scope="module")
def _stored(tmp_path_factory: pytest.TempPathFactory) -> Writer:
    """Offsets 500 to 2,999 are there; retention has had the others."""
    writer = Writer(tmp_path_factory.mktemp("data"))
    fill(writer, RECORDS, group=50)
    writer.forget(500)
    return writer


@pytest.fixture(name="server", scope="module")
def _server(stored: Writer, serve: Serve) -> Server:
    return serve(stored.data, "--name", "edge", "--rows", "2500")


def test_offsets(server: Server) -> None:
    status, found = server.ask("/v1/offsets?stream=log")
    assert status == 200
    assert (found["broker"], found["stream"], found["earliest"], found["latest"]) == ("edge", "log", 500, RECORDS)
    assert found["bytes"] > 100_000 and found["oldest"] > 0 and found["created"] == 0.0
    assert server.ask("/v1/offsets?stream=events")[1]["latest"] == 0


def test_disjoint_ranges_in_parallel_make_up_the_whole(server: Server) -> None:
    ranges = [(first, min(first + 317, RECORDS)) for first in range(500, RECORDS, 317)]
    with ThreadPoolExecutor(8) as readers:
        parts = list(readers.map(lambda each: server.read(f"/v1/read?from={each[0]}&to={each[1]}"), ranges))
    assert [offset for part in parts for offset in part.offsets] == list(range(500, RECORDS))
    assert [(part.ended["from"], part.ended["to"]) for part in parts] == ranges
    assert [row["payload"] for part in parts for row in part.rows] == [
        record(number).payload for number in range(500, RECORDS)
    ]


def test_topics_condition_and_columns_are_looked_at_by_the_server(server: Server) -> None:
    condition = quote("number >= 1000 and number < 1100")
    path = f"/v1/read?from=500&topics=grid/3/%2B&topics=grid/4/%23&where={condition}&columns=offset,topic&columns=qos"
    found = server.read(path)
    assert found.offsets == [number for number in range(1_000, 1_100) if number % 7 in {3, 4}]
    assert list(found.rows[0]) == ["offset", "topic", "qos"]
    assert found.ended == {"from": 500, "to": RECORDS, "rows": len(found.rows), "withheld": 0}


@pytest.mark.parametrize(
    ("path", "status", "expected"),
    [
        ("/v1/read?from=20&to=600", 410, {"error": "gap", "from": 20, "to": 500, "missing": 480}),
        ("/v1/read?from=0&to=1", 410, {"error": "gap", "from": 0, "to": 500, "missing": 500}),
        ("/v1/read?from=3001", 416, {"error": "beyond", "latest": RECORDS}),
        ("/v1/read?from=2999&to=3001", 416, {"error": "beyond", "latest": RECORDS}),
        ("/v1/read", 400, {"error": "refused", "rule": "from"}),
        ("/v1/read?from=x", 400, {"error": "refused", "rule": "from"}),
        ("/v1/read?from=600&to=1e3", 400, {"error": "refused", "rule": "to"}),
        ("/v1/read?from=600&to=599", 400, {"error": "refused", "rule": "to"}),
        ("/v1/read?from=0&to=2501", 400, {"error": "refused", "rule": "to"}),
        ("/v1/read?from=600&from=700", 400, {"error": "refused", "rule": "from"}),
        ("/v1/read?from=600&colums=offset", 400, {"error": "refused", "rule": "colums"}),
        ("/v1/read?from=600&columns=colour", 400, {"error": "refused", "rule": "columns"}),
        ("/v1/read?from=600&topics=a/%23/b", 400, {"error": "refused", "rule": "topics"}),
        ("/v1/read?from=600&where=a%20%3E", 400, {"error": "refused", "rule": "where", "column": 4}),
        ("/v1/read?from=600&where=changed(a)", 400, {"error": "refused", "rule": "where", "column": 1}),
        ("/v1/read?from=600&stream=other", 400, {"error": "refused", "rule": "stream"}),
        ("/v1/offsets?from=1", 400, {"error": "refused", "rule": "from"}),
        ("/v1/elsewhere", 404, {"error": "not_found"}),
    ],
)
def test_what_cannot_be_answered_says_why(server: Server, path: str, status: int, expected: dict[str, object]) -> None:
    got, found = server.ask(path)
    assert got == status
    assert {name: found[name] for name in expected} == expected
    assert found["text"]


def test_a_head_without_a_body(server: Server) -> None:
    with server.open("/v1/read?from=600", method="HEAD") as response:
        assert response.status == 200 and response.read() == b""


def test_readers_are_moved_forward(server: Server) -> None:
    def put(body: bytes, name: str = "spark") -> tuple[int, object]:
        return server.ask(f"/v1/readers/{name}", method="PUT", body=body)

    assert put(b'{"position": 600}') == (200, {"name": "spark", "position": 600, "behind": RECORDS - 600})
    status, found = put(b'{"position": 550}')
    assert status == 409 and isinstance(found, dict) and found["position"] == 600
    assert put(b'{"position": 550, "force": true}')[0] == 200
    assert put(b'{"position": 3001}')[0] == 416
    for body in (b"", b"[]", b'{"position": -1}', b'{"position": 1.5}', b'{"position": 600, "x": 1}'):
        assert put(body)[0] == 400
    assert put(b" " * 5_000)[0] == 413
    assert put(b'{"position": 600}', "..")[0] in {400, 404}
    assert put(b'{"position": 600}', ".hidden")[0] == 400
    assert server.ask("/v1/readers") == (200, [{"name": "spark", "position": 550, "behind": RECORDS - 550}])
    assert server.ask("/v1/readers", method="POST")[0] == 405


def test_a_name_that_is_not_this_machines_is_not_answered(server: Server) -> None:
    for path in ("/v1/offsets", "/v1/read?from=600", "/nothing"):
        assert server.ask(path, headers={"Host": "example.org"})[0] == 421


class Late(NamedTuple):
    """A server that was there before its log."""

    server: Server
    writer: Writer
    #: What it said then.
    before: tuple[int, dict[str, object]]

    def grow(self) -> int:
        """More records than sockets and servers hold on to; the offset of the first."""
        first = self.writer.append([record(number, payload=b"x" * 2_000) for number in range(1_000)])
        for _ in range(7):
            self.writer.append([record(number, payload=b"x" * 2_000) for number in range(1_000)])
        return first


@pytest.fixture(name="late", scope="module")
def _late(tmp_path_factory: pytest.TempPathFactory, serve: Serve) -> Iterator[Late]:
    place = tmp_path_factory.mktemp("late")
    server = serve(place, "--reads", "2")
    before = server.ask("/v1/offsets")
    writer = Writer(place)
    yield Late(server, writer, before)
    writer.close()


def test_before_there_is_a_log_it_is_said_so(late: Late) -> None:
    status, found = late.before
    assert status == 503 and found["error"] == "no_log"
    assert str(late.writer.data) not in str(found["text"])
    first = late.writer.append([record(number) for number in range(10)])
    assert late.server.read(f"/v1/read?from={first}").offsets == list(range(first, first + 10))


def test_readers_that_leave_midway_make_room_for_others(late: Late) -> None:
    first = late.grow()
    code = (
        "import http.client, sys\n"
        f"connection = http.client.HTTPConnection('127.0.0.1', {late.server.port})\n"
        f"connection.request('GET', '/v1/read?from={first}')\n"
        "print(len(connection.getresponse().read(1_000_000)), flush=True)\n"
        "sys.stdin.read()\n"
    )
    started = []
    for _ in range(2):
        reader = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert reader.stdout is not None and reader.stdout.readline() == "1000000\n"
        started.append(reader)
    for reader in started:
        reader.kill()
        reader.communicate(timeout=PATIENCE_S)
    assert late.server.read(f"/v1/read?from={first + 7_990}").offsets == list(range(first + 7_990, first + 8_000))


def test_retention_that_overtakes_a_slow_reader_breaks_the_connection(late: Late) -> None:
    first = late.grow()
    with late.server.open(f"/v1/read?from={first}") as response:
        assert len(response.read(100_000)) == 100_000
        late.writer.forget(first + 8_000)
        with pytest.raises(HTTPException):
            while response.read(1_000_000):
                pass
    assert late.server.ask(f"/v1/read?from={first}")[0] == 410


def test_a_damaged_record_is_a_named_error_and_not_the_end(late: Late) -> None:
    first, damaged, last = (late.writer.append([record(number) for number in range(100)]) for _ in range(3))
    late.writer.damage(damaged)
    with late.server.open(f"/v1/read?from={first}") as response:
        assert response.status == 200
        got = b""
        with pytest.raises(HTTPException):
            while piece := response.read1(65_536):
                got += piece
    found = told(got)
    assert found.ended["error"] == "damaged" and f"offset {damaged}" in found.ended["text"]
    assert late.server.read(f"/v1/read?from={last}").offsets == list(range(last, last + 100))


def test_readers_and_retention_and_a_writer_at_once(late: Late) -> None:
    server, writer = late.server, late.writer
    base = writer.append([record(number) for number in range(1_000)])
    writer.forget(base)
    stop, pauses_s = threading.Event(), [0.005]

    def write() -> None:
        number = 1_000
        while not stop.is_set():
            writer.append([record(each) for each in range(number, number + 20)])
            number += 20
            writer.forget(base + number - 1_000)
            stop.wait(pauses_s[-1])

    writing = threading.Thread(target=write)
    writing.start()
    whole = 0
    try:
        while whole < 5:
            _, found = server.ask("/v1/offsets")
            first, last = found["earliest"] + 500, found["latest"]
            with server.open(f"/v1/read?from={first}&to={last}&columns=offset,payload") as response:
                try:
                    part = None if response.status == 410 else told(response)
                except HTTPException:
                    part = None
            if part is None:  # retention was faster, which it may be: what must not be is a wrong answer
                pauses_s.append(1.5 * pauses_s[-1])
                continue
            assert part.offsets == list(range(first, last))
            assert [row["payload"] for row in part.rows] == [
                record(number - base).payload for number in range(first, last)
            ]
            whole += 1
    finally:
        stop.set()
        writing.join()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_ends_it_also_while_somebody_is_connected(
    stored: Writer, serve: Serve, number: signal.Signals
) -> None:
    server = serve(stored.data)
    idle = socket.create_connection(("127.0.0.1", server.port))
    server.process.send_signal(number)
    printed, log = server.process.communicate(timeout=PATIENCE_S)
    idle.close()
    assert (server.process.returncode, printed) == (0, "")
    assert "Traceback" not in log


@pytest.mark.slow
def test_a_reader_that_stops_costs_a_few_batches_and_does_not_keep_the_server_alive(
    tmp_path: Path, serve: Serve
) -> None:
    writer = Writer(tmp_path)
    for _ in range(100):
        writer.append([record(number, payload=b"x" * 2_000) for number in range(1_000)])
    writer.close()
    server = serve(tmp_path)
    assert len(server.read("/v1/read?from=0&to=1000&columns=offset").rows) == 1_000
    before = _resident(server)
    with server.open("/v1/read?from=0") as response:
        assert len(response.read(1_000)) == 1_000
        time.sleep(2)  # time enough for a server without manners to read all 200 MB
        assert _resident(server) - before < 100_000_000
        server.process.terminate()
        _, log = server.process.communicate(timeout=PATIENCE_S)
    assert server.process.returncode == 0 and "Traceback" not in log


def _resident(server: Server) -> int:
    """The most memory that the process has had so far."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return 1_024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


@pytest.mark.parametrize("url", ["http://0.0.0.0:0", "http://[::]:0", "http://192.0.2.1:80", "http://example.org:80"])
def test_without_users_nobody_else_is_served(tmp_path: Path, url: str) -> None:
    with pytest.raises(Unservable, match="from other machines"):
        run(tmp_path, address(url), Settings(), Bounds())
    with pytest.raises(Unservable, match="from other machines"):
        run(tmp_path, address(url), Settings(auth=Auth(anonymous="everywhere")), Bounds())


def test_a_server_that_could_let_nobody_in_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(Unservable, match="nobody"):
        run(tmp_path, address("http://127.0.0.1:0"), Settings(auth=Auth(anonymous="nowhere")), Bounds())


@pytest.mark.parametrize("url", ["", "127.0.0.1:1", "ftp://h:1", "http://h", "http://h:99999", "http://h:1/path"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(Unservable):
        address(url)


def test_encryption_needs_a_certificate_and_the_other_way_round() -> None:
    with pytest.raises(Unservable, match="--certificate"):
        address("https://127.0.0.1:1")
    with pytest.raises(Unservable, match="https"):
        address("http://127.0.0.1:1", Path("c"), Path("k"))
    where = address("https://127.0.0.1:1", Path("no-certificate"), Path("no-key"))
    assert str(where) == "https://127.0.0.1:1"
    with pytest.raises(Unservable, match="cannot be used"):
        run(Path(), where, Settings(), Bounds())
