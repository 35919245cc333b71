"""What the reproduction of a paper consists of: experiments, the figures drawn of them, claims, parameters.

Everything here is a value.  A paper prints nothing, writes no file and draws into axes that it is given: progress,
files, style, verdicts and pages are the frame's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

from tieline.bench.papers.frame.table import Table
from tieline.bench.papers.frame.verdicts import Judgement

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Effort = Literal["quick", "full", "long"]
Origin = Literal["paper", "ours", "fitted"]
Tables = Mapping[str, Table]
Panel = Callable[["Axes"], None]
Panels = Callable[[Tables], Mapping[str, Panel]]
T = TypeVar("T")
#: What an experiment may set: a number, a word, or several.
Stated = str | float | Collection[str] | Collection[float]
N = TypeVar("N", bound=Stated)


def _silent(_told: object) -> None:
    """What hears of progress and of parameters where nobody keeps them."""


def _in_words(value: Stated) -> str:
    """A value as it stands on a page; of seeds that follow each other the first and the last."""
    if isinstance(value, range) and len(value) > 2:
        return f"{value[0]} to {value[-1]}"
    if isinstance(value, Collection) and not isinstance(value, str):
        return ", ".join(map(_in_words, value))
    return value if isinstance(value, str) else f"{value:,.6g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command was asked for: how much is to be done, and from which seed on."""

    effort: Effort = "quick"
    seed: int = 0
    #: Hears what an experiment is doing now.
    step: Callable[[str], None] = field(default=_silent, compare=False)
    #: Hears of parameters that an experiment sets for itself; they become part of the record.
    stated: Callable[[Parameter], None] = field(default=_silent, compare=False)

    def state(self, name: str, value: Stated, unit: str = "", *, origin: Origin = "ours", note: str = "") -> None:
        """Keep with the result what an experiment sets beside the parameters of its paper, or in their place."""
        self.stated(Parameter(name=name, value=_in_words(value), unit=unit, origin=origin, note=note))

    def choose(self, *, quick: T, full: T, long: T | None = None) -> T:
        """One of these by the effort; without a word for ``long`` it is as ``full``."""
        if self.effort == "quick":
            return quick
        return full if self.effort == "full" or long is None else long

    def chosen(self, name: str, *, quick: N, full: N, long: N | None = None, unit: str = "", note: str = "") -> N:
        """A number, or several, by the effort; kept with the result under this name."""
        value = self.choose(quick=quick, full=full, long=long)
        self.state(name, value, unit, note=note)
        return value

    def seeds(self, *, quick: int, full: int, long: int | None = None, note: str = "") -> range:
        """So many seeds, from the one that was asked for."""
        seeds = range(self.seed, self.seed + self.choose(quick=quick, full=full, long=long))
        self.state("seeds", seeds, note=note)
        return seeds


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A number or choice that shapes results, and where it is from.

    ``fitted`` means: chosen so that something of the paper comes out; agreement in that is no evidence.
    """

    name: str
    value: str | int | float
    unit: str = ""
    origin: Origin
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A small table for the page; the first ``words`` columns are words, the others numbers."""

    headings: Sequence[str]
    lines: Sequence[Sequence[str]]
    words: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sentence of a paper beside what was measured, judged by a rule.

    ``why`` is always there, because a verdict may turn with the next machine: it says why the sentence does not hold,
    or under which assumption it would, and is shown where it is not reproduced.
    """

    where: str
    paper_says: str
    we_measure: str
    judgement: Judgement
    why: str


def _no_claims(_tables: Tables) -> Iterable[Claim]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure or a table of the paper beside ours."""

    #: Stem of its files.
    name: str
    title: str
    #: Names of the tables it is drawn from: the first of them may hold what the others explain.
    tables: Sequence[str]
    caption: str
    #: Names of fitted parameters that shape it.
    fitted: Sequence[str] = ()
    panels: Panels | None = None
    sheet: Callable[[Tables], Sheet] | None = None
    claims: Callable[[Tables], Iterable[Claim]] = _no_claims
    #: Inches of one panel, and how many stand side by side.
    width: float = 6.0
    height: float = 4.0
    columns: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One computation, and what is drawn of it."""

    name: str
    title: str
    measure: Callable[[Request], Sequence[Table]]
    figures: Sequence[Figure]
    #: The same seed gives the same tables; not so where wall or CPU time is measured.
    repeatable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """All that is repeated of one paper."""

    name: str
    title: str
    citation: str
    experiments: Sequence[Experiment]
    parameters: Sequence[Parameter] = ()
    #: Package that holds ``reading.md``: what is read differently, set-ups, reasons; it has no measured number.
    package: str
    #: Libraries, and brokers to compare with, whose versions belong beside the numbers.
    libraries: Sequence[str] = ()
    peers: Sequence[str] = ()

    def figures(self) -> Iterable[tuple[Experiment, Figure]]:
        """Every figure with its experiment."""
        return ((experiment, figure) for experiment in self.experiments for figure in experiment.figures)
