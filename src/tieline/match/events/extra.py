"""Libraries that only some installations have: an error that says how to get them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class ExtraNeeded(ImportError):
    """A configuration asks for something that is not installed."""


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Around an import: which extra brings what is imported."""
    try:
        yield
    except ImportError as problem:
        raise ExtraNeeded(f"{problem.name or problem} is not installed: pip install 'tieline[{extra}]'") from problem
