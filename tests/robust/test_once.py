"""kill -9 under a job that numbers its messages and begins its batch anew: each is published once."""

from __future__ import annotations

from pathlib import Path
from random import Random
from time import monotonic

import pytest

from tests.kits.patience import PATIENCE_S
from tests.robust.crash import crashing
from tests.robust.remembering import Client
from tieline.net.store.reading import Log
from tieline.wire.packets import Packet, Puback, Publish, Pubrec, Pubrel

BATCH = 150


class Job(Client):
    """Sends one batch with each connection, in a new session, and remembers only which batch it is."""

    def __init__(self, qos: int) -> None:
        super().__init__("job", 5, is_kept=False)
        self.qos = qos
        self.first = 0
        self.acknowledged = 0

    def welcomed(self) -> None:
        for number in range(self.first, self.first + BATCH):
            self.send(
                Publish(
                    topic="job/t",
                    payload=b"%d" % number,
                    qos=self.qos,
                    packet_id=number - self.first + 1,
                    properties={"user_property": [("$once", f"job/{number}")]},
                )
            )

    def handle(self, packet: Packet) -> None:
        if isinstance(packet, Puback | Pubrec):
            self.acknowledged += packet.reason < 0x80
        if isinstance(packet, Pubrec):
            self.send(Pubrel(packet_id=packet.packet_id))

    def run(self, port: int, until: int) -> None:
        """Connect, send the batch, and read until so many were acknowledged."""
        self.acknowledged = 0
        self.connect(port)
        deadline = monotonic() + PATIENCE_S
        while self.acknowledged < until:
            assert monotonic() < deadline, f"{self.acknowledged} of {until} acknowledged"
            assert self.sock is not None
            self.send()
            self.sock.setblocking(False)
            self.read()


@pytest.mark.parametrize("qos", [1, 2])
def test_a_batch_that_is_begun_anew_is_published_once(tmp_path: Path, qos: int) -> None:
    random = Random(qos)
    job = Job(qos)
    with crashing(tmp_path, qos, more='[log]\ncapture = ["job/#"]') as harness:
        for _ in range(2):
            for how in ("broker", "both"):
                harness.start()
                job.run(harness.port, random.randrange(BATCH))
                harness.kill(how)
                job.hang_up()
            harness.start()
            job.run(harness.port, BATCH)
            harness.kill("broker")
            job.hang_up()
            job.first += BATCH
    with Log(tmp_path / "data") as log:
        published = [int(record.payload) for record in log.read(log.earliest(), log.latest())]
    assert published == list(range(job.first))
