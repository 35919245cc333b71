"""`tieline net` at a gateway shows the brokers of its region and the gateways of others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec
import pytest

from tests.cli.conftest import Tieline
from tests.kits.dial import dial
from tests.kits.patience import until
from tests.net.test_peers import publish, settings, subscribe
from tieline.conf.overlay import Overlay, Peer
from tieline.conf.schema import Listener, Settings
from tieline.net.neighbours import Neighbours
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish


def gateway(name: str, region: str, data: Path, *joins: str) -> Settings:
    """A gateway that listens on both sides, and dials those of other regions."""
    return Settings(
        name=name,
        data=str(data),
        overlay=Overlay(region=region),
        listener=(Listener(url="peer://127.0.0.1:0"), Listener(url="peer://127.0.0.1:0", gateway=True)),
        peer=tuple([Peer(url=url, gateway=True) for url in joins]),
    )


def _knows(broker: BrokerThread, count: int) -> bool:
    """Whether a gateway has others in reach."""
    neighbours = broker._server._peers
    assert isinstance(neighbours, Neighbours)
    assert neighbours.outside is not None
    return len(neighbours.outside.joined.node.membership.reachable) == count


@pytest.fixture(name="regions")
def _regions(tmp_path: Path) -> Iterator[tuple[BrokerThread, BrokerThread, BrokerThread, BrokerThread]]:
    """A broker and a gateway in the west, and the same in the east."""
    with ExitStack() as stack:

        def run(conf: Settings, data: str) -> BrokerThread:
            conf = msgspec.structs.replace(conf, data=str(tmp_path / data))
            return stack.enter_context(BrokerThread(conf, manage=True))

        west = run(gateway("g", "west", tmp_path), "g")
        east = run(gateway("h", "east", tmp_path, west.urls[1]), "h")
        here = run(settings("here", west.urls[0]), "here")
        far = run(settings("far", east.urls[0]), "far")
        until(partial(_knows, west, 1), "the gateways know each other")
        until(partial(_knows, east, 1), "the gateways know each other")
        yield here, west, east, far


def test_who_is_there_on_both_sides(
    tieline: Tieline, regions: tuple[BrokerThread, BrokerThread, BrokerThread, BrokerThread]
) -> None:
    here, west, _east, far = regions
    with dial(far.urls[0], "far") as client, dial(here.urls[0], "near") as near:
        subscribe(client, "x/+", 1)
        publish(near, "x/1", b"hello", 1)
        client.expect(Publish, payload=b"hello")
    data = str(west._server.settings.data)
    shown = tieline("net", "--data", data)
    assert (shown.returncode, shown.stderr) == (0, "")
    for expected in ("g (gateway of west)", "here", "Gateway of region west: east known.", "h@east"):
        assert expected in shown.stdout, shown.stdout
    answer = json.loads(tieline("net", "--data", data, "--json").stdout)
    assert [each["name"] for each in answer["outside"]["brokers"]] == ["g@west", "h@east"]
    assert answer["outside"]["brokers"][1]["wants"] == 1
    assert [each["gateway_of"] for each in answer["brokers"] if each["name"] == "here"] == [""]
    seen = json.loads(tieline("net", "--data", str(here._server.settings.data), "--json").stdout)
    assert [each["gateway_of"] for each in seen["brokers"] if each["name"] == "g"] == ["west"]
