"""Where nodes stand: apart from each other, at their own places, and the same every time."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tests.plan.worlds import small
from tieline.plan.draw.layout import places
from tieline.plan.generate.testset import mesh, paper
from tieline.plan.instance import Instance, Link, Node


def without_places(instance: Instance) -> Instance:
    return msgspec.structs.replace(
        instance, nodes=tuple(msgspec.structs.replace(node, at=None) for node in instance.nodes)
    )


def chain(length: int) -> Instance:
    return Instance(
        name="chain",
        nodes=tuple(Node(id=str(number), roles=("broker",)) for number in range(length)),
        links=tuple(Link(a=str(at), b=str(at + 1), capacity=1.0, cost=1.0) for at in range(length - 1)),
        topics=(),
    )


@examples(25)
@given(st.integers(0, 500))
def test_every_node_has_a_place_of_its_own(seed: int) -> None:
    at = places(small(seed))
    assert np.isfinite(at).all()
    apart = np.linalg.norm(at[:, None] - at[None], axis=2) + np.eye(len(at))
    assert apart.min() > 0.02


def test_given_places_are_kept() -> None:
    instance = paper("res5", seed=1)
    given_places = np.array([node.at for node in instance.nodes])
    found = places(instance)
    # brokers are hardly pushed; clients may step aside, from each other and from links
    brokers = [number for number, node in enumerate(instance.nodes) if node.is_broker]
    for axis in (0, 1):
        assert np.corrcoef(given_places[brokers, axis], found[brokers, axis])[0, 1] > 0.99


def test_a_chain_is_drawn_as_one() -> None:
    at = places(chain(9))
    order = np.argsort(at @ (at[-1] - at[0]))
    assert order.tolist() == list(range(9))


def test_near_nodes_are_drawn_nearer_than_far_ones() -> None:
    instance = without_places(mesh(60, topics=4, requests=8, seed=3))
    at = places(instance)
    number = {node.id: place for place, node in enumerate(instance.nodes)}
    linked = [np.linalg.norm(at[number[link.a]] - at[number[link.b]]) for link in instance.links]
    everything = np.linalg.norm(at[:, None] - at[None], axis=2)
    assert np.mean(linked) < 0.6 * everything.mean()


@pytest.mark.parametrize("instance", [chain(1), chain(2), Instance(name="none", nodes=(), links=(), topics=())])
def test_very_small_networks(instance: Instance) -> None:
    assert places(instance).shape == (len(instance.nodes), 2)


def test_large_networks_are_laid_out_from_a_few_pivots() -> None:
    instance = without_places(mesh(800, topics=4, requests=8, seed=1))
    at = places(instance)
    assert np.isfinite(at).all() and np.ptp(at, axis=0).min() > 0.2


def test_the_same_every_time() -> None:
    instance = without_places(paper("case3", seed=2))
    assert (places(instance) == places(instance)).all()
