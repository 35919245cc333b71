"""The client of the log server: whole ranges or a sentence, through breaks, refusals and gaps."""

from __future__ import annotations

import json
import pickle
import socket
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.certificates import issue
from tests.kits.examples import examples
from tests.net.auth.users import write_users
from tests.pipeline.source.conftest import Serve
from tests.pipeline.source.served import Served
from tieline.conf.schema import Auth, Log, Settings
from tieline.log.columns import SHARD
from tieline.net.logserver import batches
from tieline.net.logserver.columns import SCHEMAS
from tieline.pipeline.source.client import Gap, LogClient, LogError, Offsets
from tieline.pipeline.source.options import ARROW


def read(client: LogClient, start: int, end: int, **how: object) -> list[int]:
    return [row for batch in client.read("log", start, end, **how) for row in batch.column("offset").to_pylist()]  # type: ignore[arg-type]


def test_the_columns_are_the_servers_and_the_shard() -> None:
    for stream, schema in SCHEMAS.items():
        assert ARROW[stream] == schema.append(SHARD)


def test_offsets_and_ranges(serve: Serve) -> None:
    served = serve(records=100)
    client = LogClient(served.url)
    assert client.offsets() == Offsets("edge", 0, 100, 0.0)
    assert client.offsets("events").latest == 0
    assert read(client, 0, 100) == list(range(100))
    assert read(client, 30, 41) == list(range(30, 41))
    assert read(client, 30, 30) == []
    batches = list(client.read("log", 0, 10, columns=["topic", "offset"]))
    assert batches[0].schema.names == ["topic", "offset"]
    assert batches[0].column("topic")[1].as_py() == "grid/1/pcc"


def test_the_server_looks_at_topics_and_condition(serve: Serve) -> None:
    client = LogClient(serve(records=100).url)
    assert read(client, 0, 100, topics=["grid/3/+", "grid/4/#"]) == [n for n in range(100) if n % 7 in {3, 4}]
    assert read(client, 0, 100, where="number >= 90", topics=["grid/1/pcc"]) == [92, 99]
    # the offset is asked for even if it is not wanted, to go on behind it
    assert sum(batch.num_rows for batch in client.read("log", 0, 100, columns=["topic"], where="number < 5")) == 5


@pytest.mark.parametrize("columns", [None, ["payload"]])
def test_a_gap_is_named_or_passed_over(serve: Serve, columns: Sequence[str] | None) -> None:
    served = serve(records=100)
    served.writer.forget(50)
    client = LogClient(served.url)
    with pytest.raises(Gap, match="offsets 20 to 49 are not there any more") as caught:
        list(client.read("log", 20, 80, columns=columns))
    assert (caught.value.first, caught.value.last) == (20, 50)
    gaps: list[Gap] = []
    assert sum(batch.num_rows for batch in client.read("log", 20, 80, columns=columns, on_gap=gaps.append)) == 30
    assert [(gap.first, gap.last) for gap in gaps] == [(20, 50)]
    gaps.clear()
    assert list(client.read("log", 20, 30, columns=columns, on_gap=gaps.append)) == []
    assert [(gap.first, gap.last) for gap in gaps] == [(20, 30)]


def test_a_gap_in_the_middle_costs_only_what_is_missing(serve: Serve) -> None:
    served = serve(records=100)
    served.writer._db.execute("DELETE FROM log WHERE first_offset IN (40, 50, 80)")
    client = LogClient(served.url)
    with pytest.raises(Gap):
        read(client, 0, 100)
    gaps: list[Gap] = []
    assert read(client, 5, 85, on_gap=gaps.append) == [*range(5, 40), *range(60, 80)]
    assert [(gap.first, gap.last) for gap in gaps] == [(40, 60), (80, 85)]


def test_errors_survive_a_pickle(serve: Serve) -> None:
    gap = pickle.loads(pickle.dumps(Gap("text", 3, 9)))
    assert (str(gap), gap.first, gap.last) == ("text", 3, 9)
    client = LogClient(serve(records=1).url)
    with pytest.raises(LogError) as caught:
        read(client, 0, 1, where="a >")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert read(pickle.loads(pickle.dumps(client)), 0, 1) == [0]


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"where": "changed(a)"}, "compare with what a subscriber was sent before"),
        ({"topics": ["a/#/b"]}, "a/#/b"),
        ({"columns": ["colour"]}, 'no column "colour"'),
    ],
)
def test_refusals_are_the_servers_sentences(serve: Serve, how: dict[str, object], text: str) -> None:
    served = serve(records=3)
    with pytest.raises(LogError, match=r"^http://127\.0\.0\.1:") as caught:
        read(LogClient(served.url), 0, 3, **how)
    assert text in str(caught.value) and "\n" not in str(caught.value)


def test_beyond_the_end(serve: Serve) -> None:
    with pytest.raises(LogError, match="beyond the end"):
        read(LogClient(serve(records=3).url), 0, 4)


def test_a_reader_is_moved_forward_only(serve: Serve, tmp_path: Path) -> None:
    served = serve(settings=Settings(name="edge", log=Log(readers=("spark",))), records=100)
    client = LogClient(served.url)
    client.move_reader("spark", 60)
    client.move_reader("spark", 40)
    assert (tmp_path / "edge" / "readers" / "spark").read_text().strip() == "60"
    with pytest.raises(LogError, match='no reader is called "other"'):
        client.move_reader("other", 60)


