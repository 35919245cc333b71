"""The examples of a property are the same in every run, whatever ran before it; exploring asks for more of them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kits.examples import EVERY_DAY, examples


def tried() -> list[tuple[int, str, float]]:
    """What a property is tried with, in this order."""
    found: list[tuple[int, str, float]] = []

    @examples(300)
    @given(st.integers(), st.text(), st.floats(allow_nan=False))
    def note(number: int, text: str, value: float) -> None:
        found.append((number, text, value))

    note()
    return found


@pytest.mark.skipif(not settings().derandomize, reason="exploring means other examples each time")
def test_examples_do_not_depend_on_the_modules_that_were_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tried()
    file = tmp_path / "full_of_constants.py"
    file.write_text("\n".join(f"A{n} = {n * 7_919}, 'word {n}', {n}.5" for n in range(200, 300)))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, file.stem, module)
    spec.loader.exec_module(module)
    assert tried() == before


def test_a_property_that_asks_for_examples_gets_more_where_we_explore() -> None:
    assert settings.get_profile("repeat").max_examples == EVERY_DAY
    times = settings.get_profile("explore").max_examples // EVERY_DAY
    assert times > 1
    now = settings().max_examples // EVERY_DAY
    assert examples(30).max_examples == 30 * now
    assert examples(1, stateful_step_count=7).stateful_step_count == 7
