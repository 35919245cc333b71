"""Histories by seed: the carrier keeps its promise under every strategy, and the kit notices one that does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any  # Any: what the kit makes a broker of

import pytest

from tests.kits import overlay_world
from tests.kits.check_overlay import Kind, Verdict, check_overlay, judge, run_history
from tests.kits.interpreted import replaces_methods
from tests.kits.overlay_world import Broker, Choice, Make, World
from tieline.core.timers import Timers
from tieline.overlay.carrier.carrier import Carrier
from tieline.overlay.carrier.durable import Ends
from tieline.overlay.carrier.streams import Incoming
from tieline.overlay.carrier.taker import Deliver
from tieline.overlay.frames.frame import TAG_BITS, Data, is_assured
from tieline.overlay.interests.substitutes import Substitutes
from tieline.overlay.links.links import Connection, Link
from tieline.overlay.links.patience import Patience
from tieline.overlay.node import Node
from tieline.overlay.strategies import BASELINES, STRATEGIES
from tieline.overlay.strategies.path import Path

PATIENCE = Patience(ping_s=0.5, suspect_s=1.0, down_s=1.5)
NARROW = replace(PATIENCE, queue_bytes=1_000, credit_bytes=1_000, least_bytes=500, segment=100)
FAULTY = tuple(kind for kind in Kind if kind is not Kind.CALM)


def make(name: str) -> Make:
    """How a broker is made that chooses links by a strategy."""
    return partial(_node, STRATEGIES[name])


def _node(  # what a broker is made of
    strategy: Choice,
    name: str,
    ends: Ends,
    deliver: Deliver,
    timers: Timers,
    incarnation: int,
    life: int,
    carrier: type[Carrier] = Carrier,
    patience: Patience | None = None,
) -> Node:
    return Node(
        name,
        ends,
        deliver,
        timers,
        incarnation=incarnation,
        life=life,
        patience=patience or PATIENCE,
        strategy=strategy,
        carrier=carrier,
    )


@pytest.mark.parametrize("kind", Kind)
def test_nothing_is_lost_doubled_or_out_of_order_on_shortest_paths(kind: Kind) -> None:
    assert check_overlay(make("path"), kind, range(12)) > 1_000


@pytest.mark.parametrize("kind", Kind)
def test_nor_by_flooding(kind: Kind) -> None:
    assert check_overlay(make("flood"), kind, range(5)) > 400


@pytest.mark.parametrize("kind", Kind)
def test_nor_along_an_elected_tree(kind: Kind) -> None:
    assert check_overlay(make("tree"), kind, range(5)) > 400


@pytest.mark.parametrize("kind", Kind)
def test_nor_from_finger_to_finger_around_the_ring(kind: Kind) -> None:
    assert check_overlay(make("ring"), kind, range(5)) > 400


@pytest.mark.parametrize("kind", Kind)
def test_nor_when_strategies_change_in_the_middle_of_it(kind: Kind) -> None:
    assert check_overlay(make("path"), kind, range(5), switching=tuple(STRATEGIES.values())) > 400


def test_nor_where_neighbours_go_on_with_different_strategies() -> None:
    # what one sent ended blind at another, again and again; and what had QoS 0 was given up there
    assert check_overlay(make("path"), Kind.CALM, (100_075, 42, 57, 103), switching=tuple(STRATEGIES.values())) > 400


def test_nor_with_qos_0_on_a_way_that_is_slower_than_another() -> None:
    # what came by a shorter way was taken for a sign that the rest is lost
    assert check_overlay(make("ring"), Kind.CALM, (15, 75)) > 200


def test_what_waits_at_a_thin_link_is_not_sent_again_and_again() -> None:
    # links were full of copies for longer than forty seconds
    assert check_overlay(make("path"), Kind.PARTITIONS, (60,), switching=tuple(STRATEGIES.values())) > 100


def test_nor_what_is_accepted_by_who_began_anew_while_nobody_could_hear_of_that() -> None:
    # who was granted something was alone, and had an echo of a start that was over
    assert check_overlay(make("path"), Kind.VOLATILE, (100_017,), switching=tuple(STRATEGIES.values())) > 200


@pytest.mark.slow
@pytest.mark.parametrize("kind", Kind)
def test_a_thousand_histories_with_changing_strategies(kind: Kind) -> None:
    check_overlay(make("path"), kind, range(1_000), switching=tuple(STRATEGIES.values()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_thousand_histories(name: str, kind: Kind) -> None:
    check_overlay(make(name), kind, range(1_000))


@pytest.mark.parametrize("kind", FAULTY)
def test_nor_where_links_are_full_and_frames_go_in_pieces(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay_world, "_KERNEL", 200)
    assert _check_full(kind, range(2)) > 150


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAULTY)
def test_a_thousand_histories_with_full_links(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay_world, "_KERNEL", 200)
    _check_full(kind, range(1_000))


def crowded(*args: Any) -> Node:
    """A broker that may say three entries, and ten bytes of conditions on one filter."""
    node = _node(Path, *args)
    node.interests.substitutes = Substitutes(entries=3, condition_size=10)
    return node


@pytest.mark.parametrize("kind", FAULTY)
def test_nor_where_more_is_wanted_than_can_be_said(kind: Kind) -> None:
    assert check_overlay(crowded, kind, range(4)) > 400


def _check_full(kind: Kind, seeds: Iterable[int]) -> int:
    """Histories in which links take a thousand bytes of each level, and pieces of a hundred."""
    nodes: list[Node] = []

    def narrow(*args: Any) -> Node:
        nodes.append(partial(_node, Path, patience=NARROW)(*args))
        return nodes[-1]

    deliveries = check_overlay(narrow, kind, seeds)
    assert sum(node.counts.turned_away for node in nodes) > 0
    assert sum(node.counts.credits for node in nodes) > 0
    return deliveries


def test_a_history_is_its_seed() -> None:
    one, other = (run_history(make("path"), Kind.CRASHES, 3) for _ in range(2))
    assert one == other


# -- carriers that are broken on purpose


class Unnumbered(Carrier):
    """Takes whatever comes, as it comes."""

    def _take(self, data: Data, where: int, now: float) -> None:
        if not is_assured(data.lane):
            super()._take(data, where, now)
            return
        first, key = where >> TAG_BITS, (data.origin, data.lane)
        taker = self.taker
        stream = taker.incoming.setdefault(key, Incoming(0, self._counts))
        stream.position = max(stream.position, first + data.count - 1)
        taker._deliver(*key, data.payloads)
        taker._moved[data.origin, self.incarnations.last(data.origin), data.lane] = stream


class Endless(Carrier):
    """Takes a message for settled as soon as it has left: custody of the hops is all there is."""

    def forward(self, data: Data, now: float) -> None:
        super().forward(data, now)
        if data.origin == self._broker and is_assured(data.lane):
            for destination, where in data.destinations.items():
                stream = self.sender.outgoing[destination, data.lane]
                first = (where >> TAG_BITS) + stream.owing.base
                if stream.sent >= first + data.count - 1:
                    self.sender.settle(destination, stream, first + data.count - 1)


class Astray(Path):
    """Does not look at the path: the first neighbour is always right."""

    name = "astray"

    def next_brokers(self, destination: int, path: bytes, data: Data | None = None) -> Sequence[int]:
        return tuple(self._membership.neighbours)[:1]


def _verdicts(carrier: type[Carrier], kind: Kind, count: int) -> Iterator[Verdict]:
    """The verdicts on some histories, one after the other, as long as somebody asks."""
    make = partial(_node, Path, carrier=carrier)
    return (run_history(make, kind, seed) for seed in range(count))


@replaces_methods
def test_the_kit_notices_a_carrier_without_numbers() -> None:
    verdicts = list(_verdicts(Unnumbered, Kind.LINKS, 8))
    assert any(verdict.doubled for verdict in verdicts)
    assert any(verdict.misordered for verdict in verdicts)


@replaces_methods
def test_the_kit_notices_a_carrier_without_ends() -> None:
    verdicts = _verdicts(Endless, Kind.CRASHES, 12)
    assert any(verdict.lost for verdict in verdicts)


@replaces_methods
def test_the_kit_notices_links_that_forget_what_was_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets_what_was_under_way(link: Link, received: int) -> None:
        link._custody.clear()
        link._number = received

    monkeypatch.setattr(Link, "resumed", forgets_what_was_under_way)
    monkeypatch.setattr(Link, "hand_out", lambda link: [])
    verdicts = _verdicts(Endless, Kind.LINKS, 8)
    assert any(verdict.lost for verdict in verdicts)


@replaces_methods
def test_the_kit_notices_a_strategy_that_ignores_the_path() -> None:
    assert run_history(partial(_node, Astray), Kind.CALM, 1).loops


@replaces_methods
def test_the_papers_broadcast_loses_where_brokers_believe_in_different_trees() -> None:
    literal = partial(_node, BASELINES["broadcast"], carrier=Endless)
    assert any(run_history(literal, Kind.LINKS, seed).lost for seed in range(8))
    assert not set(BASELINES) & set(STRATEGIES)


@replaces_methods
def test_a_wrong_history_tells_its_story() -> None:
    wrong = next(verdict for verdict in _verdicts(Unnumbered, Kind.LINKS, 8) if verdict.doubled)
    story = str(wrong)
    assert f"links history {wrong.seed}:" in story
    assert "is cut for" in story
    assert "doubled: " in story
    with pytest.raises(AssertionError, match=f"links history {wrong.seed}:"):
        check_overlay(partial(_node, Path, carrier=Unnumbered), Kind.LINKS, [wrong.seed])


def test_an_echo_counts_for_the_start_that_sent_it() -> None:
    world = World(Random(1), make("path"))
    world.brokers[2] = Broker(2, is_volatile=True)
    for number in (1, 2, 3):
        world.start(number)
    world.join(1, 2, 0.01, 125_000.0)
    world.join(1, 3, 0.01, 125_000.0)
    to_volatile, to_silent = world.cables
    world.clock.run_for(1)
    world.silence(to_silent, 3, 60)
    world.subscribe(1, "alarm/fire")
    world.clock.run_for(0.2)
    # the second broker has echoed, and begins anew where nobody hears of it; then the first one waits for nobody
    world.cut(to_volatile, 3)
    world.crash(2, 0.2)
    world.clock.run_for(0.3)
    world.cut(to_silent, 2)
    world.clock.run_for(1)
    granted = world.brokers[1].filters["alarm/fire"]
    assert granted is not None
    at, echoed = granted
    assert at > world.brokers[2].began[1]
    assert echoed == {2: 1}
    world.publish(2, 7, "alarm/fire", 1, 3, 1)
    verdict = judge(world, Kind.VOLATILE)
    assert world.messages[0].is_accepted
    assert not verdict.is_wrong, str(verdict)
    # had the first one known of that start, it should have waited for its echo
    world.brokers[1].filters["alarm/fire"] = at, {2: 2}
    assert judge(world, Kind.VOLATILE).lost


def test_a_connection_says_what_it_is() -> None:
    assert repr(Connection(3, 0.0)) == "<Connection 3 greeting to None>"
