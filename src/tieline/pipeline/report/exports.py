"""The report in other forms: one JSON object for programs, and a PDF that whatever Chromium is here prints."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any, Final  # Any: values of JSON

from tieline.pipeline.report.findings import Findings
from tieline.version import __version__


def for_programs(findings: Findings, network: str, generated: datetime) -> dict[str, Any]:
    """Values that ``json`` can write; times are UTC, shares are parts of one."""
    limits = findings.limits
    return {
        "network": network,
        "generated": generated.isoformat(),
        "version": __version__,
        "lake": findings.origin.lake,
        "offsets": [each._asdict() for each in findings.origin.offsets],
        "first": findings.first.isoformat(),
        "last": findings.last.isoformat(),
        "readings": findings.readings,
        "nominal": {"voltage": limits.nominal_v, "frequency": limits.nominal_hz},
        "system": limits.system,
        "edition": limits.edition,
        "time_zone": limits.time_zone,
        "flagged": limits.flagged,
        "clauses": [
            {
                "name": clause.name,
                "number": clause.number,
                "low": limits.range(clause).low,
                "high": limits.range(clause).high,
                "share": clause.permille / 1000,
                "period": clause.period,
                "edition": clause.edition,
                "rule": limits.is_rule(clause),
                "text": clause.text,
            }
            for clause in (*findings.clauses, *findings.year_clauses)
        ],
        "not_assessed": [
            {"number": number, "subject": subject, "why": why} for number, subject, why in findings.not_assessed
        ],
        "nodes": [_node(findings, node) for node in findings.nodes],
        "worst": [_timed(each._asdict()) for each in findings.worst],
        "incidents": [_timed(each._asdict()) for each in findings.listed],
        "left_out": [_timed(each._asdict()) for each in findings.left_out],
        "voltage": {
            "every_s": findings.course_s,
            "course": [_timed(each._asdict()) for each in findings.course],
        },
    }


def _timed(values: dict[str, Any]) -> dict[str, Any]:
    """The same values, with points in time as text, which JSON has no kind for."""
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}


def _node(findings: Findings, node: str) -> dict[str, Any]:
    zones = {each.week: each for each in findings.zones if each.node == node}
    happened: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in findings.incidents:
        if each.node == node:
            happened[each.week].append(
                {"kind": each.kind, "depth": each.depth, "lasting": each.lasting, "incidents": each.incidents}
            )
    return {
        "node": node,
        "verdict": findings.node_verdict(node),
        "years": [findings.year(node, clause)._asdict() for clause in findings.year_clauses],
        "weeks": [
            {
                "week": week,
                "verdict": findings.week_verdict(node, week),
                "clauses": {
                    clause.name: _without_keys(findings.judgement(node, week, clause)._asdict())
                    for clause in findings.clauses
                    if findings.has(node, clause)
                },
                "phases": [
                    {"phase": phase, "clause": clause.name}
                    | _without_keys(findings.judgement(node, week, clause, phase)._asdict())
                    for clause in findings.clauses
                    for phase in findings.phases(node, clause)
                    if phase
                ],
                "zones_s": [zones[week].zone_1_s, zones[week].zone_2_s, zones[week].zone_3_s]
                if week in zones
                else [0.0, 0.0, 0.0],
                "incidents": happened[week],
            }
            for week in findings.weeks
        ],
    }


def _without_keys(judgement: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in judgement.items() if name not in ("node", "week", "clause", "phase")}


_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PATIENCE_S: Final = 120
_FLAGS: Final = (
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-pdf-header-footer",
)


class NoPdf(Exception):
    """No PDF could be made; the message is a sentence."""


def find_browser() -> str | None:
    """The program that prints, if there is one."""
    return next((found for name in _BROWSERS if (found := shutil.which(name))), None)


def print_pdf(page: Path, target: Path) -> None:
    """Print an HTML file to a PDF beside it."""
    browser = find_browser()
    if browser is None:
        raise NoPdf("a PDF needs Chromium or Chrome on this machine; the HTML report prints well from any browser")
    target.unlink(missing_ok=True)  # what stands there afterwards is this page
    with tempfile.TemporaryDirectory(prefix="tieline-pdf-") as profile:
        # For root Chromium starts only without its sandbox; the page is ours, has no script and asks for nothing.
        outside = ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [browser, *_FLAGS, *outside, f"--user-data-dir={profile}", f"--print-to-pdf={target.absolute()}"]
        try:
            ended = subprocess.run(  # noqa: S603  a program from PATH, a file of ours
                [*command, page.absolute().as_uri()], capture_output=True, check=False, timeout=_PATIENCE_S
            )
        except subprocess.TimeoutExpired:
            raise NoPdf(f"{browser} did not finish the PDF within {_PATIENCE_S} s") from None
    if ended.returncode != 0 or not target.is_file():
        last = ended.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["nothing"]
        raise NoPdf(f"{browser} could not print the PDF; it said: {last[0]}")
