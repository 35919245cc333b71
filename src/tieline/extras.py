"""Libraries that only some installations have: whether one is there, and the words that say how to get it.

A broker installs little; planner, pipeline, microgrid and benchmarks are extras of the package.  Whoever needs one asks
here, so that every missing library ends in the same advice and never in a traceback.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec


class ExtraNeeded(ImportError):
    """Something was asked for that this installation does not have; the text says how to get it."""


def remedy(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'tieline[{extra}]'"


def is_installed(module: str) -> bool:
    """Whether a module could be imported; it is not imported here, which may take seconds."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


def library_in(missing: ImportError) -> str:
    """The library that an import did not find, by the name under which it is installed more often than not."""
    return (missing.name or str(missing)).partition(".")[0]


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Around an import: which extra brings what is imported."""
    try:
        yield
    except ImportError as problem:
        raise ExtraNeeded(f"{problem.name or problem} is not installed: {remedy(extra)}") from problem
