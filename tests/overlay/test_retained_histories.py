"""Histories by seed: joined brokers agree on what is retained, and the kit notices those that do not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from tests.kits.check_retained import Kind, check_retained, judge, run_history
from tests.kits.interpreted import replaces_methods
from tests.kits.overlay_world import Broker
from tests.kits.retained_world import RetainedWorld
from tieline.core.account import Account
from tieline.overlay.joined import Joined
from tieline.overlay.retained.convergence import Convergence
from tieline.overlay.retained.retained_compare import Comparing
from tieline.overlay.retained.retained_sync import RetainedSync
from tieline.overlay.retained.versions import Versions


@pytest.mark.parametrize("kind", Kind)
def test_all_brokers_retain_the_newest_of_each_topic_and_subscribers_have_it(kind: Kind) -> None:
    assert check_retained(kind, range(4)) > 60


def test_nobody_is_owed_what_has_expired_on_its_way() -> None:
    # its time was over in the stream that leads to a subscriber, and brokers had not forgotten it yet
    join = partial(Joined, strategy="flood")
    assert check_retained(Kind.LINKS, (100_011,), join) > 20


def test_who_subscribes_where_a_topic_was_cleared_need_not_hear_of_that() -> None:
    # of two brokers that were apart the one that cleared it had the later clock, by hours
    assert check_retained(Kind.CRASHES, (400_116,)) > 10


def test_who_had_nothing_when_its_broker_heard_of_a_clear_need_not_hear_of_it() -> None:
    # what came live later was older by its clock; its broker had begun again without a store, and knew nothing before
    assert check_retained(Kind.VOLATILE, (2_007,), partial(Joined, strategy="flood")) > 10


def test_who_has_cleared_a_topic_cannot_be_told_by_what_comes() -> None:
    # another broker had, and the kit took it for the one whose messages come in order
    assert check_retained(Kind.VOLATILE, (300_230,), partial(Joined, strategy="ring")) > 10


def test_who_has_a_message_that_expired_hears_that_its_topic_was_cleared() -> None:
    # the clear came by a neighbour, when the message had been forgotten here
    assert check_retained(Kind.LINKS, (22,), partial(Joined, strategy="ring")) > 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", Kind)
def test_a_thousand_histories_of_each_kind(kind: Kind) -> None:
    assert check_retained(kind, range(4, 1_004)) > 20_000


def _last_to_come(self: Versions, version: int, than: int) -> bool:
    return version != than


def _never(self: object, *_args: object, **_kwargs: object) -> None:
    pass


#: What is broken, by its name: a method, and what stands in its place.
MUTANTS: dict[str, tuple[type, str, Callable[..., object], Kind]] = {
    "the write that came last wins": (Versions, "is_newer", _last_to_come, Kind.LINKS),
    "brokers do not compare what they know": (Comparing, "begin", _never, Kind.LINKS),
    "changes are not told": (RetainedSync, "_changed", _never, Kind.CALM),
    "clients do not get what comes late": (Convergence, "_give", _never, Kind.LINKS),
    "clocks and versions are forgotten": (Convergence, "notes", lambda _self, _now: iter(()), Kind.CRASHES),
}


@replaces_methods
@pytest.mark.parametrize("name", MUTANTS)
def test_the_kit_notices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, method, replacement, kind = MUTANTS[name]
    monkeypatch.setattr(owner, method, replacement)
    assert any(run_history(kind, seed).wrong for seed in range(20))


@pytest.mark.parametrize("origin", [1, 2])
def test_clients_of_a_broker_without_a_store_get_what_its_earlier_start_had(origin: int) -> None:
    # its earlier start had accepted it, or was sent it live: nobody sends that to this one
    world = RetainedWorld(Random(1))
    world.brokers[1] = Broker(1, is_volatile=True)
    world.start(1)
    world.start(2)
    world.join(1, 2, 0.01, 125_000.0)
    world.clock.run_for(1)
    world.read(1, "alarm")
    world.clock.run_for(0.5)
    world.write(origin, "alarm", b"fire", 1, None)
    world.clock.run_for(2)
    assert world.readers[0].got == [("alarm", b"fire", False)]
    world.crash(1, 0.5)
    world.clock.run_for(0.5001)
    # nobody is there yet, and nothing is retained
    assert world.readers[0].is_granted
    assert not world.readers[0].got
    verdict = judge(world, Kind.VOLATILE)
    assert not verdict.wrong, str(verdict)
    assert world.readers[0].got == [("alarm", b"fire", False)]
    world.write(2, "alarm", b"out", 1, None)
    world.clock.run_for(1)
    assert world.readers[0].got[1:] == [("alarm", b"out", False)]


def test_nor_do_they_get_twice_or_late_what_was_owed_to_its_earlier_start() -> None:
    world = RetainedWorld(Random(1))
    world.brokers[1] = Broker(1, is_volatile=True)
    for number in (1, 2, 3):
        world.start(number)
    world.join(1, 2, 0.01, 125_000.0)
    world.join(2, 3, 0.01, 125_000.0)
    world.clock.run_for(1)
    world.read(1, "alarm")
    world.clock.run_for(0.5)
    world.crash(1, 4)
    for text in (b"one", b"two", b"three"):
        world.write(3, "alarm", text, 1, None)
    assert all(write.live == {1, 3} for write in world.writes)
    world.clock.run_for(3)
    # its neighbour knows of the last one, and who owes all three is cut off
    world.cut(world.cables[1], 3)
    world.clock.run_for(2)
    assert world.readers[0].got == [("alarm", b"three", False)]
    verdict = judge(world, Kind.VOLATILE)
    assert not verdict.wrong, str(verdict)
    assert world.readers[0].got == [("alarm", b"three", False)]
    joined = world.places[1].joined
    assert joined is not None
    assert joined.node.counts.overtaken == 3


def test_they_hear_that_something_was_cleared_before_they_were_there() -> None:
    # a message that was older by its clock had come live meanwhile
    assert check_retained(Kind.VOLATILE, (200_021,), partial(Joined, strategy="tree")) > 10
    # it came behind the news of that, which nobody had been given, and that came live at last
    assert check_retained(Kind.VOLATILE, (600_015,), partial(Joined, strategy="flood")) > 10


def test_what_comes_late_is_given_to_everybody_who_is_subscribed() -> None:
    world = RetainedWorld(Random(1))
    world.start(1)
    world.start(2)
    for filter_ in ("alarm", "#", "alarm", "+"):
        world.read(1, filter_)
    world.write(2, "alarm", b"fire", 1, None)
    assert all(reader.is_granted for reader in world.readers)
    world.join(1, 2, 0.01, 125_000.0)
    verdict = judge(world, Kind.LINKS)
    assert not verdict.wrong, str(verdict)
    assert [reader.got for reader in world.readers] == [[("alarm", b"fire", False)]] * 4


def _cut_while_something_expires() -> RetainedWorld:
    """Somebody is subscribed behind a link that is cut for longer than lasts what is retained meanwhile."""
    world = RetainedWorld(Random(1))
    world.start(1)
    world.start(2)
    world.join(1, 2, 0.01, 125_000.0)
    world.clock.run_for(1)
    world.read(2, "alarm")
    world.clock.run_for(0.5)
    assert world.readers[0].is_granted
    world.cut(world.cables[0], 3)
    world.write(1, "alarm", b"fire", 1, 1)
    world.clock.run_for(4)
    assert not world.readers[0].got
    return world


def test_what_expires_on_its_way_is_recorded_by_who_has_it_then() -> None:
    world = _cut_while_something_expires()
    verdict = judge(world, Kind.LINKS)
    assert not verdict.wrong, str(verdict)
    assert world.says_expired(world.writes[0], world.readers[0])
    # and where nothing is in the way, nothing may come so late
    assert judge(world, Kind.CALM).wrong


@replaces_methods
def test_the_kit_notices_that_something_is_missing_and_nobody_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Account, "drop", _never)
    assert judge(_cut_while_something_expires(), Kind.LINKS).wrong


@replaces_methods
def test_the_kit_notices_that_a_message_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    merge = Convergence.merge

    def forgetful(self: Convergence, item: object, *args: object, **kwargs: object) -> None:
        merge(self, item._replace(live=()), *args, **kwargs)  # type: ignore[attr-defined, arg-type]

    monkeypatch.setattr(Convergence, "merge", forgetful)
    assert any(run_history(Kind.LINKS, seed).wrong for seed in range(20))


def test_a_history_is_the_same_each_time() -> None:
    one, other = (run_history(Kind.CRASHES, 3, partial(Joined)) for _ in range(2))
    assert one.story == other.story
