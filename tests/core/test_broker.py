"""The whole core against the oracle: whatever clients and networks do, everybody gets exactly what is owed."""

from __future__ import annotations

from random import Random

import pytest

from tests.core.story import invent, shorten, tell
from tests.kits.interpreted import replaces_methods
from tieline.core.client import Session


def read_story(seed: int, length: int) -> None:
    setting, actions = invent(Random(seed), length)
    if tell(setting, actions) is None:
        return
    actions = shorten(setting, actions)
    lines = "\n".join(map(repr, actions))
    raise AssertionError(f"seed {seed}, {setting}:\n{lines}\nplay.finish()") from tell(setting, actions)


@pytest.mark.parametrize("seed", range(40))
def test_everybody_gets_exactly_what_is_owed(seed: int) -> None:
    read_story(seed, 400)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_everybody_gets_exactly_what_is_owed_in_a_thousand_stories() -> None:
    for seed in range(1_000, 2_000):
        read_story(seed, 600)


@replaces_methods
def test_the_oracle_notices_a_lost_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of the test: a broker that forgets what was in flight does not get away with it."""
    monkeypatch.setattr(Session, "next_id", lambda session: session.inflight.clear() or 1)
    setting, actions = invent(Random(0), 400)
    assert tell(setting, actions) is not None
    assert len(shorten(setting, actions)) < 10
