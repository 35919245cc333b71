"""What a part of the pipeline's benchmark is, and where it works: a Spark session and a directory of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tieline.bench.suite.results import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Site:
    """What a part is given while it is measured."""

    spark: SparkSession
    #: For tables and stores; what is left in it goes when the part is over.
    folder: Path
    #: Says what is being done now.
    step: Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(ABC):
    """One part; its fields say how much is done."""

    #: What it is called on the command line, and the group of its rows.
    name: ClassVar[str]
    #: About how long it takes.
    seconds: float = 0.0

    @property
    @abstractmethod
    def steps(self) -> int:
        """How many steps it tells."""

    @abstractmethod
    def rows(self) -> list[Row]:
        """What will be measured."""

    @abstractmethod
    def measure(self, site: Site, rows: list[Row]) -> None:
        """Do the work, and give each row its numbers."""

    def obstacle(self) -> str:
        """Why it cannot be measured here, in a sentence that says what would help; nothing if it can."""
        return ""
