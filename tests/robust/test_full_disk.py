"""A disk with no room left: clients come back, what waits drains, and a broker that was killed starts again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import need
from tests.kits.dial import Dial, dial
from tests.kits.patience import PATIENCE_S, until
from tieline.net.store.directory import RESERVE, Reserve
from tieline.wire.packets import Pingreq, Pingresp, Puback, Publish
from tieline.wire.reason import Reason

SIZE = 40 << 20
#: A disk of its own, and a broker on it that is started again when it ends, as a supervisor does.
SCRIPT = 'mount -t tmpfs -o size=%d,mode=0700 disk "$0" && for turn in 1 2; do "$@"; done'


@pytest.fixture(scope="module", autouse=True)
def _mounting() -> None:
    """A file system of one's own takes two programs and, in some containers, a right."""
    command = [need("unshare"), "--map-root-user", "--mount", need("mount"), "-t", "tmpfs", "none", "/mnt"]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a file system of its own cannot be mounted here")


class Disk:
    """A small disk, the broker that lives on it, and somebody who fills it."""

    def __init__(self, folder: Path) -> None:
        data = folder / "data"
        data.mkdir()
        config = folder / "broker.toml"
        config.write_text(f'data = "{data}"\n[[listener]]\nurl = "tcp://127.0.0.1:0"\n')
        serve = [sys.executable, "-m", "tieline", "serve", "--config", str(config)]
        command = ["unshare", "--map-root-user", "--mount", "sh", "-c", SCRIPT % SIZE, str(data), *serve]
        self._log = folder / "log"
        with self._log.open("w") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        #: The same place, as this process can see it.
        self.data = Path(f"/proc/{self.process.pid}/root{data}")
        self.url = ""
        self.ready()

    @property
    def log(self) -> str:
        return self._log.read_text()

    def ready(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert " ready: " in line, self.log
        self.url = next(word for word in line.split() if word.startswith("tcp://"))

    def fill(self) -> None:
        """Leave no byte."""
        with (self.data / "ballast").open("ab", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4_096)):
                pass

    def kill(self) -> None:
        """The broker and its writer, without a word."""
        broker = _children(self.process.pid)[0]
        for pid in (*_children(broker), broker):
            os.kill(pid, signal.SIGKILL)

    def dial(self, client_id: str) -> Dial:
        return dial(self.url, client_id, clean_start=False, properties={"session_expiry_interval": 1_000})

    def close(self) -> None:
        for _ in range(2):
            for pid in _children(self.process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(3)
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    made = Disk(tmp_path)
    yield made
    made.close()


def _publish(client: Dial, number: int, payload: bytes) -> Reason:
    client.send(Publish(topic="t", payload=payload, qos=1, packet_id=number))
    return client.expect(Puback, packet_id=number).reason


def test_clients_come_back_what_waits_drains_and_a_killed_broker_starts_again(disk: Disk) -> None:
    with disk.dial("sub") as sub, disk.dial("pub") as pub:
        sub.subscribe("t", 1)
        sub.close()
        assert all(_publish(pub, number, b"%04d" % number) is Reason.SUCCESS for number in range(1, 101))
        disk.fill()
        number = 101
        while _publish(pub, number, bytes(50_000)) is Reason.SUCCESS:
            number += 1
            assert number < 1_000
        taken = number - 101
    until(lambda: "cannot write" in disk.log, "the broker says that its disk is full")
    assert (disk.data / RESERVE).stat().st_size < SIZE // 8, "the reserve is in use"
    disk.fill()
    with disk.dial("new") as new, disk.dial("sub") as sub:
        # CONNACK has come; what waits goes out, and what was acknowledged is gone for good
        got = []
        for _ in range(50):
            message = sub.expect(Publish)
            got.append(message.payload)
            sub.send(Puback(packet_id=message.packet_id))
        assert got == [b"%04d" % each for each in range(1, 51)]
        assert _publish(new, 1, b"x") is Reason.QUOTA_EXCEEDED, "nothing new is taken"
        new.send(Pingreq())
        assert isinstance(new.expect(Pingresp), Pingresp)
    disk.kill()
    disk.fill()
    disk.ready()
    with disk.dial("sub") as sub:
        rest: list[Publish] = []
        # an acknowledgement that was not permanent when the broker was killed is asked for again
        while sum(message.payload not in got for message in rest) < 50 + taken:
            rest.append(sub.expect(Publish))
        assert {message.payload for message in rest} >= {b"%04d" % each for each in range(60, 101)}
        for message in rest:
            sub.send(Puback(packet_id=message.packet_id))
        (disk.data / "ballast").unlink()
        until(lambda: "room again" in disk.log, "the broker says that there is room")
    with disk.dial("pub") as pub:
        assert _publish(pub, 1, b"more") is Reason.SUCCESS
    assert (disk.data / RESERVE).stat().st_size == SIZE // 8, "the reserve is there again"


def test_a_reserve_is_taken_whole_and_given_back_in_steps(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path)
    assert not reserve.give_back()
    assert reserve.take() and reserve.take()
    assert (tmp_path / RESERVE).stat().st_blocks * 512 >= (tmp_path / RESERVE).stat().st_size > 0
    before = (tmp_path / RESERVE).stat().st_size
    assert reserve.give_back() and (tmp_path / RESERVE).stat().st_size < before
    assert reserve.take() and (tmp_path / RESERVE).stat().st_size == before
    assert sum(reserve.give_back() for _ in range(100)) in {8, 9}
    assert reserve.take()
    reserve.give_back_all()
    assert not reserve.give_back()
