"""Proposals of which broker a client should use: each of them shortens ways, and none keeps anything from its way."""

from __future__ import annotations

from random import Random

from tieline.plan.adapt.deviation import shortfall
from tieline.plan.attach import proposals
from tieline.plan.in_force import InForce, homes
from tieline.plan.instance import UNLIMITED, Instance, Link, Node, Topic


def _line(capacity: float, *topics: Topic, clients: dict[str, str]) -> Instance:
    """Brokers a to d in a row, and clients at them."""
    brokers = tuple(Node(id=name, roles=("broker",)) for name in "abcd")
    links = tuple(Link(a=a, b=b, capacity=capacity, cost=1.0) for a, b in ("ab", "bc", "cd"))
    return Instance(
        name="line",
        nodes=(*brokers, *(Node(id=client, roles=("publisher", "subscriber")) for client in clients)),
        links=(*links, *(Link(a=client, b=at, capacity=UNLIMITED, cost=0.0) for client, at in clients.items())),
        topics=topics,
    )


def test_a_client_goes_to_whom_it_has_to_do_with() -> None:
    topic = Topic(id="t", source="p", rate=10.0, subscribers=("s", "u"))
    instance = _line(UNLIMITED, topic, clients={"p": "a", "s": "d", "u": "d"})
    (found,) = proposals(instance, homes(instance), {}, movable=["p"], brokers="abcd", most=9)
    # both subscribers shared the way: it was three links for one message
    assert found == ("p", "a", "d", 30.0, 0.0)
    # not where nobody knows how to reach it, nor without its consent, nor more than was asked for
    (nearer,) = proposals(instance, homes(instance), {}, movable=["p"], brokers="abc", most=9)
    assert (nearer.after, nearer.saved) == ("c", 20.0)
    assert not proposals(instance, homes(instance), {}, movable=[], brokers="abcd", most=9)
    assert not proposals(instance, homes(instance), {}, movable=["p"], brokers="abcd", most=0)


def test_one_that_shares_a_way_with_others_saves_nothing_by_leaving() -> None:
    topic = Topic(id="t", source="p", rate=10.0, subscribers=("s", "u"))
    instance = _line(UNLIMITED, topic, clients={"p": "a", "s": "d", "u": "d"})
    assert not proposals(instance, homes(instance), {}, movable=["s"], brokers="a", most=9)


def test_no_proposal_keeps_anything_from_its_way() -> None:
    """On random networks: after all that is proposed less is carried, and no less gets through."""
    proposed = 0
    for seed in range(30):
        random = Random(seed)
        clients = {f"c{number}": random.choice("abcd") for number in range(8)}
        topics = tuple(
            Topic(id=f"t{number}", source=source, rate=random.uniform(1, 20),
                  subscribers=tuple(sorted(random.sample(sorted(set(clients) - {source}), 2))))
            for number, source in enumerate(sorted(clients)[:5])
        )  # fmt: skip
        instance = _line(30.0, *topics, clients=clients)
        at = homes(instance)
        found = proposals(instance, at, {}, movable=sorted(clients), brokers="abcd", most=4)
        proposed += len(found)
        assert len(found) <= 4
        before, after = (
            InForce(instance, where, {}) for where in (at, at | {each.client: each.after for each in found})
        )
        assert shortfall(after) <= shortfall(before) + 1e-6
        saved, relieved = sum(each.saved for each in found), sum(each.relieved for each in found)
        assert abs(sum(before.loads) - sum(after.loads) - saved) < 1e-6
        assert abs(shortfall(before) - shortfall(after) - relieved) < 1e-6
        assert all(each.saved > 0 or each.relieved > 0 for each in found)
    assert proposed > 30
