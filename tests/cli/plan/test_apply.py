"""`tieline plan apply`: joined brokers go by a plan that is true for them, and back; one of them is asked."""

from __future__ import annotations

import json
from contextlib import ExitStack

import msgspec

from tests.cli.conftest import Tieline
from tests.cli.plan.conftest import Ring
from tests.cli.plan.test_import_running import publishing
from tests.kits.dial import dial
from tests.kits.patience import until
from tests.net.test_peers import node_of
from tieline.cli.trouble import FAILED, MISUSED
from tieline.plan.instance import Instance
from tieline.plan.plan import Plan, render
from tieline.plan.reading import document
from tieline.plan.routes import Hop, Route
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish


def _imported(tieline: Tieline, ring: Ring, *more: str) -> Instance:
    """What one broker says of all of them."""
    file = ring.directory / "net.json"
    hill = f"hill={ring.directory / 'hill'}"
    done = tieline("plan", "import", "running", "--broker", hill, "--seconds", "1", *more, "--out", str(file))
    assert done.returncode == 0, done.stderr
    return document.read(file)


def _over(instance: Instance, by: str) -> Plan:
    """A plan that brings the only topic from hill to dam by a broker between them."""
    hops = [("p", "hill"), ("hill", by), (by, "dam"), ("dam", "s")]
    route = Route(
        topic="pv/7",
        source="p",
        links=tuple(Hop(tail=tail, head=head, subscribers=("s",)) for tail, head in hops),
    )
    price = 1.0 + sum(sorted(link.cost for link in instance.links)[-4:])
    return Plan(
        instance=instance.name, method="hand", status="feasible", routes=(route,), objective=2.0, cost=2.0, unmet=0,
        unmet_price=price, bound=0.0, seconds=0.0,
    )  # fmt: skip


def _taken(broker: BrokerThread) -> int:
    return broker.ask(lambda core: node_of(core).counts.planned)


def test_messages_go_by_the_plan_and_back(tieline: Tieline, ring: Ring) -> None:
    file, plan_file = ring.directory / "net.json", ring.directory / "net.plan.json"
    with ExitStack() as stack:
        p = stack.enter_context(dial(ring.brokers["hill"].urls[0], "p"))
        s = stack.enter_context(dial(ring.brokers["dam"].urls[0], "s"))
        s.subscribe("pv/#")
        stack.enter_context(publishing(p, ("pv/7", 1)))
        instance = _imported(tieline, ring)
        assert {frozenset((link.a, link.b)): link.capacity for link in instance.links if link.cost} == {
            frozenset(pair): 90_000.0 for pair in (("hill", "mill"), ("hill", "dam"), ("mill", "dam"))
        }
        assert [(topic.id, topic.source, topic.subscribers) for topic in instance.topics] == [("pv/7", "p", ("s",))]
        plan_file.write_bytes(render(_over(instance, "mill")))

        dry = tieline("plan", "apply", str(file), str(plan_file), *ring.at_hill, "--dry")
        sentence, *tables = dry.stdout.splitlines()
        moving = "1 topic, 3 ways, 3 paced links; 1 of 1 flows between brokers takes another way"
        assert sentence == f"running can be applied to 3 brokers: {moving}", dry.stderr
        words = [line.split() for line in tables if line]
        assert ["pv/7", "p", "hill", "-", "dam", "hill", "-", "mill", "-", "dam"] in words
        loads = {(row[0], row[2]): row[3:] for row in words if row[1] == "-"}
        assert loads.keys() == {("dam", "hill"), ("dam", "mill"), ("hill", "mill")}
        rate = loads["dam", "hill"][0]
        assert rate != "0"
        assert loads["dam", "hill"] == [rate, "0", "100,000"]
        assert loads["dam", "mill"] == loads["hill", "mill"] == ["0", rate, "100,000"]
        assert not ring.brokers["mill"].ask(lambda core: bool(node_of(core).counts.planned))
        done = tieline("plan", "apply", str(plan_file), *ring.at_hill)
        assert done.stdout == f"running is in force at 3 brokers, as plan 1: {moving}\n", done.stderr
        again = tieline("plan", "apply", str(file), str(plan_file), *ring.at_hill, "--dry")
        assert again.stdout.endswith("0 of 1 flows between brokers take another way\n"), again.stderr
        until(lambda: _taken(ring.brokers["mill"]) > 10, "the broker between them passes it on")
        said = tieline("plan", "status", *ring.at_hill)
        assert [line.split()[:3] for line in said.stdout.splitlines()[1:]] == [
            [name, "1", "running"] for name in ("dam", "hill", "mill")
        ]
        told = json.loads(tieline("plan", "status", "--json", *ring.at_hill).stdout)
        assert told["paces"].keys() == {"mill", "dam"}
        assert told["others"]["mill"]["counts"]["planned"] > 0

        back = tieline("plan", "apply", "--revert", *ring.at_hill)
        assert back.stdout.startswith("back from plan 1 to the shortest ways"), back.stderr
        before = _taken(ring.brokers["mill"])
        for _ in range(20):
            s.expect(Publish)
        assert _taken(ring.brokers["mill"]) <= before + 3
        assert "no plan is in force" in tieline("plan", "apply", "--revert", *ring.at_hill).stdout


def test_a_plan_for_another_network_is_refused(tieline: Tieline, ring: Ring) -> None:
    file, plan_file = ring.directory / "net.json", ring.directory / "net.plan.json"
    with ExitStack() as stack:
        p = stack.enter_context(dial(ring.brokers["hill"].urls[0], "p"))
        s = stack.enter_context(dial(ring.brokers["dam"].urls[0], "s"))
        s.subscribe("pv/#")
        stack.enter_context(publishing(p, ("pv/7", 1)))
        instance = _imported(tieline, ring)
    plan_file.write_bytes(render(_over(instance, "mill")))
    wide = msgspec.structs.replace(instance, topics=(msgspec.structs.replace(instance.topics[0], rate=200_000.0),))
    loose = tuple(msgspec.structs.replace(link, capacity=float("inf")) for link in wide.links)
    file.write_bytes(document.render(msgspec.structs.replace(wide, links=loose)))
    done = tieline("plan", "apply", str(file), str(plan_file), *ring.at_hill)
    assert done.returncode == FAILED
    assert "the network is not as it was planned: link" in done.stderr
    assert "its capacity is 100000" in done.stderr
    file.write_bytes(document.render(instance))
    assert ring.brokers["hill"].ask(lambda core: not node_of(core).counts.planned)


def test_what_cannot_be_meant(tieline: Tieline) -> None:
    for words in ((), ("x.json",), ("x.json", "y.json", "--revert")):
        done = tieline("plan", "apply", *words)
        assert done.returncode == MISUSED
        assert "name an instance and its plan, or NAME.plan.json beside its NAME.json, or --revert" in done.stderr
