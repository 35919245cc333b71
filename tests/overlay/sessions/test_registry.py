"""Who keeps which session, as brokers tell each other."""

from __future__ import annotations

import pytest

from tieline.overlay.sessions import registry as registry_module
from tieline.overlay.sessions.errands import Homes
from tieline.overlay.sessions.registry import ENTRY_BYTES, KEPT, OVER, STEP, Registry, digest_of


def test_many_sessions_of_one_broker_are_told_in_steps_that_others_soon_know() -> None:
    mine, theirs = Registry(), Registry()
    for number in range(10_000):
        mine.put(f"client {number}", number + 1, is_kept=True)
    first = mine.next_step(2, 1)
    assert max(len(homes.entries) for homes in first) <= STEP
    for homes in first:
        assert theirs.learn(1, homes, 1_000_000, is_limited=False) == []
    assert theirs.find("client 9999") == (1, 10_000)
    mine.remove("client 9999")
    (news,) = mine.next_step(2, 1)
    assert len(news.entries) == 1
    theirs.learn(1, news, 1_000_000, is_limited=False)
    assert theirs.find("client 9999") is None
    assert mine.next_step(2, 1) == []
    # a broker that begins anew is told all of it
    assert sum(len(homes.entries) for homes in mine.next_step(2, 2)) == 9_999


def test_a_peer_with_rights_cannot_say_that_it_has_what_others_have() -> None:
    registry = Registry()
    registry.put("here", 5, is_kept=True)
    registry.learn(1, Homes(True, [(digest_of("there"), 5, KEPT)]), 1_000, is_limited=False)
    lies = [(digest_of(name), 900, KEPT) for name in ("here", "there", "nowhere")]
    assert registry.learn(2, Homes(True, lies), 1_000, is_limited=True) == []
    assert registry.find("there") == (1, 5)
    assert registry.find("here") is None
    assert registry.find("nowhere") == (2, 900)


def test_what_others_keep_is_bounded_all_together_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "MOST_OF_ALL", 1_000)
    registry = Registry()

    def homes(broker: int, count: int) -> Homes:
        return Homes(True, [(digest_of(f"{broker}/{number}"), 5, KEPT) for number in range(count)])

    for broker in range(1, 5):
        registry.learn(broker, homes(broker, 400), 1_000, is_limited=False)
    assert sum(registry.elsewhere.values()) == 1_000
    assert registry.beyond == 600
    assert registry.kept_bytes == 1_000 * ENTRY_BYTES
    registry.forget(1)
    assert registry.kept_bytes == 600 * ENTRY_BYTES
    registry.learn(4, homes(4, 400), 1_000, is_limited=False)
    assert registry.find("4/399") is not None, "there is room again"
    registry.learn(2, Homes(False, [(digest_of("2/0"), 5, OVER)]), 1_000, is_limited=False)
    assert registry.kept_bytes == 999 * ENTRY_BYTES


def test_a_session_that_has_left_again_is_still_on_its_way_when_its_earlier_journey_is_over() -> None:
    registry = Registry()
    registry.put("c", 1, is_kept=True)
    registry.moved("c", 2, 5)
    registry.put("c", 6, is_kept=True)
    registry.moved("c", 3, 7)
    registry.followed("c", 5)
    assert registry.is_on_its_way("c", 3)
    registry.followed("c", 7)
    assert not registry.is_on_its_way("c", 3)
    assert registry.find("c") == (3, 7)
