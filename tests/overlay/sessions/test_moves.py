"""Histories of whole brokers between which clients move: nothing lost, nothing doubled, nothing out of order."""

from __future__ import annotations

from random import Random

import pytest

from tests.kits.check_moves import Kind, check_moves, run_history
from tests.kits.interpreted import replaces_methods
from tests.kits.moves_world import MovesWorld
from tieline.overlay.sessions.arrivals import Arrivals
from tieline.overlay.sessions.errands import Mark
from tieline.overlay.sessions.passage import Passage


@pytest.mark.parametrize("kind", list(Kind))
def test_clients_find_their_sessions_at_any_broker(kind: Kind) -> None:
    moves, deliveries = check_moves(kind, range(3))
    assert moves > 15
    assert deliveries > 150


@pytest.mark.parametrize(
    ("kind", "seed", "strategy"),
    [
        # the old home crashed before it said that the client may be let in
        (Kind.CRASHES, 1_005, "tree"),
        # publishers moved as well: what they sent before came straight, and what they sent later in a tail
        (Kind.CRASHES, 1_058, "path"),
        (Kind.LINKS, 1_049, "tree"),
        # a publisher moved on while what it had published two brokers ago was on its way
        (Kind.LINKS, 1_054, "ring"),
        # an errand that was lost with a link was repeated when its client had been let in without its session
        (Kind.LINKS, 2_008, "flood"),
        # news of a later session came before the one that it outranks, and both were kept
        (Kind.ISLANDS, 70_040, "ring"),
        # the home in the middle of a chain went, and the one before it waited for a day
        (Kind.ISLANDS, 70_005, "path"),
        # a session had come back before its journeys were over, and the next life of its broker took it for gone
        (Kind.RETURNS, 2, "path"),
        (Kind.RETURNS, 27, "path"),
    ],
)
def test_what_has_gone_wrong_once(kind: Kind, seed: int, strategy: str) -> None:
    check_moves(kind, [seed], strategy=strategy)


@pytest.mark.parametrize("strategy", ["tree", "ring", "flood"])
def test_they_do_so_whatever_links_are_chosen(strategy: str) -> None:
    moves, _ = check_moves(Kind.LINKS, range(3), strategy=strategy)
    assert moves > 15


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["path", "tree", "ring", "flood"])
@pytest.mark.parametrize("kind", list(Kind))
def test_clients_find_their_sessions_in_hundreds_of_histories(kind: Kind, strategy: str) -> None:
    check_moves(kind, range(3, 150), strategy=strategy)


@replaces_methods
def test_the_kit_notices_when_the_new_home_takes_what_precedes_its_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Arrivals.mark

    def forget(self: Arrivals, errand: Mark, source: int, now: float) -> None:
        real(self, errand._replace(lanes={}), source, now)

    monkeypatch.setattr(Arrivals, "mark", forget)
    assert _some_are_wrong()


@replaces_methods
def test_the_kit_notices_when_nothing_is_held_for_the_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Passage.judge

    def hurry(self: Passage, origin: int, lane: int, number: int) -> int:
        self.is_open = True
        return real(self, origin, lane, number)

    monkeypatch.setattr(Passage, "judge", hurry)
    assert _some_are_wrong()


def _some_are_wrong() -> bool:
    return any(run_history(Kind.CALM, seed).is_wrong for seed in range(20))


def test_a_new_session_of_which_its_client_did_not_hear_is_the_session_that_there_is() -> None:
    world = MovesWorld(Random(1))
    for number in (1, 2):
        world.start(number)
    world.join(1, 2, 0.01, 125_000.0)
    world.clock.run_for(2.0)
    client = world.client("s")
    client.wants = {"x": 1}
    client.connect(world.home(1))
    world.clock.run_for(2.0)
    assert client.granted
    world.crash(1, 1_000.0)
    client.is_deaf = True
    client.connect(world.home(2))
    world.clock.run_for(10.0)  # nobody can fetch its session, and CONNACK is not read
    client.is_deaf = False
    client.connect(world.home(2))
    world.clock.run_for(2.0)
    assert client.sessions == [False, True]
    core = world.home(2).core
    assert core is not None and len(core.sessions["s"].subscriptions) == 0


