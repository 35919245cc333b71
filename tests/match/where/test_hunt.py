from __future__ import annotations

import pytest

from fuzz import fuzz_where
from tieline.match.where import binding, lexer


def test_expressions_survive_a_short_hunt() -> None:
    assert fuzz_where.run(1.0, seed=0) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
def test_expressions_survive_a_long_hunt(seed: int) -> None:
    assert fuzz_where.run(15, seed) == 0


def test_a_quote_that_is_not_doubled_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tieline.match.where.predicate._value", repr)
    assert fuzz_where.run(10, seed=0) == 1


def test_a_lexer_that_reads_past_the_end_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(text: str, pos: int) -> int:
        while text[pos] in "0123456789":
            pos += 1
        return pos

    monkeypatch.setattr(lexer, "_digits", careless)
    assert fuzz_where.run(10, seed=0) == 1


def test_boxes_that_leave_something_out_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "complement", lambda _intervals: [])
    assert fuzz_where.run(10, seed=0) == 1
