"""A watcher that remembers, for the tests of everything that is run."""

from __future__ import annotations

from collections.abc import Sequence

from tieline.bench.suite.results import Row


class Quiet:
    """Shows nothing and keeps everything that it was told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.steps = 0
        self.begun: list[str] = []
        self.rows: list[Row] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def planned(self, steps: int) -> None:
        self.steps = steps

    def step(self, text: str) -> None:
        self.begun.append(text)

    def found(self, rows: Sequence[Row]) -> None:
        self.rows += rows
