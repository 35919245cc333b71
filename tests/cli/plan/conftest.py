"""Joined brokers, for what plans do with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from tests.kits.patience import until
from tests.net.test_peers import reaches, settings
from tieline.conf.overlay import Peer
from tieline.pytest_plugin import BrokerThread


class Ring(NamedTuple):
    """Brokers hill, mill and dam, each joined with both others."""

    brokers: dict[str, BrokerThread]
    directory: Path

    @property
    def at_hill(self) -> tuple[str, ...]:
        return "--data", str(self.directory / "hill"), "--name", "hill"


@pytest.fixture(name="ring")
def _ring(tmp_path: Path) -> Iterator[Ring]:
    with ExitStack() as running:
        brokers: dict[str, BrokerThread] = {}
        for name in ("hill", "mill", "dam"):
            conf = settings(name)
            peers = tuple(Peer(url=other.urls[1], name=far, capacity=800_000) for far, other in brokers.items())
            conf = msgspec.structs.replace(conf, peer=peers, data=str(tmp_path / name))
            brokers[name] = running.enter_context(BrokerThread(conf, manage=True))
        for broker in brokers.values():
            until(partial(reaches, broker, 2), "every broker knows of all others")
        yield Ring(brokers, tmp_path)
