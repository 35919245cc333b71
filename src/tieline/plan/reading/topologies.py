"""Real and synthetic topologies from the package ``topohub``, by name: ``topozoo/Abilene``, ``gabriel/25/0``."""

from __future__ import annotations

import warnings

import numpy as np

from tieline.extras import needs
from tieline.plan.flaws import Flawed
from tieline.plan.generate.network import Network, network
from tieline.plan.reading.graphml import spread_out


def topology(key: str) -> Network:
    """The bare network of a topology; links have no capacity of their own."""
    with needs("plan"):
        import topohub
    try:
        with warnings.catch_warnings():
            # the package leaves the file open until it is collected
            warnings.simplefilter("ignore", ResourceWarning)
            found = topohub.get(key)
    except KeyError as error:
        raise Flawed(f'topohub has no topology "{key}"') from error
    numbers = {node["id"]: number for number, node in enumerate(found["nodes"])}
    names = [str(node.get("name") or node["id"]) for node in found["nodes"]]
    if len(set(names)) < len(names):
        names = [f"{name}.{number}" for number, name in enumerate(names)]
    places = np.array([node.get("pos") or (np.nan, np.nan) for node in found["nodes"]], np.float64)
    pairs = np.array([(numbers[edge["source"]], numbers[edge["target"]]) for edge in found["edges"]], np.int64)
    return network(key, tuple(names), spread_out(places), pairs)
