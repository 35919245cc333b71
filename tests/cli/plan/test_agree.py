"""`tieline plan agree`: running brokers agree on ways among themselves, and messages go by them."""

from __future__ import annotations

import json
import time

from tests.cli.conftest import Tieline
from tests.cli.plan.conftest import Ring
from tests.cli.plan.test_import_running import publishing
from tests.kits.dial import dial
from tests.kits.patience import until
from tests.net.test_peers import node_of
from tieline.cli.trouble import FAILED, MISUSED
from tieline.core.broker import Broker
from tieline.overlay.joined import Joined
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish

_QUICK = ("--seconds", "1", "--within", "3")


def _joined(core: Broker) -> Joined:
    assert isinstance(core.routes.neighbours, Joined)
    return core.routes.neighbours


def _state(broker: BrokerThread) -> str:
    return broker.ask(lambda core: _joined(core).agreeing.progress.state)


def test_messages_go_by_what_brokers_have_agreed_on(tieline: Tieline, ring: Ring) -> None:
    hill, dam = ring.brokers["hill"], ring.brokers["dam"]
    with dial(dam.urls[0], "s") as s, dial(hill.urls[0], "p") as p:
        s.subscribe("pv/#", 1)
        with publishing(p, ("pv/7", 1)):
            done = tieline("plan", "agree", *ring.at_hill, *_QUICK)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "is in force at 3 brokers: 1 way, 1 of 1 request have room" in done.stdout
            until(lambda: hill.ask(lambda core: node_of(core).counts.planned) > 3, "messages go by it")
        told = json.loads(tieline("plan", "status", "--json", *ring.at_hill).stdout)
        assert {told["plan"], *(said["plan"] for said in told["others"].values())} == {"agreed"}
        assert told["agreeing"]["state"] == "in force"
        assert told["paces"].keys() == {"mill", "dam"}
        for number in range(20):
            p.send(Publish(topic="pv/7", payload=b"last %d" % number, qos=1, packet_id=number + 1))
        payloads: list[bytes] = []
        while payloads[-1:] != [b"last 19"]:
            payloads.append(s.expect(Publish).payload)
        assert [each for each in payloads if each.startswith(b"last")] == [b"last %d" % each for each in range(20)]
        # a plan that is made by a planner comes after it
        assert tieline("plan", "apply", "--revert", *ring.at_hill).returncode == 0


def test_a_link_that_is_lost_meanwhile_ends_it_everywhere(tieline: Tieline, ring: Ring) -> None:
    hill, mill, dam = (ring.brokers[name] for name in ("hill", "mill", "dam"))
    hill.ask(lambda core: _joined(core).agreeing.begin(7, 30.0, 30.0, 0.1, time.monotonic()))
    until(lambda: _state(mill) == _state(dam) == "counting", "all have heard of it")

    def cut(core: Broker) -> None:
        node = node_of(core)
        connection = node.links[node.number_of("mill")].connection
        assert connection is not None
        node.connections.end(connection, time.monotonic(), "silent")

    hill.ask(cut)
    until(lambda: {_state(each) for each in (hill, mill, dam)} == {"abandoned"}, "it is over at all of them")
    told = json.loads(tieline("plan", "status", "--json", *ring.at_hill).stdout)
    assert told["agreeing"]["why"] == "hill has lost the link to mill"
    assert told["epoch"] == 0


def test_brokers_that_go_by_something_else_do_not_agree(tieline: Tieline, ring: Ring) -> None:
    ring.brokers["mill"].ask(lambda core: _joined(core).use("flood", time.monotonic()))
    done = tieline("plan", "agree", *ring.at_hill, *_QUICK)
    assert done.returncode == FAILED
    assert "there is no agreement, and the plan before stays: mill: this broker goes by flood" in done.stderr
    assert tieline("plan", "agree", *ring.at_hill, "--seconds", "0").returncode == MISUSED
