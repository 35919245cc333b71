"""`tieline serve` turns a file and flags into settings, says when it is ready, and stops when told."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import get_args

import pytest

from tests.cli.conftest import Served
from tests.kits.patience import PATIENCE_S
from tieline.bench.measure import cpu_ns
from tieline.cli.serve import combine
from tieline.cli.trouble import Trouble
from tieline.conf.overlay import StrategyName
from tieline.conf.schema import Listener, Settings
from tieline.overlay.strategies import STRATEGIES


def test_nothing_given_means_the_defaults() -> None:
    assert combine(config=None, listen=[]) == Settings()


def test_the_command_line_replaces_the_file(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text("name = 'file'\ndata = 'd'\n[[listener]]\nurl = 'tcp://127.0.0.1:1'\n[limits]\ninflight = 3\n")
    settings = combine(config=file, listen=["ws://127.0.0.1"], name="line", data=tmp_path)
    assert settings.name == "line"
    assert settings.data == str(tmp_path)
    assert settings.listener == (Listener(url="ws://127.0.0.1:8080"),)
    assert settings.limits.inflight == 3


def test_every_strategy_can_be_configured(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    for name in get_args(StrategyName):
        assert combine(config=None, listen=[], overlay=name).overlay.strategy == name
        file.write_text(f"[overlay]\nstrategy = '{name}'\n")
        assert combine(config=file, listen=[]).overlay.strategy == name
    assert set(get_args(StrategyName)) == set(STRATEGIES)


def test_certificates_go_to_encrypted_listeners_only() -> None:
    settings = combine(
        config=None, listen=["tcp://h:1", "tls://h:2", "wss://h:3"], certificate=Path("c"), key=Path("k")
    )
    assert [(listener.certificate, listener.key) for listener in settings.listener] == [
        (None, None),
        ("c", "k"),
        ("c", "k"),
    ]


def test_the_whole_is_checked() -> None:
    with pytest.raises(Trouble, match="another listener"):
        combine(config=None, listen=["tcp://h:1", "ws://h:1"])


def test_the_ready_line(served: Served) -> None:
    assert re.fullmatch(
        r"tieline edge ready: tcp://127\.0\.0\.1:\d+ ws://127\.0\.0\.1:\d+( page: \S+)?\n", served.ready
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it(start: Callable[..., Popen[str]], tmp_path: Path, number: signal.Signals) -> None:
    broker = Served(
        start("serve", "--listen", "tcp://127.0.0.1:0", "--listen", "ws://127.0.0.1:0", "--data", str(tmp_path)),
        tmp_path,
    )
    # it starts fast: two seconds of a processor are more than it needs
    assert cpu_ns([broker.process.pid]) < 2_000_000_000
    broker.process.send_signal(number)
    printed, log = broker.process.communicate(timeout=PATIENCE_S)
    assert (broker.process.returncode, printed) == (0, "")
    assert "Traceback" not in log
    assert not (tmp_path / "tieline.sock").exists()


def test_a_port_in_use_is_one_sentence(start: Callable[..., Popen[str]], served: Served, tmp_path: Path) -> None:
    second = start("serve", "--listen", f"tcp://127.0.0.1:{served.port}", "--data", str(tmp_path))
    printed, log = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 1 and printed == ""
    assert "Traceback" not in log and served.port in log
