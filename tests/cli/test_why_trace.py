"""`tieline why` and `tieline trace` against a live broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Served, Tieline
from tests.kits.dial import Dial, dial
from tieline.cli.explain import MOST_PAYLOAD
from tieline.wire.packets import Puback, Publish


@pytest.fixture(name="watcher", scope="module")
def _watcher(served: Served) -> Iterator[Dial]:
    with dial(f"tcp://127.0.0.1:{served.port}", "watcher") as client:
        client.subscribe("a/+", 1)
        yield client


def test_how_a_client_is_doing(tieline: Tieline, served: Served, watcher: Dial) -> None:
    shown = tieline("why", "watcher", "--data", str(served.data))
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "watcher is connected" in shown.stdout and "caught_up" in shown.stdout


def test_may_it_publish_and_subscribe(tieline: Tieline, served: Served, watcher: Dial) -> None:
    shown = tieline("why", "watcher", "publish", "a/b", "--data", str(served.data))
    assert shown.returncode == 0 and "it may publish to a/b" in shown.stdout
    shown = tieline("why", "watcher", "subscribe", "a/b", "--data", str(served.data))
    assert shown.returncode == 0 and "a/+ matches, QoS 1" in shown.stdout
    shown = tieline("why", "watcher", "publish", "$SYS/x", "--data", str(served.data))
    assert shown.returncode == 1 and "$SYS belongs to the broker" in shown.stdout


def test_nothing_was_dropped(tieline: Tieline, served: Served) -> None:
    shown = tieline(
        "why", "*", "dropped", "--why", "expired", "--class", "2", "--since", "60", "--data", str(served.data)
    )
    assert shown.returncode == 0 and shown.stdout.startswith("Nothing of the last ")


def test_a_victim_is_shown(tieline: Tieline, served: Served, watcher: Dial) -> None:
    watcher.send(Publish(topic="$SYS/not/yours", payload=b"x", qos=1, packet_id=7))
    watcher.expect(Puback)
    shown = tieline("why", "watcher", "dropped", "$SYS/#", "--data", str(served.data))
    assert "denied" in shown.stdout and "$SYS/not/yours" in shown.stdout
    answer = json.loads(tieline("why", "*", "dropped", "--json", "--data", str(served.data)).stdout)
    assert answer["drops"][0]["topic"] == "$SYS/not/yours"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("why", "a", "publish"), "needs a topic"),
        (("why", "*"), "only in"),
        (("why", "*", "dropped", "--why", "boredom"), "is no reason"),
        (("trace", "a", "--property", "x"), "write KEY=VALUE"),
        (("trace", "a", "--payload", "@/no/such/file"), "cannot read"),
        (("trace", "a", "--payload", "x" * (MOST_PAYLOAD + 1)), "the management channel takes"),
    ],
)
def test_questions_that_cannot_be_meant(tieline: Tieline, served: Served, words: tuple[str, ...], said: str) -> None:
    shown = tieline(*words, "--data", str(served.data))
    assert shown.returncode in {1, 2} and said in shown.stderr and shown.stderr.count("\n") == 1


def test_a_message_is_followed(tieline: Tieline, served: Served, watcher: Dial, tmp_path: Path) -> None:
    payload = tmp_path / "payload"
    payload.write_bytes(b'{"v": 1}')
    words = ("--payload", f"@{payload}", "--property", "priority=2", "--qos", "1", "--as", "watcher")
    shown = tieline("trace", "a/b", *words, "--data", str(served.data))
    assert (shown.returncode, shown.stderr) == (0, "")
    for expected in ("the user property priority", "1 plain", "watcher", "sent", "a/+", "at once"):
        assert expected in shown.stdout
    assert tieline("trace", "a/#", "--data", str(served.data)).returncode == 1
    assert "Nobody is subscribed" in tieline("trace", "lonely", "--data", str(served.data)).stdout
    answer = json.loads(tieline("trace", "a/b", "--json", "--data", str(served.data)).stdout)
    assert answer["receivers"][0]["client"] == "watcher"
