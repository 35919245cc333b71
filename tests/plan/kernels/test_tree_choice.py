from __future__ import annotations

import itertools

import numpy as np
import pytest

from tieline.plan.kernels.chance import seeded
from tieline.plan.kernels.tree_choice import Candidates, choose_trees, empty_placement


def some_stock(seed: int, *, topics: int = 5, trees: int = 4, links: int = 6) -> Candidates:
    """Trees at random; the last one of every topic uses no link, so that some choice always fits."""
    rng = np.random.default_rng(seed)
    cost, sets = [], []
    for _ in range(topics):
        own = sorted(
            (float(rng.integers(1, 30)), tuple(rng.permutation(links)[: rng.integers(1, 4)])) for _ in range(trees)
        )
        cost += [each for each, _ in own] + [100.0]
        sets += [list(used) for _, used in own] + [[]]
    uses = np.zeros((len(cost), links), np.bool_)
    for tree, used in enumerate(sets):
        uses[tree, used] = True
    return Candidates(
        first=np.arange(topics + 1, dtype=np.int64) * (trees + 1),
        cost=np.array(cost),
        likely=np.concatenate([topic * (trees + 1) + rng.permutation(trees + 1) for topic in range(topics)]),
        link_first=np.concatenate(([0], np.cumsum([len(used) for used in sets]))).astype(np.int64),
        link=np.array([link for used in sets for link in used], np.int64),
        uses=uses,
        rate=rng.uniform(0.5, 3.0, topics),
        capacity=rng.uniform(1.0, 6.0, links),
    )


def load(
    candidates: Candidates, chosen: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    total = np.zeros(len(candidates.capacity))
    for topic, tree in enumerate(chosen):
        total += candidates.rate[topic] * candidates.uses[tree]
    return total


def cheapest(candidates: Candidates) -> float:
    """The optimum by trying everything."""
    best = np.inf
    ranges = [range(a, b) for a, b in itertools.pairwise(candidates.first)]
    for choice in itertools.product(*ranges):
        chosen = np.array(choice)
        if (load(candidates, chosen) <= candidates.capacity).all():
            best = min(best, float(candidates.cost[chosen].sum()))
    return best


def chosen_trees(
    candidates: Candidates, seed: int, moves: int = 2_000
) -> tuple[float, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    chosen = candidates.first[1:] - 1
    best = chosen.copy()
    value = choose_trees(candidates, empty_placement(candidates), chosen.copy(), best, seeded(seed), moves, 10.0, 0.5)
    return value, best


def test_the_choice_fits_costs_what_it_says_and_is_the_best_there_is() -> None:
    for seed in range(60):
        candidates = some_stock(seed)
        value, best = chosen_trees(candidates, seed)
        assert (load(candidates, best) <= candidates.capacity * (1 + 1e-12)).all(), seed
        assert value == pytest.approx(candidates.cost[best].sum()), seed
        assert value == pytest.approx(cheapest(candidates)), seed


def test_every_topic_has_one_of_its_own_trees() -> None:
    for seed in range(20):
        candidates = some_stock(seed, topics=14, trees=6, links=9)
        _, best = chosen_trees(candidates, seed)
        assert (best >= candidates.first[:-1]).all()
        assert (best < candidates.first[1:]).all()


def test_a_start_is_never_made_worse() -> None:
    for seed in range(20):
        candidates = some_stock(seed, topics=14, trees=6, links=9)
        value, best = chosen_trees(candidates, seed, moves=3_000)
        again = best.copy()
        assert (
            choose_trees(candidates, empty_placement(candidates), best.copy(), again, seeded(seed + 1), 50, 100.0, 50.0)
            <= value + 1e-9
        )


def test_the_same_seed_gives_the_same_choice() -> None:
    candidates = some_stock(3, topics=14, trees=6, links=9)
    first, again = chosen_trees(candidates, 5), chosen_trees(candidates, 5)
    assert first[0] == again[0]
    assert (first[1] == again[1]).all()


def test_what_is_likely_decides_how_soon_and_not_how_well() -> None:
    candidates = some_stock(4)
    backwards = candidates._replace(
        likely=np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in itertools.pairwise(candidates.first)])
    )
    assert (
        chosen_trees(candidates, 1)[0]
        == chosen_trees(backwards, 1, moves=20_000)[0]
        == pytest.approx(cheapest(candidates))
    )


def test_one_topic_and_one_tree_each_are_no_trouble() -> None:
    for topics, trees in ((1, 3), (6, 0), (2, 1)):
        candidates = some_stock(1, topics=topics, trees=trees)
        assert chosen_trees(candidates, 2, moves=300)[0] == pytest.approx(cheapest(candidates))
