"""The generated pages and the drawing of the rooms say what the code says."""

from __future__ import annotations

import re

import pytest

from docs.reference.generate import DOCS, PAGES, main
from tieline.cli.main import VERBS


@pytest.mark.parametrize("name", PAGES)
def test_the_committed_page_is_current(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run `make docs`"


def test_the_command_page_knows_every_verb_and_its_options() -> None:
    page = PAGES["reference/commands.md"]()
    for verb, _module, _help in VERBS:
        assert f"\n## tieline {verb}\n" in page
    for option in ("--listen URL", "--log-format human", "-D, --property", "--retained-only", "--once", "--quick"):
        assert option in page


def test_every_page_that_names_a_setting_or_a_verb_names_one_that_exists() -> None:
    verbs = {verb for verb, _module, _help in VERBS} | {"version"}
    for page in (DOCS / "reference").glob("*.md"):
        for verb in re.findall(r"`tieline ([a-z]+)", page.read_text(encoding="utf-8")):
            assert verb in verbs, f"{page.name} speaks of `tieline {verb}`"


def test_check_only_looks(capsys: pytest.CaptureFixture[str]) -> None:
    before = {page: page.stat().st_mtime_ns for page in map(DOCS.joinpath, PAGES)}
    assert main(check=True) == 0
    assert {page: page.stat().st_mtime_ns for page in map(DOCS.joinpath, PAGES)} == before
    assert "STALE" not in capsys.readouterr().out
