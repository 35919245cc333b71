"""``tieline bench`` lists, refuses and runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tieline.cli.bench import app
from tieline.cli.trouble import Trouble


def test_the_list_names_workloads_and_brokers() -> None:
    result = CliRunner().invoke(app, ["broker", "--list"])
    assert result.exit_code == 0
    assert "qos0-fanout" in result.output
    assert "mosquitto" in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["--only", "nobody"],
        ["--only", "tieline", "--workload", "nothing"],
        ["--only", "tieline", "--part", "nothing"],
    ],
)
def test_an_unknown_name_is_refused_with_a_sentence(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, ["broker", *arguments])
    assert isinstance(result.exception, Trouble)


def test_an_absent_peer_is_reported_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIELINE_PEERS", str(tmp_path))
    result = CliRunner().invoke(app, ["peers", "--dry-run"])
    assert result.exit_code == 0
    assert "tieline bench peers amqtt" in result.output


def test_a_short_run_writes_its_results(need: Callable[[str], str], tmp_path: Path) -> None:
    need("mosquitto")
    arguments = ["broker", "--quick", "--only", "mosquitto", "--workload", "latency", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    (row,) = json.loads((tmp_path / "broker.json").read_text())["rows"]
    assert row["status"] == "measured"
    assert row["metrics"]["p50_us"] > 0
    assert "ping-pong" in (tmp_path / "broker.md").read_text()
