from __future__ import annotations

import random
from collections.abc import Hashable

import pytest

from fuzz.hunt import Catch, hunt, report, shrink
from fuzz.mutate import mutate

SEEDS = [b"hello", b"\x10\x00world"]


def brittle(data: bytes) -> Hashable:
    """Break on what no seed holds and a few mutations reach, in two steps that each look new."""
    stages = (b"\xff" in data, data.count(b"\x80") > 1)
    if all(stages):
        raise IndexError("broken")
    return stages


def test_a_planted_fault_is_found_and_shrunk() -> None:
    catch = hunt(brittle, SEEDS, 30, seed=1)
    assert catch.reproducer is not None
    assert sorted(catch.reproducer) == [0x80, 0x80, 0xFF]
    assert catch.error == "IndexError: broken"


def test_a_sound_target_survives_and_shows_its_behaviours() -> None:
    catch = hunt(lambda data: len(data) % 5, SEEDS, 0.2, seed=1)
    assert catch.reproducer is None
    assert catch.behaviours == 5
    assert catch.executions > 100


def test_every_seed_is_tried_even_when_there_is_no_time() -> None:
    tried: list[bytes] = []
    hunt(tried.append, SEEDS, 0, seed=1)
    assert tried[: len(SEEDS)] == SEEDS


def test_the_same_seed_gives_the_same_inputs() -> None:
    one, other = random.Random(5), random.Random(5)
    first, second = [mutate(SEEDS, one) for _ in range(50)], [mutate(SEEDS, other) for _ in range(50)]
    assert first == second
    assert len(set(first)) > 10


def test_shrinking_keeps_what_breaks() -> None:
    assert shrink(brittle, b"a\xffbcd\x80\x80efgh" * 7).count(b"\x80") == 2


def test_the_report_names_the_reproducer(capsys: pytest.CaptureFixture[str]) -> None:
    assert report("x", Catch(executions=9, behaviours=2)) == 0
    assert report("x", Catch(executions=9, behaviours=2, reproducer=b"\x10", error="KeyError: 1")) == 1
    assert capsys.readouterr().out == (
        "x: 9 executions, 2 behaviours\nx: 9 executions, 2 behaviours\n"
        "x: broken by KeyError: 1\n  bytes.fromhex('10')\n"
    )
