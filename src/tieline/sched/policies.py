"""Every policy that can be configured, by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tieline.sched.feedback import Feedback
from tieline.sched.levels import Rules
from tieline.sched.orders import Edf, Fifo, Heat, Strict, Taxonomy
from tieline.sched.policy import Policy

POLICIES: Final[dict[str, Callable[[Rules | None], Policy[Any]]]] = {
    Edf.name: Edf,
    Feedback.name: Feedback,
    Fifo.name: Fifo,
    Heat.name: Heat,
    Strict.name: Strict,
    Taxonomy.name: Taxonomy,
}


def names() -> list[str]:
    """The policies, in alphabetical order."""
    return sorted(POLICIES)


def make(name: str, rules: Rules | None = None) -> Policy[Any]:
    """A policy by its name."""
    return POLICIES[name](rules)
