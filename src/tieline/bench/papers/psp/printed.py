"""The three formulations as the paper prints them, beside the corrected ones, on small instances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tieline.bench.papers.frame import verdicts
from tieline.bench.papers.frame.declaration import Claim, Request, Sheet, Tables
from tieline.bench.papers.frame.table import Cell, Table
from tieline.bench.plan.bounds import scarce
from tieline.plan.arrays import arrays
from tieline.plan.models.solve import solve_model
from tieline.plan.plan import SAME
from tieline.plan.run import Run

#: As printed, and with the corrections.
PAIRS: Final = {"f1-paper": "f1", "f2-paper": "f2", "tb-paper": "tb"}
_WORDS: Final = {"f1-paper": "F1 (1) to (7)", "f2-paper": "F2 (22) to (31)", "tb-paper": "T and B (8) to (19)"}


def measure(request: Request) -> list[Table]:
    """Every printed formulation and its correction on the same instances, to the optimum."""
    rows: list[tuple[Cell, ...]] = []
    for seed in request.seeds(quick=12, full=60):
        request.step(f"instance {seed}")
        instance = scarce(seed)
        compact = arrays(instance)
        for printed, corrected in PAIRS.items():
            theirs, ours = (solve_model(compact, Run(), model=model) for model in (printed, corrected))
            value, true = theirs.notes.get("model_value"), ours.notes.get("model_value")
            # corrected formulations may work in two stages, and the value of the last one is about cost alone
            is_priced = instance.unmet_cost is not None or not ours.unmet
            best = ours.objective if printed != "f2-paper" else float(true) if true is not None and is_priced else None
            rows.append((
                printed, seed, None if value is None else float(value), best, bool(theirs.notes.get("infeasible", 0.0)),
                int(theirs.notes.get("overloaded_links", 0)), theirs.unmet, ours.unmet,
            ))  # fmt: skip
    columns = {
        "model": "formulation, as printed", "seed": "seed", "value": "its value, if it has one",
        "corrected": "value of the corrected formulation, if the two can be compared",
        "infeasible": "whether it has no solution",
        "overloaded": "links that its answer overloads, both directions together",
        "unmet": "requests that its plan leaves unmet",
        "corrected_unmet": "requests that the corrected plan leaves unmet",
    }  # fmt: skip
    return [Table("printed", columns, rows)]


def _counts(table: Table) -> tuple[int, int, int, int, int]:
    """Instances; without a solution; with an overload; with a value below any plan's; that leave more unmet."""
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]

    def is_low(row: dict[str, Cell]) -> bool:
        # a number without a part behind the point is a whole one once it has been in a file
        value, best = row["value"], row["corrected"]
        if value is None or best is None:
            return False
        return float(value) < float(best) - SAME * max(1.0, abs(float(best)))

    return (
        len(rows),
        sum(bool(row["infeasible"]) for row in rows),
        sum(bool(row["overloaded"]) for row in rows),
        sum(map(is_low, rows)),
        sum(int(row["unmet"] or 0) > int(row["corrected_unmet"] or 0) for row in rows),
    )


def sheet(tables: Tables) -> Sheet:
    """What becomes of each formulation."""
    lines = []
    for model, words in _WORDS.items():
        of, *counts = _counts(tables["printed"].where(model=model))
        lines.append([words, str(of), *map(str, counts)])
    headings = ("as printed", "instances", "no solution", "answer overloads a link", "value below every plan's",
                "plan serves fewer than it could")  # fmt: skip
    return Sheet(headings=headings, lines=lines)


def claims(tables: Tables) -> Iterator[Claim]:
    """Whether the printed formulations state the problem."""
    table = tables["printed"]
    of, infeasible, overloaded, _low, fewer = _counts(table.where(model="f2-paper"))
    yield Claim(
        where="(22) to (31)",
        paper_says="F2 states the problem, with cost by link.",
        we_measure=f"as printed {infeasible} of {of} small instances have no solution, the answer overloads a link on "
        f"{overloaded}, and the plan that is read from it serves fewer than it could on {fewer}",
        judgement=verdicts.always(of - max(fewer, infeasible + overloaded), of),
        why="any publisher may emit any topic, as in F1, and (23) makes them do so: it lets one arc leave a source, "
        "dummies included, so where one request of a topic has to stay unmet the others are served by a publisher that "
        "does not have it, or, where there is none that can, there is no solution. With at most one real arc, from the "
        "own source, and with capacity shared by both directions, of which (29) counts each by itself, it states it",
    )
    of, _none, _over, low, fewer = _counts(table.where(model="tb-paper"))
    yield Claim(
        where="(8) to (19)",
        paper_says="The problem can be optimized node by node, if routing decisions are enforced downpath.",
        we_measure=f"as printed nothing enforces them: the value is below every plan's on {low} of {of} small "
        f"instances, and the plan serves fewer than it could on {fewer}",
        judgement=verdicts.always(of - max(low, fewer), of),
        why="a broker's best answer is to let nothing in; with one variable for what leaves a node and enters the "
        "next, the blocks are F1 again",
    )
