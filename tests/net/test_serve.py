"""``tieline serve`` as a process: one ready line, signals, exit codes, and a clean standard error."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from time import monotonic

import pytest

from tests.kits.dial import Dial, dial
from tests.kits.patience import PATIENCE_S
from tieline.wire.packets import Connack, Connect, Disconnect, Publish
from tieline.wire.reason import Reason

_FREE = "tcp://127.0.0.1:0"


class _Process:
    """A broker in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "tieline", "serve", *arguments]
        self.popen = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.popen.stdout is not None
        #: The first line of standard output; empty when the process ended without one.
        self.ready = self.popen.stdout.readline().rstrip("\n")

    @property
    def url(self) -> str:
        return self.ready.split()[3]

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Signal it; its exit code, the rest of its output, and its standard error."""
        self.popen.send_signal(number)
        return self.wait()

    def wait(self) -> tuple[int, str, str]:
        output, errors = self.popen.communicate(timeout=PATIENCE_S)
        return self.popen.returncode, output, errors

    def close(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        with suppress(ValueError):  # communicate() has closed the pipes
            self.popen.communicate()


class _Serve:
    """Starts brokers and sees that none survives the test."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._started: list[_Process] = []

    def __call__(self, *arguments: str) -> _Process:
        process = _Process("--data", str(self._data), *arguments)
        self._started.append(process)
        return process

    def close(self) -> None:
        for process in self._started:
            process.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[_Serve]:
    starter = _Serve(tmp_path / "data")
    yield starter
    starter.close()


def test_the_ready_line_names_the_brokers_that_are_there(serve: _Serve, tmp_path: Path) -> None:
    first = serve("--name", "one", "--listen", "peer://127.0.0.1:0")
    joins = ("--join", first.url, "--join", "peer://127.0.0.1:1")
    second = serve("--data", str(tmp_path / "two"), "--name", "two", "--listen", _FREE, *joins)
    assert re.fullmatch(r"tieline two ready: tcp://127\.0\.0\.1:\d+ joined: one( page: \S+)?", second.ready)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_ready_line_then_a_clean_end(serve: _Serve, number: int) -> None:
    process = serve("--listen", _FREE, "--listen", _FREE, "--name", "first", "--log-level", "warning")
    assert re.fullmatch(
        r"tieline first ready: tcp://127\.0\.0\.1:\d+ tcp://127\.0\.0\.1:\d+( page: \S+)?", process.ready
    )
    with dial(process.url, "five") as five:
        process.popen.send_signal(number)
        five.expect(Disconnect, reason=Reason.SERVER_SHUTTING_DOWN)
        five.expect_end()
    assert process.wait() == (0, "", "")


def test_the_log_goes_to_standard_error_and_tells_the_story(serve: _Serve) -> None:
    process = serve("--listen", _FREE, "--log-format", "json")
    with dial(process.url, "told") as client:
        client.send(Disconnect())
        client.expect_end()
    code, output, errors = process.end()
    assert (code, output) == (0, "")
    lines = [json.loads(line) for line in errors.splitlines()]
    told = [(line.get("event"), line.get("client")) for line in lines]
    assert ("connected", "told") in told and ("closed", "told") in told
    assert "stopping" in [line["text"] for line in lines]
    assert {line["level"] for line in lines} == {"info"}


def test_the_same_port_can_be_used_again_at_once(serve: _Serve) -> None:
    first = serve("--listen", _FREE)
    url = first.url
    # the broker closes first, so its side of this connection stays in TIME_WAIT
    with dial(url, "before") as client:
        first.popen.send_signal(signal.SIGTERM)
        client.expect(Disconnect)
        client.expect_end()
    assert first.wait()[0] == 0
    second = serve("--listen", url)
    assert second.url == url
    with dial(url, "after"):
        pass
    assert second.end()[0] == 0


def test_an_address_in_use_is_one_sentence_and_exit_code_1(serve: _Serve) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        url = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        process = serve("--listen", url)
        assert process.ready == ""
        code, output, errors = process.wait()
    assert (code, output) == (1, "")
    assert errors.startswith(f"tieline: cannot listen on {url}: ") and errors.count("\n") == 1


def test_a_second_broker_with_the_same_data_is_refused(serve: _Serve) -> None:
    first = serve("--listen", _FREE)
    second = serve("--listen", _FREE)
    assert second.ready == ""
    code, _, errors = second.wait()
    assert code == 1 and "another broker" in errors and errors.count("\n") == 1
    with dial(first.url, "unharmed"):
        pass
    assert first.end()[0] == 0


