"""kill -9 of joined brokers with members of one group: what was acknowledged comes to one of them, and once."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tests.kits.dial import Dial, dial
from tests.robust.test_joined_crash import BURST, BrokersInLine, running
from tieline.wire.packets import Puback, Pubcomp, Publish, Pubrec, Pubrel

#: Where the members are; messages are accepted at "here".
HOMES = ("middle", "far")
GROUP = "$share/workers/x/#"


class Shared(BrokersInLine):
    """A line of brokers with two members of a group, whose sessions are kept."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        #: By QoS, what came to which member.
        self.got: dict[int, Counter[int]] = {1: Counter(), 2: Counter()}
        self._held: dict[str, set[int]] = {home: set() for home in HOMES}

    def member(self, home: str) -> Dial:
        return dial(self.urls[home], f"member at {home}", version=4, clean_start=False)

    def subscribe(self) -> None:
        """Both members join the group, and go."""
        for home in HOMES:
            with self.member(home) as client:
                assert client.subscribe(GROUP, 2).reasons == (2,)
                assert client.subscribe("end", 2).reasons == (2,)

    def gather(self) -> None:
        """Let each member have what waits for it; a last message to everybody ends it, behind all others."""
        with dial(self.urls["here"], "source", version=4, clean_start=False) as source:
            for packet_id, qos in ((60_001, 1), (60_002, 2)):
                source.send(Publish(topic="end", payload=b"", qos=qos, packet_id=packet_id))
            with suppress(TimeoutError):
                acknowledged = 0
                while acknowledged < 2:
                    packet = source.receive()
                    if isinstance(packet, Pubrec):
                        source.send(Pubrel(packet_id=packet.packet_id))
                    acknowledged += isinstance(packet, Puback | Pubcomp) and packet.packet_id > 60_000
            for home in HOMES:
                with self.member(home) as client:
                    self._read(client, self._held[home])

    def _read(self, client: Dial, held: set[int]) -> None:
        ends = 0
        while ends < 2 or held:
            packet = client.receive()
            assert packet is not None
            if isinstance(packet, Publish):
                if packet.qos == 2 and packet.packet_id in held:
                    client.send(Pubrec(packet_id=packet.packet_id))
                    continue
                if packet.qos == 2:
                    held.add(packet.packet_id)
                if packet.topic == "end":
                    ends += 1
                else:
                    self.got[packet.qos][int(packet.payload)] += 1
                client.send((Puback if packet.qos == 1 else Pubrec)(packet_id=packet.packet_id))
            elif isinstance(packet, Pubrel):
                held.discard(packet.packet_id)
                client.send(Pubcomp(packet_id=packet.packet_id))

    def check(self) -> None:
        """Each message that was acknowledged came to one member, and once."""
        self.gather()
        for qos, numbers in self.accepted.items():
            wrong = {number: self.got[qos][number] for number in numbers if self.got[qos][number] != 1}
            assert not wrong, f"of {len(numbers)} with QoS {qos} some came so often: {wrong}"
            assert max(self.got[qos].values(), default=0) <= 1


def test_what_was_picked_survives_both_ends(tmp_path: Path) -> None:
    with running(Shared(tmp_path, 1)) as brokers:
        brokers.publish(BURST)
        brokers.kill("far")
        brokers.publish(BURST)
        brokers.kill("here")
        brokers.start("here")
        brokers.start("far")
        assert sum(map(len, brokers.accepted.values())) == 2 * BURST
        brokers.check()


def test_a_member_s_broker_dies_in_the_middle_of_a_burst(tmp_path: Path) -> None:
    with running(Shared(tmp_path, 2)) as brokers:
        brokers.publish(BURST, ("middle",))
        brokers.start("middle")
        brokers.publish(BURST)
        brokers.check()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(3))
def test_many_deaths(tmp_path: Path, seed: int) -> None:
    with running(Shared(tmp_path, 100 + seed)) as brokers:
        for _ in range(20):
            victims = tuple(brokers.random.sample(("here", "middle", "far"), brokers.random.randint(1, 3)))
            brokers.publish(BURST, victims)
            for victim in victims:
                brokers.start(victim)
        brokers.check()
