"""What priority is to achieve, and whether it did: computed from the rows, never stated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tieline.bench.peers import BASELINE, SUBJECT
from tieline.bench.priority import cost, slow, thin
from tieline.bench.targets import Numbers

#: Urgent p99 on the thin link, and beside a flood, against mosquitto's.
THIN_TIMES = 20.0
BUSY_SHARE = 1 / 3
#: The fast path keeps at least so much of its throughput; paced work may cost so much more.
KEPT = 0.9
COSTLIER = 1.1
#: Others are unaffected by a slow reader if their median hardly moves.
UNAFFECTED = 1.2


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal with what was measured for it."""

    text: str
    limit: float
    measured: float | None
    unit: str
    at_least: bool = False

    @property
    def verdict(self) -> str:
        """``met``, ``not met`` or ``not measured``."""
        if self.measured is None:
            return "not measured"
        return "met" if (self.measured >= self.limit if self.at_least else self.measured <= self.limit) else "not met"


def judge(numbers: Numbers) -> list[Goal]:
    """Every goal with its verdict."""
    return [*_thin(numbers), *_busy(numbers), *_slow(numbers), *_cost(numbers)]


def _thin(numbers: Numbers) -> Iterator[Goal]:
    for case in thin.CASES:
        if case.peer != SUBJECT:
            continue
        ours = numbers.value(case.name, SUBJECT, "urgent_p99_ms")
        # mosquitto knows no properties, and over TLS it is no faster
        theirs = numbers.value(f"thin-{case.where}", BASELINE, "urgent_p99_ms")
        times = theirs / ours if ours and theirs is not None else None
        where = f"thin link, {case.title}"
        yield Goal(f"{where}: mosquitto's urgent p99, times ours", THIN_TIMES, times, "x", at_least=True)
        for text, limit, metric, unit in (
            ("urgent messages beyond the stated bound", 0.0, "over_bound", ""),
            ("longest wait of the low class", thin.LOW_TIMEOUT_S * 1e3, "low_max_ms", "ms"),
            ("messages neither received nor named as dropped", 0.0, "unaccounted", ""),
            ("messages twice, or out of their flow's order", 0.0, "disordered", ""),
        ):
            yield Goal(f"{where}: {text}", limit, numbers.value(case.name, SUBJECT, metric), unit)
        dropped = numbers.value(case.name, SUBJECT, "drops_named")
        yield Goal(f"{where}: overflow of bulk, as named drops", 1.0, dropped, "", at_least=True)


def _busy(numbers: Numbers) -> Iterator[Goal]:
    share = numbers.ratio("busy", "urgent_p99_ms", SUBJECT, BASELINE)
    yield Goal("busy broker: urgent p99, times mosquitto's", BUSY_SHARE, share, "x")


def _slow(numbers: Numbers) -> Iterator[Goal]:
    ahead = numbers.value("slow", SUBJECT, "ahead_max_bytes")
    yield Goal("slow reader: bytes taken before an urgent message", float(slow.ahead_bound()), ahead, "B")
    kept = numbers.value("strangers", slow.BESIDE, "rate_ratio")
    yield Goal("slow reader: throughput of others, with it : without", KEPT, kept, "x", at_least=True)
    moved = numbers.value("strangers", slow.BESIDE, "p50_ratio")
    yield Goal("slow reader: median latency of others, with it : without", UNAFFECTED, moved, "x")


def _cost(numbers: Numbers) -> Iterator[Goal]:
    for case in cost.CASES:
        if case.is_saturated:
            kept = numbers.value(case.name, cost.HAVING, "rate_ratio")
            yield Goal(f"cost, {case.title}: throughput with classes : without", KEPT, kept, "x", at_least=True)
        else:
            more = numbers.value(case.name, cost.HAVING, "cpu_ratio")
            yield Goal(f"cost, {case.title}: CPU per message with classes : without", COSTLIER, more, "x")
