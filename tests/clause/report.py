"""Prints how far the source and the tests cover both specifications; ``make spec`` runs it.

Exit status 1 means that a statement binding a server has neither a test nor an excuse, that an excuse is out of date,
or that a tag or a test names a statement that does not exist.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.clause.catalog import Specification, Statement, load
from tests.clause.harvest import Harvest, read_source, read_tests

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What was found out about one specification."""

    specification: Specification
    claimed: list[Statement]
    deviating: list[Statement]
    tested: list[Statement]
    excused: list[Statement]
    missing: list[Statement]
    #: Tested beyond duty: what the server does when a client breaks a statement that binds only clients.
    extra: int

    @classmethod
    def of(cls, specification: Specification, harvest: Harvest) -> Coverage:
        """Compare the list with the harvest."""
        ours = specification.ours
        tested = [statement for statement in ours if statement.id in harvest.tests]
        untested = [statement for statement in ours if statement.id not in harvest.tests]
        return cls(
            specification=specification,
            claimed=[statement for statement in ours if statement.id in harvest.claims],
            deviating=[statement for statement in ours if statement.id in harvest.deviations],
            tested=tested,
            excused=[statement for statement in untested if statement.why_not],
            missing=[statement for statement in untested if not statement.why_not],
            extra=sum(id_ in harvest.tests for id_, one in specification.statements.items() if not one.is_ours),
        )


def faults(specifications: Sequence[Specification], harvest: Harvest) -> list[str]:
    """Everything that contradicts the lists, one sentence each."""
    known = {id_: statement for one in specifications for id_, statement in one.statements.items()}
    found = list(harvest.faults)
    for places in (harvest.claims, harvest.deviations, harvest.tests):
        found += [f"{where[0]}: no statement is called {id_}" for id_, where in places.items() if id_ not in known]
    found += [
        f"{statement.id} is excused and tested ({harvest.tests[statement.id][0]}): drop the excuse"
        for statement in known.values()
        if statement.why_not and statement.id in harvest.tests
    ]
    found += [
        f"{statement.id} binds only a {statement.binds}: it needs no excuse"
        for statement in known.values()
        if statement.why_not and not statement.is_ours
    ]
    return found


def show(coverage: Coverage, harvest: Harvest, *, verbose: bool) -> None:
    """Print one specification."""
    ours = len(coverage.specification.ours)
    print(f"{coverage.specification.title}: {len(coverage.specification.statements)} statements, {ours} bind a server")
    print(f"  claimed in the source {len(coverage.claimed):4}")
    print(f"  tested                {len(coverage.tested):4}   (and {coverage.extra} that bind only clients)")
    print(f"  excused               {len(coverage.excused):4}")
    print(f"  missing               {len(coverage.missing):4}")
    for statement in coverage.excused:
        print(f"    excused  {statement.id}: {statement.why_not}")
    for statement in coverage.deviating:
        print(f"    deviates {statement.id} ({', '.join(harvest.deviations[statement.id])}): {statement.summary}")
    for statement in coverage.missing:
        print(f"    missing  {statement.id}: {statement.summary}")
    if verbose:
        for statement in coverage.tested:
            print(f"    tested   {statement.id}: {', '.join(harvest.tests[statement.id])}")
        for statement in coverage.specification.ours:
            if statement not in coverage.claimed:
                print(f"    unclaimed {statement.id}: {statement.summary}")


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Read, print, and say whether everything is covered."""
    parser = argparse.ArgumentParser(prog="tests.clause.report", description=__doc__)
    parser.add_argument("-v", "--verbose", action="store_true", help="also list where each statement is tested")
    verbose: bool = parser.parse_args(arguments).verbose

    harvest = Harvest()
    read_source(root / "src" / "tieline", root, harvest)
    read_tests(root / "tests", root, harvest)
    specifications = load()

    is_covered = True
    for specification in specifications:
        coverage = Coverage.of(specification, harvest)
        show(coverage, harvest, verbose=verbose)
        is_covered = is_covered and not coverage.missing
    wrong = faults(specifications, harvest)
    for sentence in wrong:
        print(f"fault: {sentence}")
    return 0 if is_covered and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
