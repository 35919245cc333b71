"""`tieline drain` empties a joined broker: it waits until nothing is left, and what is done is in its exit code."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path

import pytest

from tests.cli.conftest import Served, Tieline
from tests.kits.dial import Dial, addresses, dial
from tests.kits.patience import PATIENCE_S
from tieline.wire.packets import Disconnect, Puback, Publish
from tieline.wire.reason import Reason

Start = Callable[..., subprocess.Popen[str]]
AWAY = 4


class Joined:
    """A broker that may be joined with others, in a process of its own."""

    def __init__(self, start: Start, name: str, folder: Path, *joins: str) -> None:
        self.data = folder / name
        words = [word for url in joins for word in ("--join", url)]
        listen = ("--listen", "tcp://127.0.0.1:0", "--listen", "peer://127.0.0.1:0")
        self.process = start("serve", "--name", name, "--data", str(self.data), *listen, *words)
        assert self.process.stdout is not None
        self.url, self.peer_url, *_ = addresses(self.process.stdout.readline())


@pytest.fixture(name="a")
def _a(start: Start, tmp_path: Path) -> Iterator[Joined]:
    broker = Joined(start, "a", tmp_path)
    yield broker
    broker.process.kill()


def kept(url: str, client_id: str, *, is_present: bool) -> Dial:
    client = Dial(url)
    connack = client.connect(client_id, clean_start=False, properties={"session_expiry_interval": 3600})
    assert (connack.reason, connack.session_present) == (Reason.SUCCESS, is_present)
    return client


def taken(client: Dial, *, until_it_ends: bool = False, least: int = 0) -> list[int]:
    """The numbers that a client gets and acknowledges: so many, or all that come before it is sent away."""
    found: list[int] = []
    while until_it_ends or len(found) < least:
        packet = client.receive()
        if packet is None or isinstance(packet, Disconnect):
            break
        assert isinstance(packet, Publish)
        found.append(int(packet.payload))
        with suppress(OSError):  # it was sent away meanwhile, and gets this once more
            client.send(Puback(packet_id=packet.packet_id))
    return found


def test_sessions_go_elsewhere_and_lose_nothing_while_messages_come(
    tieline: Tieline, start: Start, a: Joined, tmp_path: Path
) -> None:
    b = Joined(start, "b", tmp_path, a.peer_url)
    numbers = count()
    with ExitStack() as stack:
        stack.callback(b.process.kill)
        far = stack.enter_context(dial(b.url, "far"))

        def publish(messages: int) -> None:
            for _, number in zip(range(messages), numbers, strict=False):
                far.send(Publish(topic="x", payload=b"%d" % number, qos=1, packet_id=number + 1))
                far.expect(Puback)

        for each in range(AWAY):
            with kept(a.url, f"away-{each}", is_present=False) as client:
                assert client.subscribe("x", 1).reasons == (1,)
        here = stack.enter_context(kept(a.url, "here", is_present=False))
        assert here.subscribe("x", 1).reasons == (1,)
        publish(10)

        begun = tieline("drain", "--within", "0", "--data", str(a.data))
        assert begun.returncode == 1, "something was left when the time was over"
        assert f"{AWAY + 1} sessions" in begun.stdout and "nothing is left" not in begun.stdout
        # ten came before its connection ended, or come once more where their acknowledgement was not heard
        seen = taken(here, until_it_ends=True)
        assert seen == list(range(len(seen)))
        publish(10)
        done = tieline("drain", "--data", str(a.data))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[-1] == "nothing is left: the broker may be ended"
        publish(10)
        a.process.send_signal(signal.SIGTERM)
        assert a.process.wait(PATIENCE_S) == 0
        publish(10)

        for each in range(AWAY):
            with kept(b.url, f"away-{each}", is_present=True) as client:
                assert taken(client, least=40) == list(range(40))
        with kept(b.url, "here", is_present=True) as client:
            later = taken(client, least=40 - len(seen))
            while later[-1] != 39:
                later += taken(client, least=1)
        assert sorted({*seen, *later}) == list(range(40)) and later == sorted(later)


def test_it_waits_for_a_broker_to_give_sessions_to(tieline: Tieline, start: Start, a: Joined, tmp_path: Path) -> None:
    with kept(a.url, "s", is_present=False) as client:
        client.subscribe("x", 1)
    late = tieline("drain", "--within", "0.2", "--json", "--data", str(a.data))
    assert late.returncode == 1
    assert all(not json.loads(line)["is_done"] and not json.loads(line)["others"] for line in late.stdout.splitlines())
    with Dial(a.url) as refused:
        assert refused.connect("late").reason in {Reason.USE_ANOTHER_SERVER, Reason.SERVER_UNAVAILABLE}

    waiting = start("drain", "--data", str(a.data))
    assert waiting.stdout is not None
    assert waiting.stdout.readline().endswith("no other broker is in reach\n")
    b = Joined(start, "b", tmp_path, a.peer_url)
    try:
        assert waiting.wait(PATIENCE_S) == 0
        assert waiting.stdout.read().endswith("nothing is left: the broker may be ended\n")
        with kept(b.url, "s", is_present=True):
            pass
    finally:
        b.process.kill()


def test_who_waits_hears_that_somebody_has_stopped_it(tieline: Tieline, start: Start, a: Joined) -> None:
    with kept(a.url, "s", is_present=False):
        pass
    waiting = start("drain", "--data", str(a.data))
    assert waiting.stdout is not None
    assert "1 sessions" in waiting.stdout.readline()
    stopped = tieline("drain", "--stop", "--data", str(a.data))
    assert (stopped.returncode, stopped.stdout) == (0, "the broker lets clients in again; it has 1 sessions\n")
    assert waiting.wait(PATIENCE_S) == 1
    assert waiting.stdout.read().endswith("the broker is not drained any more: somebody has stopped it\n")
    with kept(a.url, "s", is_present=True):
        pass


def test_a_broker_that_is_alone_or_does_not_run_says_so(tieline: Tieline, served: Served, tmp_path: Path) -> None:
    alone = tieline("drain", "--data", str(served.data))
    assert alone.returncode == 1 and "not joined with others" in alone.stderr
    nobody = tieline("drain", "--data", str(tmp_path))
    assert nobody.returncode == 1 and nobody.stderr
    assert tieline("drain", "--within", "-1", "--data", str(served.data)).returncode == 2
