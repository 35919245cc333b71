"""What kits of random histories share: a verdict on one, and one after the other until one of them is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeVar

#: Complaints of one kind that are printed.
_SHOWN: Final = 20


@dataclass
class Verdict:
    """What was wrong with a history, and how it went."""

    seed: int
    kind: StrEnum
    wrong: list[str] = field(default_factory=list)
    story: list[str] = field(default_factory=list)

    def faults(self) -> dict[str, list[str]]:
        """Everything that was wrong, by the word that says in which way."""
        return {"wrong": self.wrong}

    @property
    def is_wrong(self) -> bool:
        return any(self.faults().values())

    def __str__(self) -> str:
        complaints = [f"{name}: {text}" for name, texts in self.faults().items() for text in texts[:_SHOWN]]
        return "\n".join([f"{self.kind.value} history {self.seed}:", *self.story, *complaints])


V = TypeVar("V", bound=Verdict)


def histories(seeds: Iterable[int], run: Callable[[int], V]) -> Iterator[V]:
    """Run a history for each seed, and fail at the first that is wrong, with its story."""
    for seed in seeds:
        verdict = run(seed)
        assert not verdict.is_wrong, str(verdict)
        yield verdict
