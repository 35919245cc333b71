"""The papers' pages are bound into one file that asks nobody for anything."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from docs.site.book import ROOT, bound, chapters

pytest.importorskip("markdown", reason="the extra site is not installed")

PAGES = ROOT / "docs" / "papers"


def test_the_book_has_every_paper_with_its_figures_and_loads_nothing() -> None:
    text = bound(PAGES)
    found = list(chapters(PAGES))
    assert [one.name for one in found] == [path.stem for one in found for path in [PAGES / f"{one.name}.json"]]
    assert len(found) >= 3
    for one in found:
        assert f'<section class="paper" id="{one.name}">' in text and one.tally in text
    assert text.count("data:image/png;base64,") == sum(
        page.read_text("utf-8").count("![") for page in PAGES.glob("*.md")
    )
    for kind, place in re.findall(r'<(img|script|link)[^>]*\s(?:src|href)="([^"]{1,60})', text):
        assert kind == "img" and place.startswith("data:image/png"), place


def test_every_link_inside_the_book_leads_somewhere() -> None:
    text = bound(PAGES)
    anchors = re.findall(r'\sid="([^"]+)"', text)
    assert len(anchors) == len(set(anchors))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(anchors)


def test_a_folder_with_one_paper_is_a_book_too(tmp_path: Path) -> None:
    shutil.copytree(PAGES / "heat", tmp_path / "heat")
    for name in ("heat.md", "heat.json"):
        shutil.copy(PAGES / name, tmp_path / name)
    assert [one.name for one in chapters(tmp_path)] == ["heat"]
    assert "Heat priority" in bound(tmp_path)
