"""`tieline clients`, `subscriptions`, `retained` and `kick` against a live broker."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Served, Tieline
from tests.kits.dial import dial
from tieline.wire.packets import Disconnect, Puback, Publish


def test_lists_of_a_running_broker(tieline: Tieline, served: Served) -> None:
    at = ("--data", str(served.data))
    with dial(f"tcp://127.0.0.1:{served.port}", "listed-1") as client:
        client.subscribe("listed/+?v>1", qos=1)
        client.send(Publish(topic="listed/kept", payload=b"a\x1b[2Jb", qos=1, packet_id=9, retain=True))
        client.expect(Puback)
        shown = tieline("clients", "listed-*", *at)
        assert (shown.returncode, shown.stderr) == (0, "") and "caught up" in shown.stdout
        (entry,) = map(json.loads, tieline("clients", "listed-*", "--json", *at).stdout.splitlines())
        assert entry["client"] == "listed-1" and entry["is_connected"]
        shown = tieline("subscriptions", "--topic", "listed/x", *at)
        assert re.search(r"listed-1 +listed/\+ +v>1 ", shown.stdout)
        shown = tieline("retained", "listed/#", *at)
        assert "listed/kept" in shown.stdout and r"a\x1b[2Jb" in shown.stdout, "a payload moves no cursor"
        shown = tieline("kick", "listed-1", "listed-2", *at)
        assert shown.returncode == 1 and "listed-1: disconnected" in shown.stdout
        assert "there is no session listed-2" in shown.stdout
        client.expect(Disconnect)
    assert tieline("clients", "listed-*", *at).stdout == "Nothing fits.\n"


def test_the_only_running_broker_is_found_and_several_are_named(
    tieline: Tieline,
    start: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    listen = ("--listen", "tcp://127.0.0.1:0")
    config = tmp_path / "north.toml"
    config.write_text('name = "north"\ndata = "north"\n[[listener]]\nurl = "tcp://127.0.0.1:0"\n')
    first = start("serve", "--config", str(config))
    assert first.stdout is not None and "ready" in first.stdout.readline()
    assert "north" in tieline("top", "--once").stdout
    second = start("serve", "--name", "south", *listen)
    assert second.stdout is not None and "ready" in second.stdout.readline()
    shown = tieline("top", "--once")
    assert shown.returncode == 2 and "2 brokers are running" in shown.stderr
    assert f"--data {tmp_path / 'north'}" in shown.stderr and "--name south" in shown.stderr
    for words in (("--name", "north"), ("--config", str(config)), ("--data", str(tmp_path / "north"))):
        assert "north" in tieline("top", "--once", *words).stdout
    second.terminate()
    second.wait()
    assert "north" in tieline("top", "--once").stdout
    first.terminate()
    first.wait()
    shown = tieline("top", "--once")
    assert shown.returncode == 1 and "is it running" in shown.stderr
