"""`tieline plan clients`: clients that allow it are sent to the broker where their messages have shorter ways."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec

from tests.cli.conftest import Tieline
from tests.cli.plan.test_import_running import publishing
from tests.kits.dial import Dial, dial
from tests.kits.patience import until
from tests.net.test_peers import reaches, settings
from tieline.conf.overlay import Overlay, Peer
from tieline.core.broker import Broker
from tieline.overlay.joined import Joined
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Disconnect
from tieline.wire.reason import Reason


def _knows(core: Broker, name: str) -> bool:
    joined = core.routes.neighbours
    assert isinstance(joined, Joined)
    return bool(joined.moves.reference_of(joined.node.number_of(name)))


def test_who_allows_it_is_sent_to_the_broker_of_its_publisher(tieline: Tieline, tmp_path: Path) -> None:
    stays: dict[str, object] = {"session_expiry_interval": 60}
    with ExitStack() as stack:
        conf = settings("hill", overlay=Overlay(reference="hill.example:1883"))
        hill = stack.enter_context(
            BrokerThread(msgspec.structs.replace(conf, data=str(tmp_path / "hill")), manage=True)
        )
        conf = settings("dam", overlay=Overlay(reference="dam.example:1883"))
        peer = Peer(url=hill.urls[1], name="hill")
        conf = msgspec.structs.replace(conf, peer=(peer,), data=str(tmp_path / "dam"))
        dam = stack.enter_context(BrokerThread(conf, manage=True))
        for broker, other in ((hill, "dam"), (dam, "hill")):
            until(partial(reaches, broker, 1), "both are joined")
            until(partial(broker.ask, partial(_knows, name=other)), "both know where clients reach the other")
        at_hill = ("--data", str(tmp_path / "hill"), "--name", "hill")
        p = stack.enter_context(dial(hill.urls[0], "p"))
        free = stack.enter_context(
            dial(dam.urls[0], "free", clean_start=False, properties={**stays, "user_property": [("$move", "yes")]})
        )
        bound = stack.enter_context(dial(dam.urls[0], "bound"))
        free.subscribe("pv/#", 1)
        with publishing(p, ("pv/7", 1)):
            done = tieline("plan", "clients", *at_hill, "--seconds", "1")
            assert done.returncode == 0, done.stderr
            assert [line.split()[:3] for line in done.stdout.splitlines()[1:]] == [["free", "dam", "hill"]]
            done = tieline("plan", "clients", *at_hill, "--seconds", "1", "--move")
            assert done.stdout.endswith("1 client sent to another broker\n"), done.stdout + done.stderr
            *_, said = free.rest()
            assert isinstance(said, Disconnect)
            assert (said.reason, said.properties["server_reference"]) == (Reason.SERVER_MOVED, "hill.example:1883")
        # its session follows it, and nobody else was asked to go
        again = stack.enter_context(Dial(hill.urls[0]))
        assert again.connect("free", clean_start=False, properties=stays).session_present
        bound.subscribe("other")
        done = tieline("plan", "clients", *at_hill, "--seconds", "0.5")
        assert "nothing was published" in done.stderr or "no client that may move" in done.stdout
