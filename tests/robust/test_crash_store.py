"""A live broker and its store: no room, no writer, no second broker, and the order in which things leave."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kits.dial import Dial, dial
from tests.kits.patience import PATIENCE_S, until
from tieline.net.store.reading import Log
from tieline.wire.packets import Pingreq, Pingresp, Puback, Publish, Pubrec, Pubrel, Subscribe, Subscription
from tieline.wire.reason import Reason

KEPT = {"session_expiry_interval": 1_000}


class Live:
    """A running broker with a data directory."""

    def __init__(self, folder: Path, prefix: list[str], more: str) -> None:
        self.data, self._log = folder / "data", folder / "log"
        self._is_traced = bool(prefix)
        config = folder / "tieline.toml"
        config.write_text(f'data = "{self.data}"\n[mqtt]\n{more}\n[[listener]]\nurl = "tcp://127.0.0.1:0"\n')
        with self._log.open("a") as errors:
            command = [*prefix, sys.executable, "-m", "tieline", "serve", "--config", str(config)]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        assert " ready: " in ready, self.log
        self.url = next(word for word in ready.split() if word.startswith("tcp://"))

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def writer(self) -> int:
        return _child(self.process.pid)

    def dial(self, client_id: str, *, version: int = 5, is_kept: bool = True) -> Dial:
        fields: dict[str, Any] = {"properties": dict(KEPT)} if version == 5 and is_kept else {}
        return dial(self.url, client_id, version=version, clean_start=not is_kept, **fields)

    def end(self) -> None:
        if self.process.poll() is None:
            # of a broker that is traced, the tracer is the parent
            os.kill(_child(self.process.pid) if self._is_traced else self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def _child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@contextmanager
def live(folder: Path, *, prefix: list[str] | None = None, more: str = "") -> Iterator[Live]:
    """A broker that is ended afterwards, if it still runs."""
    broker = Live(folder, prefix or [], more)
    try:
        yield broker
    finally:
        broker.end()


def test_a_full_disk_refuses_and_recovers(tmp_path: Path) -> None:
    with live(tmp_path) as broker, broker.dial("sub") as sub, broker.dial("new") as new:
        sub.subscribe("t", 1)
        sub.close()
        writer = broker.writer
        limit = max(path.stat().st_size for path in broker.data.iterdir() if path.name != "reserve") + 8_192
        resource.prlimit(writer, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        # until the disk is full; nothing of this is acknowledged before it is permanent
        new.send(*(Publish(topic="t", payload=b"%010000d" % n, qos=1, packet_id=n) for n in range(1, 30)))
        until(lambda: "cannot write" in broker.log, "the broker says that its disk is full")
        with broker.dial("other", is_kept=False) as other, broker.dial("old", version=4, is_kept=False) as old:
            other.send(Publish(topic="t", payload=b"x", qos=1, packet_id=1))
            refused = other.expect(Puback, packet_id=1)
            assert refused.reason is Reason.QUOTA_EXCEEDED
            assert "cannot write" in refused.properties["reason_string"]
            other.send(Publish(topic="t", payload=b"x", qos=2, packet_id=2))
            assert other.expect(Pubrec, packet_id=2).reason is Reason.QUOTA_EXCEEDED
            # what promises nothing goes on
            other.subscribe("free", 0)
            other.send(Publish(topic="free", payload=b"y"))
            other.expect(Publish, topic="free")
            # 3.1.1 waits
            old.send(Publish(topic="t", payload=b"old", qos=1, packet_id=7))
            other.send(Pingreq())
            other.expect(Pingresp)
            resource.prlimit(writer, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            old.expect(Puback, packet_id=7)
            # what the broker had not read when it learned that its disk is full was refused
            reasons = {number: new.expect(Puback, packet_id=number).reason for number in range(1, 30)}
            assert set(reasons.values()) <= {Reason.SUCCESS, Reason.QUOTA_EXCEEDED}
            taken = [number for number, reason in reasons.items() if reason is Reason.SUCCESS]
            assert taken and taken == list(range(1, len(taken) + 1))
            other.send(Publish(topic="t", payload=b"again", qos=1, packet_id=3))
            assert other.expect(Puback, packet_id=3).reason is Reason.SUCCESS
        until(lambda: "room again" in broker.log, "the broker says that there is room")
        broker.process.kill()
        broker.process.wait()
    with live(tmp_path) as broker, broker.dial("sub") as sub:
        got = [sub.expect(Publish).payload[-6:] for _ in range(len(taken) + 2)]
        assert got == [*(b"%06d" % number for number in taken), b"old", b"again"]


def test_a_broker_without_its_writer_ends_and_says_so(tmp_path: Path) -> None:
    with live(tmp_path) as broker, broker.dial("a") as client:
        client.subscribe("t", 1)
        client.send(Publish(topic="t", payload=b"1", qos=1, packet_id=1))
        assert {type(client.receive()), type(client.receive())} == {Publish, Puback}
        os.kill(broker.writer, signal.SIGSTOP)
        client.send(Publish(topic="t", payload=b"2", qos=1, packet_id=2))
        # at QoS 1 it may be delivered before it is permanent; it is not acknowledged
        client.expect(Publish, payload=b"2")
        os.kill(broker.writer, signal.SIGKILL)
        rest = list(client.rest())
        assert not any(isinstance(packet, Puback) for packet in rest)
        assert broker.process.wait(PATIENCE_S) == 1
        assert "the writer of the store has ended" in broker.log


def test_a_second_broker_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with live(tmp_path) as broker:
        command = [sys.executable, "-m", "tieline", "serve", "--data", str(broker.data), "--name", "second"]
        second = subprocess.run(
            [*command, "--listen", "tcp://127.0.0.1:0"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert second.returncode == 1
        assert f"another broker (process {broker.process.pid}) keeps its data in {broker.data}" in second.stderr


def test_a_clean_stop_acknowledges_what_it_has(tmp_path: Path) -> None:
    with live(tmp_path) as broker, broker.dial("a") as client:
        client.subscribe("t", 2)
        client.send(*(Publish(topic="t", payload=b"%d" % n, qos=1, packet_id=n) for n in range(1, 200)))
        broker.process.send_signal(signal.SIGTERM)
        acknowledged = [packet.packet_id for packet in client.rest() if isinstance(packet, Puback)]
        assert broker.process.wait(PATIENCE_S) == 0
    with live(tmp_path) as broker, broker.dial("a") as client:
        # the client acknowledged nothing: everything comes again
        got = {int(client.expect(Publish).payload) for _ in acknowledged}
        assert got >= set(acknowledged)


def test_pause_lets_mqtt_5_wait_as_well(tmp_path: Path) -> None:
    more = 'full = "pause"\nabsent = "refuse"\n[limits]\nqueue_messages = 5'
    with live(tmp_path, more=more) as broker, broker.dial("slow") as slow, broker.dial("p") as publisher:
        slow.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="t", qos=1),)))
        slow.receive()
        slow.close()
        publisher.send(*(Publish(topic="t", payload=b"%d" % n, qos=1, packet_id=n) for n in range(1, 8)))
        for number in range(1, 6):
            assert publisher.expect(Puback, packet_id=number).reason is Reason.SUCCESS
        with broker.dial("slow") as again:
            for number in range(1, 8):
                message = again.expect(Publish, payload=b"%d" % number)
                again.send(Puback(packet_id=message.packet_id))
        for number in (6, 7):
            assert publisher.expect(Puback, packet_id=number).reason is Reason.SUCCESS


def test_a_captured_message_is_in_the_log_when_it_is_acknowledged(tmp_path: Path) -> None:
    more = '[log]\ncapture = ["t/#"]'
    with live(tmp_path, more=more) as broker, broker.dial("p", is_kept=False) as client:
        for number in range(1, 20):
            client.send(Publish(topic="t/x", payload=b"%d" % number, qos=1 + number % 2, packet_id=number))
            packet = client.receive()
            with Log(broker.data) as log:
                assert [record.payload for record in log.read(log.latest() - 1)] == [b"%d" % number]
            if isinstance(packet, Pubrec):
                client.send(Pubrel(packet_id=number))
                client.receive()
        client.send(Publish(topic="elsewhere", payload=b"0", qos=1, packet_id=90))
        client.expect(Puback)
        client.send(Publish(topic="t/y", payload=b"0"), Publish(topic="t/y", payload=b"1", qos=1, packet_id=91))
        client.expect(Puback, packet_id=91)
        broker.process.kill()
        broker.process.wait()
        with Log(broker.data) as log:
            assert [record.topic for record in log.read(19)] == ["t/y", "t/y"]
            assert log.latest() == 21


@pytest.mark.usefixtures("tracing")
@pytest.mark.parametrize("qos", [1, 2])
def test_fdatasync_has_returned_when_the_acknowledgement_leaves(tmp_path: Path, qos: int) -> None:
    trace = tmp_path / "trace"
    watched = "trace=pwrite64,fdatasync,fsync,sendto,write"
    prefix = ["strace", "-f", "-qq", "-xx", "-s", "100000", "-e", watched, "-o", str(trace)]
    with live(tmp_path, prefix=prefix) as broker, broker.dial("a") as client:
        client.subscribe("t", 0)
        client.send(Publish(topic="t", payload=b"look for this", qos=qos, packet_id=0x0777, retain=True))
        while not isinstance(client.receive(), Puback | Pubrec):
            pass
    lines = trace.read_text().splitlines()
    payload = "".join(f"\\x{byte:02x}" for byte in b"look for this")
    answer = "\\x40\\x02\\x07\\x77" if qos == 1 else "\\x50\\x02\\x07\\x77"
    written = next(at for at, line in enumerate(lines) if "pwrite64(" in line and payload in line)
    writer = lines[written].split()[0]
    synced = next(at for at in range(written, len(lines)) if lines[at].startswith(writer) and _is_synced(lines[at]))
    left = next(at for at, line in enumerate(lines) if "sendto(" in line and answer in line)
    assert written < synced < left


def _is_synced(line: str) -> bool:
    """The call has returned, whether strace shows it on one line or on two."""
    return ("fdatasync" in line or "fsync" in line) and line.rstrip().endswith("= 0")
