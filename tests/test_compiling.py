"""Compiled functions do what they say in Python, with and without a compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tieline.compiling import PLAIN, compiled


def total(count: int) -> int:
    found = 0
    for each in range(count):
        found += each
    return found


def test_machine_code_is_kept_in_the_place_that_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("numba")
    monkeypatch.delenv(PLAIN, raising=False)
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    fast = compiled(total)
    assert fast is not total
    assert fast(10) == total(10) == 45
    assert list(tmp_path.glob(f"{Path(__file__).parent.name}-*/**/*.nbi"))


def test_a_user_may_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLAIN, "1")
    assert compiled(total) is total


def test_code_is_compiled_even_where_it_cannot_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.delenv(PLAIN, raising=False)
    attempts = []

    def njit(function: Any, **options: bool) -> Any:
        attempts.append(options.get("cache", False))
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return function

    monkeypatch.setattr("numba.njit", njit)
    assert compiled(total) is total
    assert attempts == [True, False]