def test_users(serve: Serve, tmp_path: Path) -> None:
    users = write_users(tmp_path / "users", anna="secret")
    served = serve(settings=Settings(name="edge", auth=Auth(password_file=str(users))), records=10)
    assert read(LogClient(served.url, "anna", "secret"), 0, 10) == list(range(10))
    for client in (LogClient(served.url), LogClient(served.url, "anna", "guess")):
        with pytest.raises(LogError, match="password"):
            client.offsets()
        assert "guess" not in repr(client)


def test_encrypted(serve: Serve, tmp_path: Path) -> None:
    certificates = issue(tmp_path)
    served = serve(certificate=(certificates.certificate, certificates.key), records=10)
    ca = certificates.authority.read_text()
    assert read(LogClient(served.url, ca=ca), 0, 10) == list(range(10))
    with pytest.raises(LogError, match="not trusted"):
        LogClient(served.url).offsets()
    with pytest.raises(LogError, match="option ca"):
        LogClient(served.url, ca="nonsense").offsets()


def test_a_server_that_is_away_for_a_moment(serve: Serve) -> None:
    served = serve(records=10)
    client = LogClient(served.url, patience_s=20)
    served.stop()
    later = threading.Timer(0.3, served.start)
    later.start()
    assert client.offsets().latest == 10
    later.join()


def test_a_server_that_stays_away(serve: Serve) -> None:
    served = serve(records=10)
    served.stop()
    client = LogClient(served.url, patience_s=0.2)
    for attempt in (client.offsets, lambda: read(client, 0, 10), lambda: client.move_reader("x", 1)):
        with pytest.raises(LogError, match=r"could not be read for 0.2 s: connection refused$"):
            attempt()


def test_addresses_that_make_no_sense() -> None:
    for url in ("127.0.0.1:9884", "ftp://a", "http://", "http://a/b", "http://u:p@a:1"):
        with pytest.raises(LogError, match="http"):
            LogClient(url)


class Cutter:
    """Passes connections on to a server, and breaks each after so many bytes of the answer."""

    def __init__(self, port: int, cuts: Sequence[int]) -> None:
        self._target = port
        self._cuts = list(cuts)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.broken = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._listener.close()
        self._thread.join(20)

    def _run(self) -> None:
        while True:
            try:
                near, _peer = self._listener.accept()
            except OSError:
                return
            left = self._cuts.pop(0) if self._cuts else None
            with near, socket.create_connection(("127.0.0.1", self._target)) as far:
                far.sendall(near.recv(65_536))
                while data := far.recv(4_096):
                    near.sendall(data[:left])
                    if left is not None and (left := left - len(data)) <= 0:
                        self.broken += 1
                        break


@pytest.fixture(name="long", scope="module")
def _long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Answers of many small batches, so that they have many places to break at."""
    with pytest.MonkeyPatch.context() as patch, Served(tmp_path_factory.mktemp("long"), records=60) as served:
        patch.setattr(batches, "MOST_ROWS", 3)
        yield served


@examples(25)
@given(cuts=st.lists(st.integers(1, 12_000), max_size=5))
def test_broken_connections_neither_lose_nor_repeat(long: Served, cuts: list[int]) -> None:
    cutter = Cutter(long.port, cuts)
    try:
        client = LogClient(f"http://127.0.0.1:{cutter.port}", patience_s=20)
        assert read(client, 3, 60, columns=["offset"]) == list(range(3, 60))
        assert cutter.broken or not cuts or cuts[0] > 1_000
    finally:
        cutter.close()


@pytest.fixture(name="liar")
def _liar() -> Iterator[tuple[str, list[tuple[int, bytes]]]]:
    """A server that answers what it is told to."""
    answers: list[tuple[int, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers[0]
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", answers
    server.shutdown()
    thread.join()
    server.server_close()


def _answer(rows: int, ended: dict[str, object] | None) -> bytes:
    schema = pa.schema([("offset", pa.int64())])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch([pa.array(range(rows), pa.int64())], schema=schema))
        if ended is not None:
            empty = pa.record_batch([pa.array([], pa.int64())], schema=schema)
            writer.write_batch(empty, custom_metadata={b"tieline": json.dumps(ended).encode()})
    whole: bytes = sink.getvalue().to_pybytes()
    return whole


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (200, _answer(3, {"rows": 4}), "announced 4 rows of a range and sent 3"),
        (200, _answer(0, None), "the answer ended before the range did"),
        (200, _answer(3, None), "was asked for records from 3 on and sent 0"),
        (200, b"nonsense", "could not be read for 0.3 s"),
        (200, b"", "could not be read for 0.3 s"),
        (200, _answer(3, {"error": "damaged", "text": "record 7 is damaged"}), "record 7 is damaged"),
        (404, b"<html>", "answered 404, not as a log server does"),
        (503, b'{"error": "busy", "text": "too many"}', "could not be read for 0.3 s: too many"),
    ],
)
def test_answers_that_are_not_whole_are_errors(
    liar: tuple[str, list[tuple[int, bytes]]], status: int, body: bytes, text: str
) -> None:
    url, answers = liar
    answers.append((status, body))
    with pytest.raises(LogError, match=text):
        read(LogClient(url, patience_s=0.3), 0, 10)
