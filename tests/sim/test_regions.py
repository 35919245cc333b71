"""Regions in virtual time: publications come to all who want them, and nobody knows other regions."""

from __future__ import annotations

from random import Random

from tieline.sim.region_measures import Regions
from tieline.sim.region_network import OVERHEAD


def test_three_regions() -> None:
    world = Regions(3, 5, Random(2), share=0.3)
    spread = world.spread(6, OVERHEAD)
    assert spread.receivers >= 2
    assert (spread.missed, spread.doubled) == (0.0, 0)
    assert spread.messages >= spread.receivers
    for place in world.boxes:
        names = set(place.joined.node.directory.names.values())
        assert {name.partition("-")[0] for name in names} == {place.region}
    assert world.known_bytes(of_gateways=True) > world.known_bytes(of_gateways=False)
    churned = world.churn(4, 4.0)
    assert churned.granted == churned.replaced == 4
    assert churned.judged > 10
    assert (churned.missed, churned.doubled) == (0, 0)
    assert churned.told_bytes > churned.told_elsewhere


def test_without_gateways_other_regions_miss_it() -> None:
    world = Regions(2, 4, Random(3), share=0.4)
    for gateway in world.gateways:
        gateway.end()
    assert world.spread(3, OVERHEAD).missed > 0
