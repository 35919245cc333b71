"""Every paper that is declared, the command, and the pages that are kept in the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.kits.check_paper import check_paper
from tieline.bench.papers.frame import page
from tieline.bench.papers.frame.record import PaperRecord
from tieline.bench.papers.registry import GROUPS, PAPERS, load
from tieline.cli.reproduce import app

PAGES = Path(__file__).parents[3] / "docs" / "papers"


@pytest.mark.parametrize("name", PAPERS)
def test_every_paper_is_well_declared(name: str) -> None:
    paper = load(name)
    assert paper.name == name
    check_paper(paper)


@pytest.mark.parametrize("name", PAPERS)
def test_the_committed_page_is_what_the_command_writes(name: str) -> None:
    record = PaperRecord.read(PAGES / f"{name}.json")
    assert (PAGES / f"{name}.md").read_text(encoding="utf-8") == page.markdown(record, page.reading(load(name).package))
    assert {figure.name for figure in record.figures} == {figure.name for _, figure in load(name).figures()}
    for table in record.tables:
        assert (PAGES / name / f"{table}.csv").exists()


#: Numbers with a unit that the prose may have, by paper: what the papers and the standards that they cite say, and what
#: a set-up is.  Whatever was measured is in a record.
SAID = {
    "heat": {"128 kB"},
    "priority-qos": {"20 Hz"},
    "psp": set[str](),
    "ring": {
        "270 ms", "530 ms", "35 %", "48 %", "49 %", "49.2 %", "39.08 %", "207–253 V", "195.5–253 V", "253 V", "230 V",
        "190 V", "10 V", "49–51 Hz", "42.5–57.5 Hz", "50 Hz", "40 Hz", "3 Hz", "2 Hz", "95 %", "10 %",
    },
    "rpcp": {"20 s"},
}  # fmt: skip
_QUANTITY = re.compile(r"\d[\d.,–]*[  ]?(?:(?:ms|µs|s|min|h|kB|MB|GB|B|kbit/s|J|mJ|mW|MHz|Hz|V|m)\b|%)")


@pytest.mark.parametrize("name", PAPERS)
def test_no_quantity_in_the_prose_is_ours(name: str) -> None:
    found = set(_QUANTITY.findall(page.reading(load(name).package)))
    assert found == SAID[name], "what was measured belongs into a record, what others say into the list above"


def test_groups_name_papers() -> None:
    assert GROUPS["priority"] == ("heat", "priority-qos")
    assert set(GROUPS["all"]) == set(PAPERS)


def test_quick_and_long_exclude_each_other(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["heat", "--quick", "--long", "--out", str(tmp_path)])
    assert result.exit_code != 0
    assert "choose one" in str(result.exception)


def test_again_takes_what_is_there(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["heat", "--again", "--out", str(tmp_path)])
    assert "has no run of heat" in str(result.exception)
    result = CliRunner().invoke(app, ["heat", "--again", "--seed", "3", "--out", str(tmp_path)])
    assert "takes what is there" in str(result.exception)


def test_an_unknown_paper_is_answered_with_the_nearest_and_all_known_ones() -> None:
    result = CliRunner().invoke(app, ["heap"])
    assert result.exit_code != 0
    assert str(result.exception).startswith(
        'there is no paper "heap" (did you mean "heat"?); there are heat, priority-qos'
    )
