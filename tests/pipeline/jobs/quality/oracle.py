"""EN 50160 by brute force: loops over plain Python values, written from the standard and not from the job."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from statistics import fmean
from typing import Any
from zoneinfo import ZoneInfo

from tieline.pipeline.jobs.quality.limits import Limits

Reading = tuple[str, float, float | None, float | None]
"""Node, seconds since 1970, volts, hertz."""
Incident = tuple[str, float, str, float | None, float | None]
"""Node, seconds since 1970, kind, residual volts, seconds."""

WINDOWS = {"voltage": 600, "frequency": 10}


def monday(seconds: float, zone: str) -> date:
    day = datetime.fromtimestamp(seconds, ZoneInfo(zone)).date()
    return day - timedelta(days=day.weekday())


def begins(day: date, zone: str) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)).timestamp())


def every(readings: list[Reading], limits: Limits) -> dict[str, float | None]:
    """The lower median of the gaps between readings, unless the limits say it."""
    times: dict[str, list[float]] = defaultdict(list)
    for node, time, _, _ in readings:
        times[node].append(time)
    found: dict[str, float | None] = {}
    for node, of in times.items():
        of.sort()
        gaps = sorted(b - a for a, b in pairwise(of) if b > a)
        found[node] = limits.every_s or (gaps[(len(gaps) - 1) // 2] if gaps else None)
    return found


def means(readings: list[Reading], quantity: str, limits: Limits) -> dict[tuple[str, int], tuple[float, int, bool]]:
    """(node, start): value, samples, measured."""
    length = WINDOWS[quantity]
    usual = every(readings, limits)
    held: dict[tuple[str, int], list[float]] = defaultdict(list)
    for node, time, volts, hertz in readings:
        value = volts if quantity == "voltage" else hertz
        if value is not None and math.isfinite(value) and value >= 0:
            held[node, math.floor(time / length) * length].append(value)
    result = {}
    for (node, start), values in held.items():
        pace = usual[node]
        needed = 1 if pace is None else max(1, math.floor(length * limits.least_samples / pace))
        mean = math.sqrt(fmean(v * v for v in values)) if quantity == "voltage" else fmean(values)
        result[node, start] = (mean, len(values), len(values) >= needed)
    return result


def excuses(incident: Incident, limits: Limits) -> bool:
    """Whether it is a dip or a swell of at most a minute, or an interruption."""
    _, _, kind, residual, duration = incident
    percent = None if residual is None else residual / limits.nominal_v * 100
    if kind == "interruption":
        return percent is None or percent < 5
    if duration is None or not 0.01 <= duration <= 60:
        return False
    if kind == "dip":
        return percent is None or percent < 90
    return kind == "swell" and (percent is None or percent > 110)


def is_flagged(node: str, start: int, length: int, incidents: Iterable[Incident]) -> bool:
    for other, time, _, _, duration in incidents:
        lasting = 0.0 if duration is None or not duration > 0 else duration
        if other == node and time < start + length and (time + lasting > start or time >= start):
            return True
    return False


def verdicts(readings: list[Reading], incidents: list[Incident], limits: Limits) -> dict[tuple[str, date, str], Any]:
    """(node, Monday, clause): windows, measured, thin, flagged, judged, outside, verdict."""
    zone = limits.time_zone
    first, last = min(r[1] for r in readings), max(r[1] for r in readings)
    mondays = [monday(first, zone)]
    while mondays[-1] < monday(last, zone):
        mondays.append(mondays[-1] + timedelta(days=7))
    found: dict[tuple[str, date, str], Any] = {}
    of_node: dict[str, list[Incident]] = defaultdict(list)
    for incident in incidents:
        if excuses(incident, limits):
            of_node[incident[0]].append(incident)
    for quantity, length in WINDOWS.items():
        by_week: dict[tuple[str, date], list[tuple[float, bool, bool]]] = defaultdict(list)
        for (node, start), (value, _, is_measured) in means(readings, quantity, limits).items():
            flagged = is_flagged(node, start, length, of_node[node])
            by_week[node, monday(start, zone)].append((value, is_measured, flagged))
        for node in {r[0] for r in readings}:
            for day in mondays:
                here = by_week[node, day]
                begin, end = begins(day, zone), begins(day + timedelta(days=7), zone)
                windows = sum(1 for at in range(begin - begin % length, end, length) if begin <= at)
                measured = [w for w in here if w[1]]
                judged = measured if limits.flagged == "keep" else [w for w in measured if not w[2]]
                for clause, low, high, share in _clauses(quantity, limits):
                    outside = sum(1 for value, _, _ in judged if not low <= value <= high)
                    found[node, day, clause] = (
                        windows,
                        len(measured),
                        len(here) - len(measured),
                        sum(1 for w in measured if w[2]),
                        len(judged),
                        outside,
                        _verdict(outside, len(judged), windows, share, limits),
                    )
    return found


def _clauses(quantity: str, limits: Limits) -> list[tuple[str, float, float, Fraction]]:
    volts, hertz = limits.nominal_v, limits.nominal_hz
    if quantity == "voltage":
        ranges = ((volts * 0.9, volts * 1.1), (volts * 0.85, volts * 1.1))
    elif limits.system == "island":
        ranges = ((hertz * 0.98, hertz * 1.02), (hertz * 0.85, hertz * 1.15))
    else:
        ranges = ((hertz * 0.99, hertz * 1.01), (hertz * 0.94, hertz * 1.04))
    normal, extreme = ranges
    return [(f"{quantity}-95", *normal, Fraction(95, 100)), (f"{quantity}-100", *extreme, Fraction(1))]


def _verdict(outside: int, judged: int, windows: int, share: Fraction, limits: Limits) -> str:
    if Fraction(outside) > (1 - share) * windows:
        return "fail"
    if judged < limits.least_coverage * windows:
        return "too little data"
    return "pass" if Fraction(judged - outside, judged) >= share else "fail"


def zones(readings: list[Reading], limits: Limits) -> dict[tuple[str, date], list[float]]:
    """(node, Monday): seconds in zone 1, 2, 3."""
    usual = every(readings, limits)
    (v_low, v_high), (v_least, v_most) = [(c[1], c[2]) for c in _clauses("voltage", limits)]
    (f_low, f_high), (f_least, f_most) = [(c[1], c[2]) for c in _clauses("frequency", limits)]
    complete: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for node, time, volts, hertz in readings:
        complete[node].append((time, math.nan if volts is None else volts, math.nan if hertz is None else hertz))
    found: dict[tuple[str, date], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for node, rows in complete.items():
        rows.sort()
        pace = usual[node] or 0.0
        for number, (time, volts, hertz) in enumerate(rows):
            if not (math.isfinite(volts) and math.isfinite(hertz) and volts >= 0 and hertz >= 0):
                continue
            until = rows[number + 1][0] - time if number + 1 < len(rows) else pace
            if v_low <= volts <= v_high and f_low <= hertz <= f_high:
                zone = 0
            elif v_least <= volts <= v_most and f_least <= hertz <= f_most:
                zone = 1
            else:
                zone = 2
            found[node, monday(time, limits.time_zone)][zone] += min(until, 2 * pace)
    return found


def stamp(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
