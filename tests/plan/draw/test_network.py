"""Pictures are well-formed, show what is asked for, and are the same every time."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.plan.worlds import small
from tieline.plan.arrays import arrays
from tieline.plan.certify import certified, shortest_paths_bound
from tieline.plan.compare import results
from tieline.plan.draw.legend import WIDEST, width_of
from tieline.plan.draw.network import draw, scene_of
from tieline.plan.generate.testset import paper
from tieline.plan.greedy import greedy
from tieline.plan.instance import Instance
from tieline.plan.plan import Plan
from tieline.plan.routes import no_trees


def planned(instance: Instance) -> Plan:
    compact = arrays(instance)
    bound = shortest_paths_bound(compact)
    return certified(compact, greedy(compact), method="greedy", bound=bound, seconds=0.0)


def test_the_scene_is_the_plan() -> None:
    instance = paper("case3", seed=1, tightness=0.3)
    plan = planned(instance)
    assert plan.unmet > 0
    shown = scene_of(instance, plan, None)
    assert sum(shown.missing.values()) == len(shown.unmet) == plan.unmet
    assert shown.used.max() <= 1 + 1e-9
    topics = {topic.key: topic.rate for topic in instance.topics}
    total = sum(topics[route.topic, route.source] * len(route.links) for route in plan.routes)
    assert shown.load.sum() == pytest.approx(total)


def test_a_topic_alone() -> None:
    instance = paper("case3", seed=1)
    plan = planned(instance)
    route = max(plan.routes, key=lambda one: len(one.links))
    shown = scene_of(instance, plan, (route.topic, route.source))
    assert len(shown.arcs) == len(route.links) == (shown.load > 0).sum()


@pytest.mark.parametrize("has_plan", [True, False])
def test_a_picture_is_well_formed_and_repeatable(tmp_path: Path, *, has_plan: bool) -> None:
    instance = paper("case3", seed=1, tightness=0.3)
    plan = planned(instance) if has_plan else None
    first, again = tmp_path / "first.svg", tmp_path / "again.svg"
    draw(instance, plan, first)
    draw(instance, plan, again)
    assert ET.parse(first).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert first.read_bytes() == again.read_bytes()


def test_networks_without_limits_and_without_service(tmp_path: Path) -> None:
    """Odd instances: links that carry anything, nobody served, brokers that are clients too."""
    for seed in range(3):
        instance = small(seed, sparse=True)
        compact = arrays(instance)
        plan = certified(compact, no_trees(compact), method="none", bound=0.0, seconds=0.0)
        draw(instance, plan, tmp_path / f"{seed}.png")
        assert (tmp_path / f"{seed}.png").stat().st_size > 1_000


def test_wider_is_more() -> None:
    assert width_of(0.0, 10.0) < width_of(1.0, 10.0) < width_of(10.0, 10.0) == WIDEST


def test_methods_are_held_against_the_best_bound_of_all() -> None:
    instance = paper("case2", seed=1)
    compact = arrays(instance)
    good = planned(instance)
    bad = certified(compact, no_trees(compact), method="none", bound=0.0, seconds=0.0)
    compared = {result.method: result for result in results({"good": good, "bad": bad})}
    assert compared["bad"].bound == compared["good"].bound == good.bound
    assert compared["good"].gap == good.gap < compared["bad"].gap < 1