def test_after_a_kill_the_next_broker_takes_its_place(serve: _Serve) -> None:
    first = serve("--listen", _FREE)
    url = first.url
    assert first.end(signal.SIGKILL)[0] == -signal.SIGKILL
    second = serve("--listen", url)
    assert second.url == url
    assert second.end()[0] == 0


def test_an_impatient_second_signal_changes_nothing(serve: _Serve) -> None:
    process = serve("--listen", _FREE, "--log-level", "warning")
    with dial(process.url, "slow") as slow:
        process.popen.send_signal(signal.SIGTERM)
        slow.expect(Disconnect)
        process.popen.send_signal(signal.SIGTERM)
        process.popen.send_signal(signal.SIGINT)
        slow.expect_end()
    assert process.wait() == (0, "", "")


def test_a_listener_that_lets_nobody_in_is_warned_about(serve: _Serve) -> None:
    process = serve("--listen", "tcp://0.0.0.0:0")
    _, _, errors = process.end()
    assert "tcp://0.0.0.0:0 lets nobody in: set auth.password_file" in errors


def test_a_listener_that_lets_everybody_in_is_warned_about(serve: _Serve, tmp_path: Path) -> None:
    file = tmp_path / "open.toml"
    file.write_text('[[listener]]\nurl = "tcp://0.0.0.0:0"\n[auth]\nanonymous = "everywhere"\n')
    process = serve("--config", str(file))
    _, _, errors = process.end()
    assert "can be reached from other machines, and every client is let in" in errors


def test_top_reads_a_running_broker(serve: _Serve, tmp_path: Path) -> None:
    process = serve("--listen", _FREE, "--name", "watched")
    with dial(process.url, "client"):
        command = [sys.executable, "-m", "tieline", "top", "--once", "--json", "--data", str(tmp_path / "data")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    answer = json.loads(done.stdout)
    assert answer["name"] == "watched" and answer["clients"]["connected"] == 1
    assert process.end()[0] == 0


def test_the_management_channel_answers_at_once(serve: _Serve, tmp_path: Path) -> None:
    process = serve("--listen", _FREE)
    took = []
    for _ in range(10):
        with socket.socket(socket.AF_UNIX) as sock, sock.makefile("rwb") as lines:
            sock.settimeout(PATIENCE_S)
            sock.connect(str(tmp_path / "data" / "tieline.sock"))
            for _ in range(3):
                began = monotonic()
                lines.write(b'{"do": "top"}\n')
                lines.flush()
                assert json.loads(lines.readline())["name"] == "tieline"
                took.append(monotonic() - began)
    # half a second for each would be too slow to look at; the median does not know of pauses of the machine
    assert median(took) < 0.25
    assert process.end()[0] == 0


def test_a_busy_broker_still_answers_and_ends(serve: _Serve, tmp_path: Path) -> None:
    process = serve("--listen", _FREE, "--log-level", "error")
    with dial(process.url, "loud") as loud, socket.socket(socket.AF_UNIX) as sock, sock.makefile("rwb") as lines:
        loud.subscribe("echo")
        sock.settimeout(PATIENCE_S)
        sock.connect(str(tmp_path / "data" / "tieline.sock"))
        for _ in range(20):
            loud.send(*[Publish(topic="echo", payload=bytes(1_000))] * 200)
            lines.write(b'{"do": "top"}\n')
            lines.flush()
            for _ in range(200):
                loud.expect(Publish)
            assert json.loads(lines.readline())["clients"]["connected"] == 1
        loud.send(*[Publish(topic="echo", payload=bytes(1_000))] * 200)
        process.popen.send_signal(signal.SIGTERM)
        assert isinstance([*loud.rest()][-1], Disconnect)
    assert process.wait() == (0, "", "")


def test_a_closed_standard_output_does_not_stop_the_broker(tmp_path: Path) -> None:
    # `tieline serve | head -1`: the reader of the ready line goes away
    read, write = os.pipe()
    command = [sys.executable, "-m", "tieline", "serve", "--listen", _FREE, "--data", str(tmp_path)]
    with subprocess.Popen(command, stdout=write, stderr=subprocess.DEVNULL) as process:
        os.close(write)
        with os.fdopen(read) as output:
            url = output.readline().split()[3]
        try:
            with Dial(url) as client:
                client.send(Connect(version=5, client_id="later"))
                client.expect(Connack)
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
