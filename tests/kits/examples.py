"""How many examples a property is tried with: as many as it asks for, and in proportion more where we explore."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import settings

#: What a property that asks for nothing gets in the profile of every day; others are counted in proportion to it.
EVERY_DAY: Final = 100


def examples(count: int, **others: Any) -> settings:
    """Settings for ``count`` examples in the profile of every day; ``others`` are those of Hypothesis."""
    return settings(max_examples=max(1, count * settings().max_examples // EVERY_DAY), **others)
