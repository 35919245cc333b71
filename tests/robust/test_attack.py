"""The instrument behind ``make attack``: what it counts as broken, and that it finds a broker that is slow."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from random import Random
from time import sleep

import pytest

from tests.kits.patience import until
from tests.robust.arena import Arena
from tests.robust.attack.catalogue import KINDS
from tests.robust.attack.honest import Honest, Rounds
from tests.robust.attack.report import HEAD, RESIDENT_BYTES, Period, Run
from tests.robust.attack.schedule import chosen, whole_run
from tests.robust.attack.windows import P99_S, WINDOW_S, WORST_S, Windows, quantile
from tieline.core.broker import Broker as Core

_ROOT = Path(__file__).parents[2]
#: As honest clients play: one round each 2.5 ms.
_PACE_S = 0.0025


def _rounds(took: list[float], start: float = 100.0) -> Rounds:
    times = [(start + number * _PACE_S, each) for number, each in enumerate(took)]
    return Rounds(times, settled=times[-1][0] + 1 if times else start)


def _judged(*rounds: Rounds) -> Windows:
    windows = Windows()
    for each in rounds:
        windows.add(each)
    windows.finish()
    return windows


def _period(what: str, begin: float, end: float, rounds: Rounds, **fields: object) -> Period:
    known = {"set_up_s": 0.0, "resident_bytes": 0, "p99_s": None} | fields
    return Period(what=what, begin=begin, end=end, rounds=rounds, **known)  # type: ignore[arg-type]


# -- windows


def test_a_run_in_which_few_waited_a_little_breaks_nothing() -> None:
    windows = _judged(_rounds(([0.001] * 992 + [0.2] * 8) * 12))
    assert windows.judged > 0
    assert not windows.breaches
    assert windows.worst_s == 0.2


def test_ten_seconds_are_judged_wherever_they_begin() -> None:
    """One part in a hundred of two windows that are next to each other, but more of the one across both."""
    calm = [0.001] * 2_000
    slow = [0.06] * 30
    windows = _judged(_rounds([*calm, *calm[30:], *slow, *slow, *calm, *calm]))
    (breach,) = windows.breaches
    assert breach.limit == "p99"
    assert 0.05 < breach.found_s < 0.07
    assert breach.end - breach.begin <= 60 * _PACE_S


def test_one_that_waited_too_long_is_found_in_a_run_of_any_length() -> None:
    (breach,) = _judged(_rounds([0.001, 0.3, 0.001])).breaches
    assert breach.limit == "worst"
    assert breach.begin == 100.0 + _PACE_S
    assert "worst 300 ms is above 250 ms at 0.0 s: a" in breach.line(100.0, "a")


@pytest.mark.parametrize("seed", range(5))
def test_windows_agree_with_looking_at_each_of_them(seed: int) -> None:
    random = Random(seed)
    took = [0.2 if random.random() < 0.01 else 0.3 if random.random() < 0.0002 else 0.001 for _ in range(8_000)]
    rounds = _rounds(took)
    times = rounds.times
    # they come back in any order, in several portions
    shuffled = random.sample(times, len(times))
    middle = len(shuffled) // 2
    oldest = min(planned for planned, _ in shuffled[middle:])
    windows = _judged(Rounds(shuffled[:middle], settled=oldest), Rounds(shuffled[middle:], settled=1e9))
    found = []
    for last, (end, _) in enumerate(times):
        if end - times[0][0] >= WINDOW_S * 0.99:
            within = sorted(each for planned, each in times[: last + 1] if planned > end - WINDOW_S)
            found.append(quantile(within, 0.99))
    assert windows.judged == len(found)
    assert windows.p99_s == max(found)
    assert any(each.limit == "p99" for each in windows.breaches) == (max(found) > P99_S)
    assert any(each.limit == "worst" for each in windows.breaches) == (max(took) > WORST_S)


def test_what_waits_for_an_earlier_round_is_not_judged_before() -> None:
    windows = Windows()
    windows.add(Rounds([(2.0, 0.3)], settled=1.0))
    assert not windows.breaches
    windows.add(Rounds([(1.0, 0.001)], settled=3.0))
    assert windows.breaches


# -- the report


@pytest.mark.parametrize(
    ("period", "words"),
    [
        (_period("w", 0, 1, Rounds([(0.0, 0.001)], lost=2)), "2 messages of honest clients were lost"),
        (_period("w", 0, 1, Rounds()), "no honest message"),
        (_period("w", 0, 1, Rounds([(0.0, 0.001)]), resident_bytes=RESIDENT_BYTES + 1), "MB"),
        (_period("w", 0, 1, Rounds(trouble="closed")), "closed"),
        (_period("w", 0, 1, Rounds([(0.0, 0.001)]), trouble=("pings was not set up",)), "not set up"),
    ],
)
def test_each_limit_of_a_phase_is_named_when_it_is_broken(period: Period, words: str) -> None:
    (text,) = period.breaches
    assert words in text
    assert "BROKEN" in period.line()
    assert Run([period]).broken() == [f"w: {text}"]


def test_a_wait_is_laid_to_the_phases_in_which_it_was_also_after_the_attack() -> None:
    rounds = _rounds([0.001] * 1_000 + [0.4] + [0.001] * 1_000)
    run = Run(
        [_period("first", 100, 102, rounds), _period("second", 102, 105, Rounds()), _period("x", 105, 106, rounds)]
    )
    run.windows.add(rounds)
    slow = [text for text in run.broken() if "worst" in text]
    assert slow == ["worst 400 ms is above 250 ms at 2.5 s: second"]


def test_a_line_stands_below_its_heading() -> None:
    period = _period("pings x8", 0, 12, _rounds([0.002] * 4_500), p99_s=0.0042, set_up_s=1.5, resident_bytes=42_000_000)
    assert period.line().split() == ["pings", "x8", "1.5", "4500", "2.0", "4.2", "2.0", "0", "42", "ok"]
    assert len(HEAD) == period.line().rindex("42") + 2


# -- the schedule


def test_every_kind_attacks_both_brokers_with_one_connection_and_among_eight_and_among_all() -> None:
    names = list(KINDS)
    phases = whole_run(names, 600.0)
    assert sum(phase.seconds for phase in phases) == pytest.approx(600.0)
    assert [phase.is_kept for phase in phases] == sorted(phase.is_kept for phase in phases)
    assert min(phase.seconds for phase in phases) > WINDOW_S
    for name in names:
        own = [phase for phase in phases if name in phase.names and len(phase.names) <= 2]
        assert sorted(phase.connections for phase in own) == [1, 4]
        assert {phase.is_kept for phase in own} == {False, True}
    assert [(phase.connections, phase.is_kept) for phase in phases if len(phase.names) == len(names)] == [
        (1, False),
        (1, True),
    ]
    (only,) = chosen(["pings"], [8], 10.0, is_kept=False)
    assert (only.names, only.connections, only.seconds) == (("pings",), 8, 10.0)


# -- the instrument


@contextmanager
def _playing(url: str) -> Iterator[Honest]:
    honest = Honest(url)
    try:
        yield honest
    finally:
        honest.close()


def test_a_broker_that_stands_still_is_found_by_those_who_wait() -> None:
    """A kind that breaks the rule: what it stands still for is far above the limit, whatever else the machine does."""
    with Arena() as arena, _playing(arena.url) as honest:
        rounds = Rounds()

        def have_played() -> bool:
            rounds.add(honest.take())
            return len(rounds.times) > 50

        until(have_played, "rounds before")
        began = threading.Event()

        def stand_still(_: Core) -> None:
            began.set()
            sleep(2 * WORST_S)

        stall = threading.Thread(target=arena.ask, args=(stand_still,))
        stall.start()
        began.wait()
        stall.join()
        rounds.add(honest.take(is_last=True))
    assert not rounds.trouble
    assert not rounds.lost
    windows = _judged(rounds)
    assert windows.worst_s > WORST_S
    assert any(breach.limit == "worst" for breach in windows.breaches)
    # many were planned meanwhile, and each is late by what was left of it
    assert sum(took > WORST_S for _, took in rounds.times) > 10


def test_the_command_says_what_honest_clients_noticed_and_that_none_of_their_messages_was_lost() -> None:
    command = [sys.executable, "-m", "tests.robust.attack", "--connections", "2", "--seconds", "2"]
    command += ["--kind", "pings", "--kind", "unfinished-connects"]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=120, check=False)
    lines = done.stdout.splitlines()
    assert lines[1:3] == ["a broker without a data directory", HEAD], done.stderr
    places = [number for number, line in enumerate(lines) for what in _EXPECTED if line.startswith(what)]
    assert len(places) == len(_EXPECTED), done.stdout + done.stderr
    assert all(before < after for before, after in pairwise(places))
    for place in places[1:3]:
        rounds, _, _, _, lost, megabytes, _ = lines[place].split()[-7:]
        assert int(lost) == 0
        assert int(megabytes) > 10
        assert int(rounds) > 0
    # how long they waited is not judged here: the machine may have other things to do
    others = [line for line in lines if line.startswith("broken: ") and " ms is above " not in line]
    assert not others
    assert lines[-1] == "every limit held" or "limits were broken" in lines[-1]


#: How lines of the report begin, in order.
_EXPECTED = ("nothing ", "pings x2 ", "unfinished-connects x2 ", "to the end ")