@pytest.mark.parametrize("order", ["move old new", "move new old", "old move new", "new move old", "old new move"])
def test_a_move_is_over_although_a_broker_was_away_that_is_then_gone_for_good(order: str) -> None:
    """Nobody said that nothing more would come of it: both homes looked after the session for a day."""
    world = MovesWorld(Random(1))
    for number in (1, 2, 3):
        world.start(number)
    world.join(1, 2, 0.01, 125_000.0)
    world.join(2, 3, 0.01, 125_000.0)
    world.clock.run_for(2.0)
    client = world.client("s")
    client.wants = {"x": 1}
    client.connect(world.home(1))
    world.clock.run_for(2.0)
    world.crash(3, 1_000_000.0)
    world.clock.run_for(8.0)
    for what in order.split():
        if what == "move":
            client.connect(world.home(2))
            world.clock.run_for(0.3)
            continue
        home = world.home({"old": 1, "new": 2}[what])
        assert home.joined is not None
        home.joined.writing_off.begin(home.joined.node.number_of(world.home(3).name))
        world.serve(home)
    world.clock.run_for(10.0)
    assert client.sessions == [False, True]
    for number in (1, 2):
        joined = world.home(number).joined
        assert joined is not None and not len(joined.moves.passages)


@pytest.mark.parametrize("joins", [1, 2, 3])
@pytest.mark.parametrize("order", ["move new", "new move"])
def test_what_a_new_broker_accepts_while_a_session_moves_comes_to_it(order: str, joins: int) -> None:
    """The old home took it for one that had lost everything, and nobody asked it for its mark until a restart."""
    world = MovesWorld(Random(1))
    for number in (1, 2, 3):
        world.start(number)
    world.join(1, 2, 0.01, 125_000.0)
    world.join(1, 3, 0.01, 125_000.0)
    world.clock.run_for(2.0)
    client, publisher = world.client("s"), world.client("p")
    client.wants = {"x": 1}
    client.connect(world.home(1))
    world.clock.run_for(2.0)
    world.cut(world.cables[1], 6.0)  # the move goes on as long as one origin is away
    for what in order.split():
        if what == "move":
            client.connect(world.home(2))
        else:
            world.start(4)
            world.join(4, joins, 0.01, 125_000.0)
        world.clock.run_for(1.0)
    publisher.connect(world.home(4))
    for number in range(80):
        if number == 30:
            world.crash(2, 0.3)
        if number > 30 and not client.is_in:
            client.connect(world.home(2))
        publisher.publish("x", str(number).encode(), 1)
        world.clock.run_for(0.2)
    world.clock.run_for(10.0)
    assert client.sessions[:2] == [False, True] and all(client.sessions[1:])
    assert len(publisher.accepted) == 80
    assert {payload for payload, _, _ in client.got} == {str(number).encode() for number in range(80)}
    for number in world.brokers:
        joined = world.home(number).joined
        assert joined is not None and not len(joined.moves.passages)


def test_a_home_that_is_killed_knows_still_which_broker_is_gone_for_good() -> None:
    world = MovesWorld(Random(1))
    for number in (1, 2, 3, 4):
        world.start(number)
    for number in (2, 3, 4):
        world.join(1, number, 0.01, 125_000.0)
    world.clock.run_for(2.0)
    client = world.client("s")
    client.wants = {"x": 1}
    client.connect(world.home(1))
    world.clock.run_for(2.0)
    world.crash(3, 1_000_000.0)
    world.cut(world.cables[2], 14.0)  # the move goes on after the other one was forgotten
    world.clock.run_for(8.0)
    client.connect(world.home(2))
    world.clock.run_for(0.5)
    for number in (1, 2):
        home = world.home(number)
        assert home.joined is not None
        home.joined.writing_off.begin(home.joined.node.number_of(world.home(3).name))
        world.serve(home)
        world.clock.run_for(0.5)
    world.crash(2, 0.3)
    world.clock.run_for(20.0)
    for number in (1, 2):
        joined = world.home(number).joined
        assert joined is not None and not len(joined.moves.passages)
