"""The report says what was found, asks nobody for anything, and lets no name of a node become markup."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from tests.pipeline.report.invented import invent
from tieline.pipeline.jobs.quality.clauses import Edition, System
from tieline.pipeline.jobs.quality.limits import Limits
from tieline.pipeline.report.exports import for_programs
from tieline.pipeline.report.figures_csv import write
from tieline.pipeline.report.findings import Findings, Origin
from tieline.pipeline.report.page import headline, render

WHEN = datetime(2026, 11, 16, 8, tzinfo=UTC)
HOSTILE = '<script>alert(1)</script>"><img src=x onerror=y>&{{7*7}}'


class _Outline(HTMLParser):
    """Tags that are open, headings in order, and what every picture says to those who do not see it."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.levels: list[int] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables = self.captions = self.pictures = self.titles = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if re.fullmatch(r"h[1-6]", tag):
            self.levels.append(int(tag[1]))
        self.tables += tag == "table"
        self.captions += tag == "caption"
        self.pictures += tag == "svg" and dict(attrs).get("role") == "img"
        self.titles += tag == "title" and "svg" in self.open

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _outline(page: str) -> _Outline:
    outline = _Outline()
    outline.feed(page)
    outline.close()
    assert outline.open == []
    return outline


@pytest.fixture(name="findings", scope="module")
def _findings() -> Findings:
    return invent()


@pytest.fixture(name="page", scope="module")
def _page(findings: Findings) -> str:
    return render(findings, "North ring", WHEN)


def test_it_needs_no_network_and_no_script(page: str) -> None:
    outline = _outline(page)
    assert not {"script", "link", "img", "iframe", "object", "a"} & {tag for tag, _ in outline.tags}
    assert not [attrs for _, attrs in outline.tags if {"src", "href"} & attrs.keys()]
    assert "url(" not in page and "@import" not in page


def test_headings_descend_and_tables_and_pictures_are_named(page: str) -> None:
    outline = _outline(page)
    assert outline.levels[0] == 1 and outline.levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(outline.levels))
    assert outline.tables == outline.captions > 5
    assert outline.pictures == outline.titles > 20


def test_it_says_what_a_reader_looks_for(page: str, findings: Findings) -> None:
    for text in ("North ring", "230 V, 50 Hz", "2026-W44 to 2026-W46", "north: 1,200 to 5,443,200", "193.81 V"):
        assert text in page
    for number, subject, why in findings.not_assessed:
        assert f"<li>{subject} ({number}): {why}</li>" in page
    assert headline(findings) in page
    assert "of which 2 fit no class" in page


def test_a_name_of_a_node_is_text_everywhere() -> None:
    page = render(invent(nodes=(HOSTILE, "b")), HOSTILE, WHEN)
    outline = _outline(page)
    assert not {"script", "img"} & {tag for tag, _ in outline.tags}
    assert not [attrs for _, attrs in outline.tags if any(name.startswith("on") for name in attrs)]
    assert "<script" not in page and "{{7*7}}" in page


def test_nobody_recorded_incidents_is_not_none_happened() -> None:
    silent = replace(invent(), origin=Origin("lake", "reading", None), incidents=())
    assert "This does not mean that there were none" in render(silent, "x", WHEN)


def test_verdicts_of_weeks_and_nodes(findings: Findings) -> None:
    assert {node: findings.node_verdict(node) for node in findings.nodes}["R1"] == "fail"
    assert findings.week_verdict("I2", "2026-W44") == "too little data"
    assert findings.node_verdict("I2") == "pass"  # by the two weeks that could be judged, as the page says
    assert "Of 6 nodes, 5 met every clause" in headline(findings)
    assert "1 of 18 node weeks" in headline(findings)


def test_nodes_are_in_the_order_that_people_count() -> None:
    assert invent(nodes=("R10", "R2", "C1", "7", "R2a")).nodes == ["7", "C1", "R2", "R2a", "R10"]


def test_many_weeks_are_several_tables_and_each_week_is_in_one() -> None:
    weeks = tuple(f"2026-W{number:02}" for number in range(1, 15))
    page = render(invent(nodes=("a", "b"), weeks=weeks), "x", WHEN)
    assert all(page.count(f'class="week">{week}<') == 2 for week in weeks)


