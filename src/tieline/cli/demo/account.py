"""The account of what a plan changed, as a page: how long readings took before and since, what moved, what links carry.

Everything on it was measured while the demonstration ran: waits by whoever listens at the control centre, loads by the
planner, which asks the brokers.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final  # Any: values of JSON

from tieline.cli.demo.ledger import Said

if TYPE_CHECKING:
    from tieline.cli.demo.checks import Check

#: Seconds of one point of the picture, and how large that is.
_BIN_S: Final = 0.5
_WIDE, _HIGH, _LEFT, _LOW = 720, 220, 52, 28
_STYLE: Final = """
:root { color-scheme: light dark; --ink: #14202b; --soft: #56626e; --line: #d8dedc; --page: #f3f5f4; --card: #fff;
  --mark: #0b5fb8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e7ecf1; --soft: #9ba8b5; --line: #303842; --page: #101419; --card: #181d24; --mark: #7cb7ff; }
}
body { margin: 0; background: var(--page); color: var(--ink); font: 14px/1.5 "IBM Plex Sans", system-ui, sans-serif; }
main { max-width: 800px; margin: 32px auto; padding: 0 20px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 16px 20px;
  margin: 12px 0; }
h1 { font-size: 26px; line-height: 1.25; } h2 { font-size: 14px; margin: 0 0 8px; } p { margin: 4px 0; }
.soft { color: var(--soft); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 5px 12px 5px 0; border-top: 1px solid var(--line); }
th { color: var(--soft); font-weight: 400; border: 0; } .num { text-align: right; } .over { overflow-x: auto; }
svg { width: 100%; height: auto; } svg text { font: 12px "IBM Plex Sans", system-ui, sans-serif; fill: var(--soft); }
svg .wait { fill: none; stroke: var(--mark); stroke-width: 2; } svg .grid { stroke: var(--line); }
svg .event { stroke: var(--soft); stroke-dasharray: 3 3; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What was measured; times are those of one clock."""

    begun: float
    planned_at: float
    until: float
    sent: Mapping[Said, tuple[float, int]]
    came: Mapping[Said, float]
    #: What brokers say of their plans, and the planner's report.
    status: Mapping[str, Any]


def write_account(file: Path, account: Account, checks: Sequence[Check]) -> None:
    """Write the page; without a plan it says so."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page(account, checks), "utf-8")


def page(account: Account, checks: Sequence[Check]) -> str:
    """The page as text; names are those of topics and brokers, so nothing of it is taken for markup."""
    planner = account.status.get("planner") or {}
    applied = planner.get("applied")
    closing = next((check for check in checks if check.title == "Loop closed"), None)
    parts = [_section("How long readings took over the link that was full", picture(account))]
    if applied is not None:
        found = applied["proposal"]
        served = f"{found['requests'] - found['unmet']:,} of {found['requests']:,} requests are served"
        parts.append(
            _section(
                "How good the plan is",
                f"<p>It costs {found['objective_after']:,.6g}, and no plan is below {found['bound'] or 0:,.6g}; "
                f"{served}. {escape(found['checker'])}.</p>",
            )
        )
        parts.append(_section("Links, in kbit/s", _links(applied["links"], planner["links"])))
        moves = [
            (
                f"<code>{escape(move['topic'])}</code>",
                _kilobits(move["rate"]),
                *map(_way, (move["before"], move["after"])),
            )
            for move in found["moves"]
        ]
        heads = ("topic", "kbit/s", "went over", "goes over")
        rest = found["flows_moved"] - len(moves)
        more = f"<p class=soft>And {rest:,} smaller ones.</p>" if rest > 0 else ""
        parts.append(_section("What moved", _table(heads, moves, numbers={1}) + more))
    rows = [(escape(check.title), escape(check.story), "✓" if check.is_good else "✗") for check in checks]
    parts.append(_section("What was checked", _table(("claim", "seen", ""), rows)))
    title = "What the plan changed" if closing is None or closing.is_good else "The plan changed nothing for the better"
    lead = "" if closing is None else f"<p class=soft>{escape(closing.story[:1].upper() + closing.story[1:])}.</p>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><main><h1>{title}</h1>{lead}"
        f"{''.join(parts)}</main></body></html>\n"
    )


