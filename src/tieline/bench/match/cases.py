"""The parts of the matching benchmark as cases, and with how much effort; a wrong answer is a failure of its row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from tieline.bench.brokers import Tieline
from tieline.bench.load.job import Failure, Generator, Metrics
from tieline.bench.machine import versions
from tieline.bench.match.broker import PLAIN, WITH_NUMBA, WITHOUT_NUMBA, Compare, unpacked
from tieline.bench.match.engines import ENGINES, Numba, OurIndex, Rtree, Scan, absent_engines, present_engines
from tieline.bench.match.index_jobs import NO_BROKER, Search, Update
from tieline.bench.match.shapes import EVENT_TYPE, SPREADS, Shape, Spread
from tieline.bench.match.workload import Configuration, counted
from tieline.bench.peer import Instance
from tieline.bench.suite.declaration import Case, Running, Schedule
from tieline.bench.suite.results import Row, rows_of

PARTS: Final = {
    "engine": "the index alone, beside brute force, rtree and a scan of predicates: latency, batches, exactness",
    "update": "what changes of the index cost: insert, delete, build, rebuild, memory",
    "end": "a broker with 100k conditions and real sockets, beside one with plain topics",
}
#: Numbers of subscriptions.
SMALL, MANY, LARGE = 3_000, 100_000, 1_000_000
#: The configuration that goals and pictures are about; 3 attributes, 0.1 %.
HEADLINE: Final = Configuration(subscriptions=LARGE, attributes=3, selectivity=0.001)
COLUMNS: Final = (
    *(
        Configuration(subscriptions=LARGE, attributes=attributes, selectivity=selectivity)
        for attributes in (2, 3, 6)
        for selectivity in (0.0001, 0.001, 0.01)
    ),
    Configuration(subscriptions=LARGE, attributes=3, selectivity=0.001, kind="G"),
)
CONFIGURATIONS: Final = tuple(
    column.with_subscriptions(number) for number in (SMALL, MANY, LARGE) for column in COLUMNS
)
_EXTREMES: Final = (COLUMNS[0], COLUMNS[8])


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchEffort:
    """How much is done."""

    configurations: Sequence[Configuration] = CONFIGURATIONS
    #: Passes over the events, and seconds for them; the batches get as long again.
    passes: int = 4
    search_s: float = 0.6
    #: Sizes and attributes of the indexes whose changes are measured.
    update_sizes: Sequence[int] = (SMALL, MANY, LARGE)
    update_attributes: Sequence[int] = (2, 3, 6)
    #: The most subscriptions that are also scanned predicate by predicate; reading them takes longest of all.
    scanned: int = MANY
    spreads: Sequence[Spread] = SPREADS
    #: Subscriptions, clients that hold them, and events, in brokers.
    conditions: int = MANY
    clients: int = 100
    events: int = 16_384
    #: Whether brokers are also measured as if numba were not installed, where it is.
    without_numba: bool = True
    spell_s: float = 1.0
    beside_s: float = 0.3
    repetitions: int = 5

    def searches(self) -> list[tuple[Configuration, list[str]]]:
        """Configurations, and the engines that are measured in each."""
        return [
            (
                configuration,
                [
                    name
                    for name in present_engines()
                    if ENGINES[name].takes(configuration)
                    and (name != Scan.name or configuration.subscriptions <= self.scanned)
                ],
            )
            for configuration in self.configurations
        ]

    def updates(self) -> list[tuple[Configuration, list[str]]]:
        """The same for changes: what can be changed at all."""
        changeable = [name for name in present_engines() if issubclass(ENGINES[name], OurIndex | Rtree)]
        wanted = [
            Configuration(subscriptions=number, attributes=attributes, selectivity=HEADLINE.selectivity)
            for number in self.update_sizes
            for attributes in self.update_attributes
        ]
        return [(each, [name for name in changeable if ENGINES[name].takes(each)]) for each in wanted]


FULL: Final = MatchEffort()
QUICK: Final = MatchEffort(
    configurations=(
        *(column.with_subscriptions(SMALL) for column in _EXTREMES),
        *(HEADLINE.with_subscriptions(number) for number in (SMALL, MANY, LARGE)),
    ),
    passes=3, search_s=0.3, update_attributes=(3,), scanned=SMALL, without_numba=False, spell_s=0.5, beside_s=0.2,
    repetitions=2,
)  # fmt: skip


def update_name(configuration: Configuration) -> str:
    """The key of rows about changes."""
    return f"update-{configuration.name}"


def end_name(spread: Spread, conditions: int) -> str:
    """The key of rows about brokers."""
    return f"end-{spread.replace(' ', '-')}-{counted(conditions)}"


_BUDGET_S: Final = 1_200.0
#: About how long an engine takes for a million boxes beside what is measured, and a broker to load 100k conditions.
_MILLION_S, _LOADING_S = 4.0, 12.0


def make_plan(parts: Sequence[str] = tuple(PARTS), *, quick: bool) -> Schedule:
    """What is measured in these parts."""
    effort = QUICK if quick else FULL
    generator = Generator()
    cases = {"engine": _engine(effort, generator), "update": _update(effort), "end": _end(effort)}
    return Schedule(
        cases=[case for name in PARTS if name in parts for case in cases[name]],
        quick=quick,
        versions=versions("numpy", "numba", "rtree"),
        # its absence is that of brokers with it, too
        absent=absent_engines() | ({} if Numba.is_present() else {WITH_NUMBA: Numba.install}),
        budget_s=_BUDGET_S,
        resources=[generator],
    )


def _engine(effort: MatchEffort, generator: Generator) -> Iterator[Case]:
    for configuration, engines in effort.searches():
        title = f"{counted(configuration.subscriptions)}, {configuration.column}"
        yield Case(
            rows=rows_of(configuration.name, title, "engine", engines),
            measure=partial(_search, configuration, effort, generator),
            seconds=len(engines) * (2 * effort.search_s + _MILLION_S * configuration.subscriptions / LARGE),
        )


def _search(
    configuration: Configuration, effort: MatchEffort, generator: Generator, run: Running, rows: list[Row]
) -> None:
    run.step(f"{rows[0].title}: {', '.join(row.peer for row in rows)}")
    for row in rows:
        job = Search(configuration=configuration, engine=row.peer, passes=effort.passes, seconds=effort.search_s)
        with run.failing([row]):
            row.repetitions.append(generator.run(job, NO_BROKER))


def _update(effort: MatchEffort) -> Iterator[Case]:
    for configuration, engines in effort.updates():
        title = f"{counted(configuration.subscriptions)}, {configuration.attributes} attributes"
        yield Case(
            rows=rows_of(update_name(configuration), title, "update", engines),
            measure=partial(_change, configuration),
            seconds=len(engines) * (1.0 + _MILLION_S * configuration.subscriptions / LARGE),
        )


def _change(configuration: Configuration, run: Running, rows: list[Row]) -> None:
    run.step(f"changes, {rows[0].title}: {', '.join(row.peer for row in rows)}")
    for row in rows:
        with run.failing([row]), Generator() as generator:
            row.repetitions.append(generator.run(Update(configuration=configuration, engine=row.peer), NO_BROKER))


def _end(effort: MatchEffort) -> Iterator[Case]:
    with_conditions = [WITH_NUMBA] if Numba.is_present() else [WITHOUT_NUMBA]
    if Numba.is_present() and effort.without_numba:
        with_conditions.append(WITHOUT_NUMBA)
    for spread in effort.spreads:
        title = f"{counted(effort.conditions)}, {spread}"
        peers = [PLAIN, *with_conditions]
        turn_s = effort.spell_s + 2 * effort.beside_s + 0.5
        yield Case(
            rows=rows_of(end_name(spread, effort.conditions), title, "end", peers),
            measure=partial(_compare, spread, effort),
            seconds=_LOADING_S + effort.repetitions * len(peers) * turn_s,
        )


def _compare(spread: Spread, effort: MatchEffort, run: Running, rows: list[Row]) -> None:
    run.step(f"brokers with {rows[0].title}")
    found = unpacked(_run_brokers(spread, effort, [row.peer for row in rows]))
    for row in rows:
        row.repetitions += found[row.peer]


def _run_brokers(spread: Spread, effort: MatchEffort, names: list[str]) -> Metrics:
    """Brokers by the names of their rows, the plain one first; what killed one of them is told in its own words."""
    with ExitStack() as stack:
        generator = stack.enter_context(Generator())
        lacking = {WITHOUT_NUMBA: "numba"}
        instances = [Instance(Tieline(EVENT_TYPE, without=lacking.get(name, ""))) for name in names]
        plain, *others = [stack.enter_context(instance) for instance in instances]
        job = Compare(
            shape=Shape(spread=spread, subscriptions=effort.conditions, clients=effort.clients, events=effort.events),
            with_conditions=tuple(zip(names[1:], others, strict=True)),
            seconds=effort.spell_s,
            repetitions=effort.repetitions,
            beside_s=effort.beside_s,
        )
        try:
            return generator.run(job, plain)
        except Failure as failure:
            obituaries = [obituary for instance in instances if (obituary := instance.obituary())]
            raise Failure("; ".join(obituaries) or str(failure)) from failure
