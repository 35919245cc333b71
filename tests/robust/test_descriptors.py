"""Clients use up all descriptors that they can have: whoever looks after the broker is still answered."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kits.dial import dial
from tests.kits.patience import PATIENCE_S, until
from tieline.cli.management import Management
from tieline.wire.packets import Pingreq, Pingresp

pytest.importorskip("uvicorn")

MOST = 200


def test_with_all_descriptors_in_use_health_management_and_reload_answer(tmp_path: Path) -> None:
    port = _free_port()
    config = tmp_path / "broker.toml"
    config.write_text(
        f'data = "{tmp_path / "d"}"\n[[listener]]\nurl = "tcp://127.0.0.1:0"\n[http]\nurl = "http://127.0.0.1:{port}"\n'
    )
    serve = [sys.executable, "-m", "tieline", "serve", "--config", str(config)]
    process = subprocess.Popen(
        ["/bin/sh", "-c", f'ulimit -n {MOST}; exec "$@"', "", *serve],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    idle: list[socket.socket] = []
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[3]
        with dial(url, "honest") as honest:
            place = ("127.0.0.1", int(url.rpartition(":")[2]))
            idle = [socket.create_connection(place, PATIENCE_S) for _ in range(MOST * 2)]
            with Management(tmp_path / "d" / "tieline.sock") as broker:
                until(lambda: broker.ask("top")["closed"].get("no_descriptors", 0) > 0, "clients have used them up")
            for _ in range(3):
                asking = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
                asking.request("GET", "/health")
                assert asking.getresponse().status == 200
                asking.close()
                with Management(tmp_path / "d" / "tieline.sock") as broker:
                    assert broker.ask("reload")["applied"]
            honest.send(Pingreq())
            assert isinstance(honest.expect(Pingresp), Pingresp)
            for sock in idle:
                sock.close()
            idle.clear()
            until(lambda: _lets_in(url), "clients are let in again")
    finally:
        for sock in idle:
            sock.close()
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def _lets_in(url: str) -> bool:
    try:
        with dial(url, "late"):
            return True
    except (OSError, AssertionError):
        return False
