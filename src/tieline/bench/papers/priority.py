"""The two priority papers: experiment after experiment on brokers of their own, and each sentence beside a number.

"Reproduced" means that the direction the paper states is what the numbers show, by the margin given with the rule; the
papers' absolute numbers belong to their machines.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

from tieline.bench.brokers import BASELINE, SUBJECT, known_peers
from tieline.bench.load.job import Failure
from tieline.bench.metrics import three_digits
from tieline.bench.papers import feedback, groups, wanted_topics
from tieline.bench.papers.feedback import FREQUENCIES, LATE_S, SEVERAL, Figures345
from tieline.bench.papers.reproduction import Claim, Reproduction
from tieline.bench.papers.wanted_topics import Figure2
from tieline.bench.suite.runner import Watcher


@dataclass(slots=True, kw_only=True)
class PriorityReproduction(Reproduction):
    """The numbers of the papers' figures."""

    title: ClassVar[str] = "The priority papers, reproduced"

    heat: Figure2 | None = None
    feedback: Figures345 | None = None
    #: Mean delay of each group in microseconds, by experiment: every 50 ms, and saturated.
    groups: dict[str, list[float]] = field(default_factory=dict)
    groups_saturated: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityPapersEffort:
    """How much is done."""

    bursts: int
    episodes: int
    group_s: float


FULL = PriorityPapersEffort(bursts=5, episodes=5, group_s=5.0)
QUICK = PriorityPapersEffort(bursts=1, episodes=1, group_s=1.0)


def run(*, quick: bool, watcher: Watcher) -> PriorityReproduction:
    """All experiments; one that fails is reported and the others go on."""
    began = time.monotonic()
    effort = QUICK if quick else FULL
    known = known_peers()
    versions = {name: known[name].version() for name in (SUBJECT, BASELINE)}
    installed = {name: version for name, version in versions.items() if version is not None}
    found = PriorityReproduction.begun("tieline-reproduce-priority-1", installed, quick=quick)
    cases = [case for case in groups.CASES if case.peer in found.versions]
    watcher.planned(2 + 2 * len(cases))
    watcher.step("Figure 2: heat, taxonomy, FIFO")
    with _noting(found, "Figure 2"):
        found.heat = wanted_topics.run(repetitions=effort.bursts, has_mosquitto=BASELINE in found.versions)
    watcher.step("Figures 3, 4, 5: time period and distribution frequency")
    with _noting(found, "Figures 3, 4, 5"):
        found.feedback = feedback.run(repetitions=effort.episodes)
    for is_saturated, means in ((False, found.groups), (True, found.groups_saturated)):
        for case in cases:
            title = f"{case.name}, {'saturated' if is_saturated else 'every 50 ms'}"
            watcher.step(f"Figures 7, 8, 9: {title}")
            with _noting(found, title):
                means[case.name] = groups.run(case, is_saturated=is_saturated, seconds=effort.group_s)
    found.seconds = round(time.monotonic() - began, 1)
    found.claims = hold(found)
    return found


@contextlib.contextmanager
def _noting(found: PriorityReproduction, name: str) -> Iterator[None]:
    try:
        yield
    except (Failure, OSError) as failure:
        found.failures[name] = str(failure)


#: A delay that is to be smaller is at most so much of the other: less would be noise.
CLEARLY = 0.9
#: Two numbers are the same if they differ by less than this part.
ALIKE = 0.2


def hold(found: PriorityReproduction) -> list[Claim]:
    """Every claim with its verdict."""
    claims: list[Claim] = []
    claims += _figure2(found.heat) if found.heat else _unmeasured("2")
    claims += _figures345(found.feedback) if found.feedback else _unmeasured("3, 4, 5")
    for title, means in (("every 50 ms", found.groups), ("saturated", found.groups_saturated)):
        claims += [*_figure7(means, title), *_figure8(means, title), *_figure9(means, title)]
    return claims


def _verdict(holds: bool) -> str:
    return "reproduced" if holds else "not reproduced"


def _unmeasured(figure: str) -> Iterator[Claim]:
    yield Claim(f"Fig. {figure}", "", "", "not measured")


def _figure2(heat: Figure2) -> Iterator[Claim]:
    delays = heat.delays_ms
    first, last = heat.counts[0], heat.counts[-1]
    growth = {name: values[-1] - values[0] for name, values in delays.items()}
    yield Claim(
        "Fig. 2",
        "Without priority the delay of high-priority topics grows by multiples with the number of distributions; "
        "with heat priority it grows smoothly.",
        f"{first} to {last} messages: FIFO {_series(delays['fifo'])}, heat {_series(delays['heat'])} ms",
        _verdict(growth["heat"] <= 0.5 * growth["fifo"]),
    )
    yield Claim(
        "Fig. 2",
        "Heat priority is faster at higher levels than a taxonomy of classes.",
        f"at {last} messages: taxonomy {three_digits(delays['taxonomy'][-1])} ms, "
        f"heat {three_digits(delays['heat'][-1])} ms",
        _verdict(delays["heat"][-1] <= CLEARLY * delays["taxonomy"][-1]),
    )
    yield Claim(
        "Fig. 2",
        "Fewer packets are lost at lower levels than with the taxonomy.",
        f"queue for a quarter of the burst: taxonomy loses {heat.lost_low['taxonomy']:.0%}, heat "
        f"{heat.lost_low['heat']:.0%} of the lowest topics (of all: {heat.lost_all['taxonomy']:.0%}, "
        f"{heat.lost_all['heat']:.0%})",
        _verdict(heat.lost_low["heat"] < heat.lost_low["taxonomy"]),
    )


