"""The parts of the matching benchmark as cases; a wrong answer is a failure of its row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final

from tieline.bench.load.job import Failure, Generator, Metrics
from tieline.bench.machine import versions
from tieline.bench.match import effort as efforts
from tieline.bench.match.broker import PLAIN, WITH_NUMBA, WITHOUT_NUMBA, Compare, unpacked
from tieline.bench.match.effort import PARTS, MatchEffort, end_name, update_name
from tieline.bench.match.engines import Numba, absent_engines
from tieline.bench.match.index_jobs import NO_BROKER, Search, Update
from tieline.bench.match.shapes import EVENT_TYPE, Shape, Spread
from tieline.bench.match.workload import Configuration, counted
from tieline.bench.peers.brokers import Tieline
from tieline.bench.peers.peer import Instance
from tieline.bench.suite.declaration import Case, Running, Schedule
from tieline.bench.suite.results import Row, rows_of

_BUDGET_S: Final = 1_200.0
#: About how long an engine takes for a million boxes beside what is measured, and a broker to load 100k conditions.
_MILLION_S, _LOADING_S = 4.0, 12.0


def make_plan(parts: Sequence[str] = tuple(PARTS), *, quick: bool) -> Schedule:
    """What is measured in these parts."""
    effort = efforts.QUICK if quick else efforts.FULL
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
            seconds=len(engines) * (2 * effort.search_s + _MILLION_S * configuration.subscriptions / efforts.LARGE),
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
            seconds=len(engines) * (1.0 + _MILLION_S * configuration.subscriptions / efforts.LARGE),
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
        instances = [Instance(Tieline(EVENT_TYPE, without=lacking.get(name, "")), None) for name in names]
        for instance in instances:
            stack.callback(instance.stop)
        plain, *others = [instance.start() for instance in instances]
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
