"""kill -9 of gateways: what was acknowledged in one region arrives in the other, once and in order, whoever dies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.robust.test_joined_crash import BURST, BrokersInLine, free_port

NAMES = ("here", "gate-west", "gate-east", "far")


class Regions(BrokersInLine):
    """A broker and a gateway in each of two regions."""

    def configure(self, folder: Path) -> None:
        ports = {name: (free_port(), free_port()) for name in NAMES}
        for name, gate in (("here", "gate-west"), ("far", "gate-east")):
            self.urls[name] = f"tcp://127.0.0.1:{ports[name][0]}"
            self._write(folder, name, f'[[listener]]\nurl = "{self.urls[name]}"\n{_peer(ports[gate][0])}')
        for name in ("gate-west", "gate-east"):
            inside, outside = ports[name]
            text = f'[overlay]\nregion = "{name[5:]}"\n[[listener]]\nurl = "peer://127.0.0.1:{inside}"\n'
            text += f'[[listener]]\nurl = "peer://127.0.0.1:{outside}"\ngateway = true\n'
            if name == "gate-east":
                text += f'{_peer(ports["gate-west"][1])}name = "gate-west@west"\ngateway = true\n'
            self._write(folder, name, text)

    @staticmethod
    def _write(folder: Path, name: str, text: str) -> None:
        head = f'name = "{name}"\ndata = "{folder / name}"\n[mqtt]\nsys_interval_s = 0\n'
        (folder / f"{name}.toml").write_text(head + text)


def _peer(port: int) -> str:
    return f'[[peer]]\nurl = "peer://127.0.0.1:{port}"\n'


@contextmanager
def regions(folder: Path, seed: int) -> Iterator[Regions]:
    brokers = Regions(folder, seed)
    try:
        brokers.start("gate-west")
        assert "joined: gate-west@west" in brokers.start("gate-east")
        assert "joined: gate-west" in brokers.start("here")
        assert "joined: gate-east" in brokers.start("far")
        brokers.subscribe()
        yield brokers
    finally:
        brokers.end()


def test_what_is_published_in_one_region_comes_to_the_other(tmp_path: Path) -> None:
    with regions(tmp_path, 1) as brokers:
        brokers.publish(BURST)
        assert sum(map(len, brokers.accepted.values())) == BURST
        brokers.check()


def test_what_a_gateway_owes_survives_it(tmp_path: Path) -> None:
    with regions(tmp_path, 2) as brokers:
        brokers.kill("gate-east")
        brokers.publish(BURST)
        brokers.kill("here")
        brokers.kill("gate-west")
        for name in ("gate-west", "gate-east", "here"):
            brokers.start(name)
        brokers.check()
        assert brokers.accepted[1]


@pytest.mark.parametrize("victim", NAMES)
def test_whoever_dies_in_the_middle_of_a_burst(tmp_path: Path, victim: str) -> None:
    with regions(tmp_path, 3) as brokers:
        for _ in range(2):
            brokers.publish(BURST, (victim,))
            brokers.start(victim)
        brokers.check()
        assert brokers.accepted[1]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(3))
def test_many_deaths(tmp_path: Path, seed: int) -> None:
    with regions(tmp_path, 100 + seed) as brokers:
        for _ in range(20):
            victims = tuple(brokers.random.sample(NAMES, brokers.random.randint(1, 3)))
            brokers.publish(BURST, victims)
            for victim in victims:
                brokers.start(victim)
        brokers.check()
