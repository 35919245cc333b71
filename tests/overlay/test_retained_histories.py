"""Histories by seed: joined brokers agree on what is retained, and the kit notices those that do not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.kits.check_retained import Kind, check_retained, run_history
from tests.kits.interpreted import replaces_methods
from tieline.overlay.joined import Joined
from tieline.overlay.retained.convergence import Convergence
from tieline.overlay.retained.retained_compare import Comparing
from tieline.overlay.retained.retained_sync import RetainedSync
from tieline.overlay.retained.versions import Versions


@pytest.mark.parametrize("kind", Kind)
def test_all_brokers_retain_the_newest_of_each_topic_and_subscribers_have_it(kind: Kind) -> None:
    assert check_retained(kind, range(4)) > 60


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