def picture(account: Account) -> str:
    """The median wait of the readings sent in each half second, with the moment of the plan."""
    points = waits_over_time(account)
    if not points:
        return "<p>Nothing was sent.</p>"
    last = max(points[-1][0], account.planned_at - account.begun) + _BIN_S
    top = max(wait for _when, wait in points) * 1.1 or 1.0

    def x(when: float) -> float:
        return _LEFT + when / last * (_WIDE - _LEFT - 20)

    def y(wait: float) -> float:
        return 12 + (1 - wait / top) * (_HIGH - _LOW - 12)

    line = " ".join(f"{x(when):.1f},{y(wait):.1f}" for when, wait in points)
    says = (
        f"Median wait of readings over time: {points[0][1]:.1f} s at first, "
        f"at most {max(wait for _when, wait in points):.1f} s, {points[-1][1]:.1f} s at last"
    )
    drawn = [f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="{says}">']
    for part in (0.0, 0.5, 1.0):
        wait = part * top / 1.1
        drawn.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDE}" y1="{y(wait):.1f}" y2="{y(wait):.1f}"/>')
        drawn.append(f'<text x="{_LEFT - 8}" y="{y(wait) + 4:.1f}" text-anchor="end">{wait:.1f} s</text>')
    drawn += [
        f'<text x="{x(when):.1f}" y="{_HIGH - 6}" text-anchor="middle">{when} s</text>'
        for when in range(0, int(last) + 1, 5)
    ]
    planned = x(account.planned_at - account.begun)
    drawn.append(f'<line class="event" x1="{planned:.1f}" x2="{planned:.1f}" y1="4" y2="{_HIGH - _LOW}"/>')
    drawn.append(f'<text x="{planned + 6:.1f}" y="14">plan in force</text>')
    drawn.append(f'<polyline class="wait" points="{line}"/></svg>')
    return "".join(drawn)


def waits_over_time(account: Account) -> list[tuple[float, float]]:
    """For each half second, since the beginning, the median wait of the readings that were sent in it.

    What has not arrived has waited until the end of the account.
    """
    bins: defaultdict[int, list[float]] = defaultdict(list)
    for said, (when, level) in account.sent.items():
        if level == 0 and when < account.until - _BIN_S:
            came = min(account.came.get(said, account.until), account.until)
            bins[int((when - account.begun) / _BIN_S)].append(came - when)
    return [(number * _BIN_S, statistics.median(found)) for number, found in sorted(bins.items())]


def _links(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> str:
    loads = {tuple(link["ends"]): link["load"] for link in now}
    rows = [
        (
            escape(" – ".join(link["ends"])),
            _kilobits(link["load"]),
            _kilobits(link["planned"]),
            _kilobits(loads.get(tuple(link["ends"]))),
            _kilobits(link["capacity"]),
        )
        for link in before
    ]
    heads = ("link", "asked of it before", "planned", "asked of it now", "for plans")
    return _table(heads, rows, numbers={1, 2, 3, 4})


def _kilobits(octets: float | None) -> str:
    return "–" if octets is None else f"{octets * 8 / 1e3:,.0f}"


def _code(name: str) -> str:
    return f"<code>{escape(name)}</code>"


def _way(brokers: Iterable[str]) -> str:
    return escape(" → ".join(brokers))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = ()) -> str:
    kinds = [' class="num"' if number in {*numbers} else "" for number in range(len(heads))]
    head = "".join(f"<th{kind}>{words}</th>" for kind, words in zip(kinds, heads, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{kind}>{cell}</td>' for kind, cell in zip(kinds, row, strict=True))}</tr>" for row in rows
    )
    return f'<div class="over"><table><tr>{head}</tr>{body}</table></div>'


def _section(title: str, inside: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{inside}</section>"
