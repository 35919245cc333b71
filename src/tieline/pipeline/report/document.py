"""The findings for programs: one JSON object with what the page shows."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

from tieline.pipeline.report.findings import Findings
from tieline.version import __version__


def document(findings: Findings, network: str, generated: datetime) -> dict[str, Any]:
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
        "time_zone": limits.time_zone,
        "flagged": limits.flagged,
        "clauses": [
            {
                "name": clause.name,
                "number": clause.number,
                "low": limits.range(clause).low,
                "high": limits.range(clause).high,
                "share": clause.permille / 1000,
                "text": clause.text,
            }
            for clause in limits.clauses()
        ],
        "nodes": [_node(findings, node) for node in findings.nodes],
        "worst": [{**each._asdict(), "start": each.start.isoformat()} for each in findings.worst],
    }


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
        "weeks": [
            {
                "week": week,
                "verdict": findings.week_verdict(node, week),
                "clauses": {
                    clause.name: _without_keys(findings.judgement(node, week, clause)._asdict())
                    for clause in findings.limits.clauses()
                },
                "zones_s": [zones[week].zone_1_s, zones[week].zone_2_s, zones[week].zone_3_s]
                if week in zones
                else [0.0, 0.0, 0.0],
                "incidents": happened[week],
            }
            for week in findings.weeks
        ],
    }


def _without_keys(judgement: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in judgement.items() if name not in ("node", "week", "clause")}
