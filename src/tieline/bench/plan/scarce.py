"""Small instances at random in which capacity is scarce and subscribers share ways: a test for bounds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from tieline.plan.flaws import checked
from tieline.plan.instance import Instance, Link, Node, Topic


def scarce_instances(count: int) -> Iterator[Instance]:
    """So many instances; the first ones are the same whatever the count."""
    for seed in range(count):
        yield scarce(seed)


def scarce(seed: int) -> Instance:
    """Three to six brokers, two sources, three or four subscribers; a link has room for one or two of the topics."""
    rng = np.random.default_rng([seed, 2024])
    brokers = [f"b{number}" for number in range(int(rng.integers(3, 7)))]
    publishers = [f"p{number}" for number in range(2)]
    subscribers = [f"s{number}" for number in range(int(rng.integers(3, 5)))]
    pairs = {(brokers[int(rng.integers(at))], brokers[at]): None for at in range(1, len(brokers))}
    for at, one in enumerate(brokers):
        pairs.update({(one, other): None for other in brokers[at + 1 :] if rng.random() < 0.4})
    for client in (*publishers, *subscribers):
        seen = rng.permutation(len(brokers))[: int(rng.integers(1, 3))]
        pairs.update({(client, brokers[int(at)]): None for at in seen})
    links = tuple(Link(a=a, b=b, capacity=float(rng.integers(2, 7)), cost=float(rng.integers(1, 10))) for a, b in pairs)
    return checked(
        Instance(
            name=f"scarce-{seed}",
            nodes=(
                *(Node(id=name, roles=("broker",)) for name in brokers),
                *(Node(id=name, roles=("publisher",)) for name in publishers),
                *(Node(id=name, roles=("subscriber",)) for name in subscribers),
            ),
            links=links,
            topics=tuple(_topic(number, publishers, subscribers, rng) for number in range(int(rng.integers(2, 5)))),
            unmet_cost=float(rng.integers(10, 60)) if rng.random() < 0.5 else None,
        )
    )


def _topic(number: int, publishers: list[str], subscribers: list[str], rng: Generator) -> Topic:
    wanted = rng.permutation(len(subscribers))[: int(rng.integers(1, len(subscribers) + 1))]
    return Topic(
        id=f"t{number}",
        source=publishers[number % len(publishers)],
        rate=float(rng.integers(1, 4)),
        subscribers=tuple(subscribers[int(at)] for at in sorted(wanted)),
    )
