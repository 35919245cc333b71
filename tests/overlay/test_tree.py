"""The elected tree: one for all who see the same links, a way to everybody, and another one when a link is gone."""

from __future__ import annotations

from itertools import combinations
from random import Random

from tieline.overlay.counts import Counts
from tieline.overlay.membership import LinkState, Membership
from tieline.overlay.strategies.tree import Tree, spanning_tree

Links = dict[tuple[int, int], int]
SQUARE: Links = {(1, 2): 1, (2, 3): 1, (3, 4): 1, (1, 4): 1}


def _seen_by(broker: int, links: Links, brokers: int) -> Membership:
    membership = Membership(broker, 1, 1)
    for number in range(1, brokers + 1):
        costs = {
            one if other == number else other: cost for (one, other), cost in links.items() if number in (one, other)
        }
        if number == broker:
            for peer, cost in costs.items():
                membership.connect(peer, cost)
        else:
            membership.heard(LinkState(number, 1, 1, 1, costs))
    return membership


def _random_links(random: Random, brokers: int) -> Links:
    pairs = {(random.randint(1, number - 1), number) for number in range(2, brokers + 1)}
    pairs |= set(random.sample([*combinations(range(1, brokers + 1), 2)], brokers))
    return {pair: random.randint(1, 3) for pair in sorted(pairs)}


def test_whoever_sees_the_same_links_elects_the_same_tree_and_reaches_everybody_on_it() -> None:
    for seed in range(40):
        random = Random(seed)
        brokers = random.randint(4, 9)
        links = _random_links(random, brokers)
        views = {number: _seen_by(number, links, brokers) for number in range(1, brokers + 1)}
        trees = [spanning_tree(view) for view in views.values()]
        assert all(tree == trees[0] for tree in trees)
        assert sum(map(len, trees[0].values())) == 2 * (brokers - 1)
        counts = Counts()
        strategies = {number: Tree(view, counts) for number, view in views.items()}
        for origin in views:
            for destination in views.keys() - {origin}:
                at, path = origin, b""
                while at != destination:
                    # a frame that comes has the path of those who have sent it
                    (to,) = strategies[at].next_brokers(destination, path)
                    at, path = to, path + bytes((at,))
        assert not counts.detours


def test_the_tree_is_the_same_whatever_numbers_brokers_are_meant_by() -> None:
    # every broker has number 1 for itself, and the links of the square cost the same
    trees = set()
    for shift in range(4):
        names = {number: "abcd"[(number - 1 + shift) % 4] for number in range(1, 5)}
        membership = Membership(1, 1, 1, names)
        for peer in (2, 4):
            membership.connect(peer, 1)
        for number in (2, 3, 4):
            costs = {one if other == number else other: 1 for one, other in SQUARE if number in (one, other)}
            membership.heard(LinkState(number, 1, 1, 1, costs))
        tree = spanning_tree(membership)
        trees.add(frozenset(frozenset((names[one], names[other])) for one in tree for other in tree[one]))
    assert len(trees) == 1


def test_it_is_the_tree_of_least_cost() -> None:
    for seed in range(20):
        random = Random(f"cost {seed}")
        links = _random_links(random, 5)
        tree = spanning_tree(_seen_by(1, links, 5))
        cost = sum(price for (one, other), price in links.items() if other in tree[one])
        assert cost == min(
            sum(links[pair] for pair in chosen) for chosen in combinations(links, 4) if _joins_all(chosen)
        )


def _joins_all(pairs: tuple[tuple[int, int], ...]) -> bool:
    found = {1}
    for _ in pairs:
        found |= {end for pair in pairs if found.intersection(pair) for end in pair}
    return len(found) == 5


def test_a_link_that_dies_is_replaced() -> None:
    membership = _seen_by(3, SQUARE, 4)
    tree = Tree(membership, Counts())
    assert tree.branches == (2,)
    assert tree.next_brokers(4, b"") == (2,)
    membership.disconnect(2)
    assert tree.branches == (4,)
    assert tree.next_brokers(2, b"") == (4,)


def test_a_frame_that_came_from_where_the_tree_leads_takes_another_way_and_is_counted() -> None:
    counts = Counts()
    tree = Tree(_seen_by(3, SQUARE, 4), counts)
    assert tuple(tree.next_brokers(4, b"\x02")) == (4,)
    assert counts.detours == 1
    assert not tree.next_brokers(4, b"\x02\x04")
