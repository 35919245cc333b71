"""The site is built of all pages, strictly, and asks nobody for anything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.site.build import ROOT, build, navigation

pytest.importorskip("mkdocs", reason="the extra site is not installed")


def _places(entries: object) -> list[str]:
    if isinstance(entries, str):
        return [entries]
    each = entries.values() if isinstance(entries, dict) else entries
    assert not isinstance(each, str)
    return [place for inner in each for place in _places(inner)]  # type: ignore[attr-defined]  # lists within dicts


def test_the_navigation_has_every_page_once() -> None:
    places = _places(navigation())
    assert len(places) == len(set(places))
    pages = {str(page.relative_to(ROOT)) for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]}
    assert set(places) == pages | {"examples/README.md"}


def test_the_site_is_built_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    out = tmp_path / "site"
    build(out)
    pages = [*out.rglob("*.html")]
    assert len(pages) > 60
    loaded = re.compile(r"""<(?:script|img|iframe|source)[^>]*\ssrc="?([^"\s>]+)|<link[^>]*\shref="?([^"\s>]+)""")
    for page in pages:
        text = page.read_text(encoding="utf-8")
        places = [one or other for one, other in loaded.findall(text)]
        assert places
        for place in places:
            assert not re.match(r"(?:https?:)?//", place), f"{page.name} loads {place}"
            if page.name != "404.html" and not place.startswith("data:"):
                assert (page.parent / place.partition("#")[0]).resolve().exists(), f"{page.name} loads {place}"
    assert (out / "search" / "search_index.js").stat().st_size > 100_000
