"""kill -9 of brokers on a ring, each in a process with a store: what was acknowledged arrives, once and in order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kits.dial import Dial, dial
from tests.kits.patience import until
from tests.robust.test_joined_crash import BURST, BrokersInLine, free_port
from tieline.cli.management import Management
from tieline.conf.paths import management_socket
from tieline.wire.packets import Puback, Publish

#: Publishers are at the first, and the subscriber at the last.
NAMES = ("here", "one", "two", "three", "far")
LATE = "late"


class Ring(BrokersInLine):
    """Five brokers on a ring, each of which was given the address of the one before it, and one that may come late."""

    def configure(self, folder: Path) -> None:
        self.folder = folder
        names = (*NAMES, LATE)
        ports = {name: (free_port(), free_port()) for name in names}
        for place, name in enumerate(names):
            self.urls[name] = f"tcp://127.0.0.1:{ports[name][0]}"
            joins = f'[[peer]]\nurl = "peer://127.0.0.1:{ports[names[place - 1]][1]}"\n' if place else ""
            (folder / f"{name}.toml").write_text(
                f'name = "{name}"\ndata = "{folder / name}"\n[mqtt]\nsys_interval_s = 0\n'
                f'[overlay]\nmode = "ring"\n[overlay.ring]\nstabilise_s = 0.5\n'
                f'[[listener]]\nurl = "{self.urls[name]}"\n'
                f'[[listener]]\nurl = "peer://127.0.0.1:{ports[name][1]}"\n{joins}'
            )

    def net(self, name: str) -> dict[str, Any]:
        """What a broker says of the ring."""
        with Management(management_socket(str(self.folder / name), name)) as broker:
            return broker.ask("net")

    def join(self, *names: str) -> None:
        """Start brokers, one behind the other, and wait until each is on the ring."""
        for name in names:
            self.start(name)
            until(lambda name=name: self._is_on(name), f"{name} is on the ring")  # type: ignore[misc]  # a default binds

    def _is_on(self, name: str) -> bool:
        found = self.net(name)
        return bool(found["is_joined"] and found["is_closed"])

    def known_topic(self, watcher: Dial) -> str:
        """A topic that the late broker's client has subscribed to; empty where its SUBACK did not wait for everybody.

        It waits for some seconds, which a machine that is busy with something else may not have had.
        """
        late = self.net(LATE)["counts"].get("acknowledged_late", 0)
        topic = f"x/late/{late}"
        assert watcher.subscribe(topic, 1).reasons == (1,)
        return topic if self.net(LATE)["counts"].get("acknowledged_late", 0) == late else ""


@contextmanager
def ring(folder: Path, seed: int) -> Iterator[Ring]:
    brokers = Ring(folder, seed)
    try:
        brokers.join(*NAMES)
        brokers.subscribe()
        yield brokers
    finally:
        brokers.end()


def test_what_is_owed_survives_whoever_owes_it(tmp_path: Path) -> None:
    with ring(tmp_path, 1) as brokers:
        brokers.publish(BURST, ("here",))
        brokers.join("here")
        brokers.publish(BURST)
        brokers.check()
        assert len(brokers.accepted[1]) >= BURST // 2


@pytest.mark.parametrize("victim", ["here", "two", "three"])
def test_whoever_dies_in_the_middle_of_a_burst(tmp_path: Path, victim: str) -> None:
    with ring(tmp_path, 2) as brokers:
        for _ in range(2):
            brokers.publish(BURST, (victim,))
            brokers.join(victim)
        brokers.check()
        assert brokers.accepted[1]


def test_what_has_arrived_survives_its_broker(tmp_path: Path) -> None:
    with ring(tmp_path, 3) as brokers:
        brokers.publish(BURST)
        until(lambda: not brokers.net("here")["totals"]["owed/batches"], "everybody has it who wants it")
        brokers.kill("far")
        brokers.join("far")
        assert sum(map(len, brokers.accepted.values())) == BURST
        brokers.check()


def test_a_broker_that_comes_late_misses_nothing_behind_its_suback(tmp_path: Path) -> None:
    with ring(tmp_path, 4) as brokers, dial(brokers.urls["here"], "source") as source:
        brokers.start(LATE)
        with dial(brokers.urls[LATE], "watcher") as watcher:
            topic = until(lambda: brokers.known_topic(watcher), "everybody knew of a subscription before its SUBACK")
            for number in range(BURST):
                source.send(Publish(topic=topic, payload=b"%d" % number, qos=1, packet_id=1 + number))
                source.expect(Puback)
            assert [int(watcher.expect(Publish).payload) for _ in range(BURST)] == [*range(BURST)]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(3))
def test_many_deaths(tmp_path: Path, seed: int) -> None:
    with ring(tmp_path, 100 + seed) as brokers:
        for _ in range(20):
            victims = tuple(brokers.random.sample(NAMES[:-1], brokers.random.randint(1, 2)))
            brokers.publish(BURST, victims)
            brokers.join(*victims)
        brokers.check()
