"""The papers by name.  Each is loaded when it is asked for, so that an extra is missed by those who need it alone."""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple

from tieline.bench.papers.frame.declaration import Paper


class _Place(NamedTuple):
    """Where a paper is declared as ``PAPER``, and the extra that brings what it needs."""

    module: str
    extra: str = "bench"


#: In the order in which all of them are run.
PAPERS: Final = {
    "heat": _Place("tieline.bench.papers.heat"),
    "priority-qos": _Place("tieline.bench.papers.priority_qos"),
    "ring": _Place("tieline.bench.papers.ring"),
    "psp": _Place("tieline.bench.papers.psp", extra="plan"),
    "rpcp": _Place("tieline.bench.papers.rpcp", extra="plan"),
}
#: Names for several.
GROUPS: Final = {"priority": ("heat", "priority-qos"), "all": tuple(PAPERS)}


def extra_of(name: str) -> str:
    """What brings the libraries of a paper."""
    return PAPERS[name].extra


def load(name: str) -> Paper:
    """The paper of a name; an ``ImportError`` says which library it lacks."""
    paper = import_module(PAPERS[name].module).PAPER
    assert isinstance(paper, Paper)
    return paper