def _figures345(found: Figures345) -> Iterator[Claim]:
    shortest, longest = found.periods_s[0], found.periods_s[-1]
    high, late = found.high_ms[SEVERAL], found.late_share[SEVERAL]
    span = f"periods of {shortest:g} to {longest:g} s"
    yield Claim(
        "Fig. 3",
        "The longer the time period, the better for high-priority messages.",
        f"{span}: high {_series(high)} ms",
        _verdict(high[-1] <= CLEARLY * high[0]),
    )
    yield Claim(
        "Fig. 3",
        "A period that is too long makes low-priority messages time out.",
        f"{span}: {', '.join(f'{share:.0%}' for share in late)} of the low messages took more than {LATE_S:g} s",
        _verdict(late[-1] > late[0]),
    )
    slow = found.ratio[FREQUENCIES[0]]
    yield Claim(
        "Fig. 4",
        "Extending the period brings the low-priority delay ratio to a steady state.",
        f"{span}, frequency {FREQUENCIES[0]}: {_series(slow)} times the unblocked delay",
        _verdict(abs(slow[-1] - slow[-2]) <= ALIKE * slow[-1]),
    )
    middle = len(found.periods_s) // 2
    by_frequency = [found.ratio[frequency][middle] for frequency in FREQUENCIES]
    yield Claim(
        "Fig. 5",
        "A higher distribution frequency brings the delay ratio closer to 1.",
        f"period {found.periods_s[middle]:g} s, frequency {', '.join(map(str, FREQUENCIES))}: {_series(by_frequency)}",
        _verdict(_descends(by_frequency) and by_frequency[-1] <= CLEARLY * by_frequency[0]),
    )
    nearest = min(min(values) for values in found.ratio.values())
    yield Claim(
        "Fig. 5",
        "The ratio can be brought as close to 1 as possible.",
        f"nearest: {three_digits(nearest)}; what the kernel holds before the port stays ahead of every message",
        _verdict(nearest <= 2.0),
    )


def _figure7(groups: dict[str, list[float]], title: str) -> Iterator[Claim]:
    if not {"QoS 0", "QoS 1", "QoS 2"} <= groups.keys():
        yield from _unmeasured(f"7, {title}")
        return
    means = [sum(groups[f"QoS {qos}"]) / len(groups[f"QoS {qos}"]) for qos in range(3)]
    paper = "QoS 0 below 0.1 ms end to end, QoS 1 more, QoS 2 near 0.5 ms."
    if title == "saturated":
        paper = "(not in the paper) QoS 0 below QoS 1 below QoS 2."
        holds = means[0] < means[1] < means[2]
    else:
        holds = means[0] < 100 and means[0] < means[1] < means[2]
    yield Claim(f"Fig. 7, {title}", paper, f"means {_series(means)} µs", _verdict(holds))
    for name in ("QoS 0", "QoS 1", "QoS 2", "QoS 0, header byte"):
        if name in groups:
            yield Claim(
                f"Fig. 7, {title}",
                f"{name}: the higher the level, the shorter the delay.",
                f"groups 1 to 4: {_series(groups[name])} µs",
                _verdict(_descends(groups[name])),
            )


def _figure8(groups: dict[str, list[float]], title: str) -> Iterator[Claim]:
    values = groups.get("equal levels")
    if values is None:
        yield from _unmeasured(f"8, {title}")
        return
    yield Claim(
        f"Fig. 8, {title}",
        "Groups 3 and 4 (higher levels) come first; groups 1 and 2 (equal) in order of connection.",
        f"groups 1 to 4: {_series(values)} µs",
        _verdict(values[3] < values[2] < min(values[:2]) and values[0] <= (1 + ALIKE) * values[1]),
    )


def _figure9(groups: dict[str, list[float]], title: str) -> Iterator[Claim]:
    ours, stock = groups.get("QoS 0"), groups.get("mosquitto")
    if ours is None or stock is None:
        yield from _unmeasured(f"9, {title}")
        return
    plain = groups.get("without levels", [])
    beside = f"; Tieline without levels {_series(plain)} µs" if plain else ""
    yield Claim(
        f"Fig. 9, {title}",
        "Stock mosquitto serves in order of connection: group 4 is slowest.",
        f"groups 1 to 4: {_series(stock)} µs",
        _verdict(stock[3] == max(stock)),
    )
    yield Claim(
        f"Fig. 9, {title}",
        "With priority group 4 is served first.",
        f"groups 1 to 4: {_series(ours)} µs{beside}",
        _verdict(ours[3] == min(ours)),
    )
    yield Claim(
        f"Fig. 9, {title}",
        "The mean delay is lower than stock mosquitto's.",
        f"means {three_digits(sum(ours) / 4)} and {three_digits(sum(stock) / 4)} µs",
        _verdict(sum(ours) < sum(stock)),
    )


def _descends(values: Sequence[float]) -> bool:
    return all(one > other for one, other in pairwise(values))


def _series(values: Sequence[float]) -> str:
    return ", ".join(three_digits(value) for value in values)
