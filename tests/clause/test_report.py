"""The report itself: what it counts, and what it complains about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.clause.catalog import Specification, Statement, load
from tests.clause.harvest import Harvest, read_source, read_tests
from tests.clause.report import Coverage, faults, main

MODULE = """
@clause("MQTT-1.5.4-1", "MQTT311-1.5.3-1")
def test_1_5_4_1_both(): ...

@pytest.mark.parametrize("x", [pytest.param(1, marks=clause("MQTT-2.1.3-1")), pytest.param(2)])
def test_in_a_table(x): ...

class TestSomething:
    @pytest.mark.clause("MQTT-2.2.1-4")
    async def test_in_a_class(self): ...

@pytest.mark.skip(reason="not today")
@clause("MQTT-2.2.1-5")
def test_skipped(): ...

@pytest.mark.xfail
@clause("MQTT-2.2.1-6")
def test_expected_to_fail(): ...

@clause("MQTT-2.2.2-1")
def not_a_test(): ...
"""
SOURCE = '''
# [MQTT-1.5.4-1] and ![MQTT-3.3.1-2]
raise Violation("no", "MQTT-3.3.1-4")
raise Violation("no", "3.1.1 MQTT-3.1.2-22")
"""[MQTT311-1.5.3-1] twice: [MQTT-1.5.4-1]"""
'''


def planted(root: Path, module: str = MODULE, source: str = SOURCE) -> Harvest:
    (root / "src" / "tieline").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "src" / "tieline" / "code.py").write_text(source)
    (root / "tests" / "test_some.py").write_text(module)
    harvest = Harvest()
    read_source(root / "src" / "tieline", root, harvest)
    read_tests(root / "tests", root, harvest)
    return harvest


def test_tests_are_found_without_running_them(tmp_path: Path) -> None:
    harvest = planted(tmp_path)
    assert set(harvest.tests) == {"MQTT-1.5.4-1", "MQTT311-1.5.3-1", "MQTT-2.1.3-1", "MQTT-2.2.1-4"}
    assert harvest.tests["MQTT-1.5.4-1"] == ["tests/test_some.py:2"]
    assert harvest.faults == []


def test_claims_and_deviations_are_told_apart(tmp_path: Path) -> None:
    harvest = planted(tmp_path)
    assert set(harvest.claims) == {"MQTT-1.5.4-1", "MQTT-3.3.1-4", "MQTT311-3.1.2-22", "MQTT311-1.5.3-1"}
    assert len(harvest.claims["MQTT-1.5.4-1"]) == 2
    assert set(harvest.deviations) == {"MQTT-3.3.1-2"}


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ('@clause("MQTT-9.9.9-9")\ndef test_x(): ...', "", "no statement is called MQTT-9.9.9-9"),
        ("", "# [MQTT-4.8.0-1]", "no statement is called MQTT-4.8.0-1"),
        ('@clause("MQTT-2.1.3-1")\ndef test_2_2_2_1_x(): ...', "", "test_2_2_2_1_x does not check MQTT-2.2.2-1"),
        ("def test_v311_2_2_2_1_x(): ...", "", "test_v311_2_2_2_1_x does not check MQTT311-2.2.2-1"),
        ('@clause("MQTT-3.3.4-5")\ndef test_x(): ...', "", "MQTT-3.3.4-5 is excused and tested"),
    ],
)
def test_contradictions_are_faults(tmp_path: Path, module: str, source: str, complaint: str) -> None:
    found = faults(load(), planted(tmp_path, module, source))
    assert len(found) == 1 and complaint in found[0]


def test_an_excuse_for_somebody_elses_duty_is_a_fault() -> None:
    odd = Statement(id="MQTT-1.1.1-1", binds="client", summary="not ours", why_not="because")
    assert faults([Specification(title="one", statements={odd.id: odd})], Harvest()) == [
        "MQTT-1.1.1-1 binds only a client: it needs no excuse"
    ]


def test_missing_excused_and_tested_add_up(tmp_path: Path) -> None:
    harvest = planted(tmp_path)
    for specification in load():
        coverage = Coverage.of(specification, harvest)
        parts = (coverage.tested, coverage.excused, coverage.missing)
        assert sum(map(len, parts)) == len(specification.ours)
        assert coverage.missing


def test_a_tree_without_tests_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planted(tmp_path)
    assert main([], root=tmp_path) == 1
    assert "missing  MQTT-3.1.0-1" in capsys.readouterr().out


def test_this_tree_is_covered(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--verbose"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(("index", "count", "pattern"), [(0, 251, r"MQTT-\d"), (1, 141, r"MQTT311-\d")])
def test_the_lists_are_complete_and_in_order(index: int, count: int, pattern: str) -> None:
    """Both appendices number without gaps, except that MQTT 5 begins 2.2.1 with 2."""
    statements = load()[index].statements
    assert len(statements) == count
    assert all(re.match(pattern, id_) for id_ in statements)
    numbers = [tuple(int(part) for part in re.split(r"[.-]", id_)[1:]) for id_ in statements]
    assert numbers == sorted(numbers)
    sections: dict[tuple[int, ...], list[int]] = {}
    for *section, number in numbers:
        sections.setdefault(tuple(section), []).append(number)
    for where, found in sections.items():
        first = 2 if index == 0 and where == (2, 2, 1) else 1
        assert found == list(range(first, first + len(found)))
