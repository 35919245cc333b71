"""An instance from whatever a user names: our own document, an SNDlib or GraphML file, a topology by name.

Documents and SNDlib files hold demands.  GraphML files and topologies hold only a network; clients, topics and, where
unknown, capacities are drawn from a seed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tieline.plan.flaws import Flawed
from tieline.plan.generate.clients import Population, populated
from tieline.plan.generate.network import BrokerNetwork
from tieline.plan.instance import Instance
from tieline.plan.reading import document, sndlib
from tieline.plan.reading.networks import read_graphml, topology

#: Before the name of a topology, where a file is expected.
TOPOLOGY = "topohub:"


def load(
    name: str, *, topics: int | None = None, requests: int | None = None, seed: int = 0, tightness: float = 2.0
) -> Instance:
    """The instance that a file or topology holds; topics and requests default to one and three per two brokers."""
    bare = bare_network(name)
    if bare is not None:
        return _dressed(bare, topics, requests, seed, tightness)
    path = Path(name)
    if path.suffix == ".json":
        return document.read(path)
    if path.suffix == ".txt":
        return sndlib.read(path)
    raise Flawed(
        f"{name}: a name that ends in .json, .graphml or .txt (SNDlib), or begins with {TOPOLOGY}, is expected"
    )


def bare_network(name: str) -> BrokerNetwork | None:
    """The network that a GraphML file or a topology holds; None if the name is that of something else."""
    if name.startswith(TOPOLOGY):
        return topology(name.removeprefix(TOPOLOGY))
    if Path(name).suffix == ".graphml":
        return read_graphml(Path(name))
    return None


def _dressed(bare: BrokerNetwork, topics: int | None, requests: int | None, seed: int, tightness: float) -> Instance:
    brokers = len(bare.ids)
    if brokers == 0:
        raise Flawed(f"{bare.name}: the network has no nodes")
    topics = max(1, brokers // 2) if topics is None else topics
    requests = 3 * topics if requests is None else requests
    publishers = max(1, min(topics, brokers))
    subscribers = max(3, brokers)
    population = Population(
        publishers=publishers,
        subscribers=subscribers,
        topics=topics,
        requests=requests,
        client_links=publishers + subscribers,
        tightness=tightness,
    )
    try:
        return populated(bare, population, np.random.default_rng(seed))
    except ValueError as error:
        raise Flawed(f"{bare.name}: {error}") from error