def test_an_interconnected_system_is_told_about_the_year() -> None:
    found = invent(limits=Limits())
    page = render(found, "x", WHEN)
    assert "99.5 % of a year" in page
    assert "3 of them are here" in page
    assert "99.5 % of a year" not in render(invent(), "x", WHEN)
    (clause,) = found.year_clauses
    year = found.year("R1", clause)
    assert (year.weeks, year.windows, year.verdict) == (3, 52 * 60_480, "too little data")
    assert found.node_verdict("R11") == "pass"  # by the weeks; the year is told beside it


def test_a_year_that_is_broken_is_broken_by_few_weeks_too() -> None:
    found = invent(limits=Limits())
    worse = [
        each._replace(outside=each.judged) if (each.node, each.clause) == ("R11", "frequency-95") else each
        for each in found.judgements
    ]
    found = replace(found, judgements=tuple(worse))
    assert found.week_verdict("R11", "2026-W44") == "pass"  # the week's figure is no rule
    assert found.year("R11", found.year_clauses[0]).verdict == "fail"
    assert found.node_verdict("R11") == "fail"


def test_which_clauses_decide_by_system_and_edition() -> None:
    def rules(system: System = "interconnected", edition: Edition = "2010") -> list[str]:
        found = invent(nodes=("a", "b"), weeks=("2026-W44",), limits=Limits(system=system, edition=edition))
        return [each.name for each in found.rules]

    wide = ["voltage-100", "frequency-100"]
    assert sorted(rules()) == sorted(["voltage-95", *wide])
    assert sorted(rules(edition="1999")) == sorted(["voltage-95", "frequency-95", *wide])
    assert sorted(rules(system="island")) == sorted(["frequency-95", *wide])
    assert sorted(rules(system="island", edition="1999")) == sorted(["voltage-95", "frequency-95", *wide])


def test_a_node_is_as_good_as_its_worst_phase() -> None:
    found = invent(phases=("L1", "L2", "L3"), further=("thd", "harmonic_5", "plt"), limits=Limits())
    clause = found.main_clauses("voltage")[0]
    by_phase = [found.judgement("R1", "2026-W46", clause, each).verdict for each in ("L1", "L2", "L3")]
    assert by_phase == ["pass", "pass", "fail"]
    assert found.judgement("R1", "2026-W46", clause).phase == "L3"
    assert found.week_verdict("R1", "2026-W46") == "fail"
    page = render(found, "x", WHEN)
    assert "R1 L3" in page and "harmonic of order 5 (4.2.5)" in page
    said = {subject for _, subject, _ in found.not_assessed}
    assert "harmonic voltages" not in said and "unbalance of the supply voltage" in said


def test_every_figure_is_in_the_csv() -> None:
    found = invent(nodes=("=1+1", "b"), phases=("L1", "L2"), limits=Limits())
    rows = list(csv.DictReader(io.StringIO(write(found))))
    sections = Counter(row["section"] for row in rows)
    assert sections["weeks"] == 9 * len(found.judgements)
    assert sections["voltage"] == 3 * len(found.course)
    assert sections["incidents"] == 2 * len(found.listed) and sections["left out"] == 2 * len(found.left_out)
    assert {"limits", "nodes", "years", "zones", "incident counts", "worst", "plane"} <= sections.keys()
    assert not [row for row in rows if row["node"].startswith("=")]
    share = next(each.share for each in found.judgements if each.node == "b" and each.clause == "voltage-95")
    assert any(row["figure"] == "share" and row["value"] == repr(share) for row in rows)


def test_no_readings_in_the_plane_still_make_a_page() -> None:
    bare = replace(invent(weeks=("2026-W44",)), plane=(), zones=(), worst=(), every_s=None)
    assert _outline(render(bare, "x", WHEN)).pictures > 0


def test_the_document_for_programs(findings: Findings) -> None:
    found = for_programs(findings, "x", WHEN)
    first = next(each for each in found["nodes"] if each["node"] == "R1")
    assert first["verdict"] == "fail"
    assert first["weeks"][-1]["clauses"]["voltage-95"]["verdict"] == "fail"
    assert first["weeks"][-1]["zones_s"][2] == 90.0
    assert {each["kind"] for each in first["weeks"][-1]["incidents"]} == {"swell", "interruption"}
