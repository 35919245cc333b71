"""A data directory with a log in it, and the log server as a process of its own."""

from __future__ import annotations

import base64
import http.client
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from tests.kits.patience import PATIENCE_S
from tests.net.logserver.writing import Writer


class Told(NamedTuple):
    """An answer: its rows, and what its metadata says before and behind them."""

    rows: list[dict[str, Any]]
    asked: dict[str, Any]
    ended: dict[str, Any]

    @property
    def offsets(self) -> list[int]:
        return [row["offset"] for row in self.rows]


def told(stream: Any) -> Told:
    """Read a whole answer."""
    reader = pa.ipc.open_stream(stream)
    rows: list[dict[str, Any]] = []
    ended: dict[str, Any] = {}
    while True:
        try:
            batch, metadata = reader.read_next_batch_with_custom_metadata()
        except StopIteration:
            return Told(rows, json.loads(reader.schema.metadata[b"tieline"]), ended)
        rows += batch.to_pylist()
        if metadata is not None:
            ended = json.loads(metadata[b"tieline"])


class Server:
    """A log server and what it answers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith("tieline log ready: http://127.0.0.1:"), ready + process.communicate()[1]
        self.port = int(ready.rpartition(":")[2])

    def open(self, path: str, *, auth: str | None = None, method: str = "GET", body: bytes | None = None,
             headers: dict[str, str] | None = None) -> http.client.HTTPResponse:  # fmt: skip
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        # then the response has the socket for itself, and closes it
        sent = {"Connection": "close", **(headers or {})}
        if auth is not None:
            sent["Authorization"] = "Basic " + base64.b64encode(auth.encode()).decode()
        connection.request(method, path, body, sent)
        return connection.getresponse()

    def ask(self, path: str, **how: Any) -> tuple[int, Any]:
        """Status and JSON."""
        with self.open(path, **how) as response:
            return response.status, json.loads(response.read())

    def read(self, path: str, **how: Any) -> Told:
        """A whole range."""
        with self.open(path, **how) as response:
            assert response.status == 200, response.read()
            assert response.headers["Content-Type"] == "application/vnd.apache.arrow.stream"
            return told(response)


Start = Callable[..., subprocess.Popen[str]]
Serve = Callable[..., Server]


@pytest.fixture(name="start", scope="module")
def _start() -> Iterator[Start]:
    """Starts log servers that end with the tests of a module."""
    started: list[subprocess.Popen[str]] = []

    def start(*flags: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tieline", "log", "serve", *flags],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=PATIENCE_S)


@pytest.fixture(name="serve", scope="module")
def _serve(start: Start) -> Serve:
    return lambda data, *flags: Server(start("--data", str(data), "--url", "http://127.0.0.1:0", *flags))


@pytest.fixture(name="writer")
def _writer(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(tmp_path)
    yield writer
    writer.close()
