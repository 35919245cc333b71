"""How soon messages of a smart grid have to arrive: the classes of IEC 61850 and IEEE 1646.

The numbers are those of the table in Marzal et al. (the paper about the Hilbert ring), which gathers both standards.
Where a class has two limits, the strict one is what its most demanding functions need and the other what any of its
functions has to keep.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final


class NoRequirement(ValueError):
    """A requirement is named that the table does not have; the text is a sentence."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One class of the table."""

    name: str
    strict_ms: float
    limit_ms: float
    #: What it is about, for people.
    about: str


#: "Minutes" is all that the table says about the slowest demand response; two are the fewest that are several.
_MINUTES_MS: Final = 120_000.0

TABLE: Final[tuple[Requirement, ...]] = (
    Requirement("immediate-1a", 3.0, 10.0, "immediate action, type 1A: trip, block, release"),
    Requirement("immediate-1b", 20.0, 100.0, "immediate action, type 1B: other automation"),
    Requirement("control", 16.0, 100.0, "control"),
    Requirement("monitoring", 15.0, 200.0, "monitoring"),
    Requirement("distribution", 100.0, 2_000.0, "distribution management"),
    Requirement("demand-response", 500.0, _MINUTES_MS, "demand response"),
    Requirement("outage", 2_000.0, 2_000.0, "outage management"),
)
BY_NAME: Final[Mapping[str, Requirement]] = {each.name: each for each in TABLE}

#: What a level has to keep where nobody says otherwise.
BY_LEVEL: Final[Mapping[str, str]] = {"3": "immediate-1a", "2": "control", "1": "monitoring", "0": "distribution"}


def mapping(written: Iterable[str]) -> dict[str, Requirement]:
    """Which class, by name or level, has to keep what: ``CLASS=REQUIREMENT``, over :data:`BY_LEVEL`."""
    chosen = {level: BY_NAME[name] for level, name in BY_LEVEL.items()}
    for each in written:
        class_, equals, name = each.partition("=")
        if not equals or not class_:
            raise NoRequirement(f'"{each}" says nothing; write CLASS=REQUIREMENT, such as alarm=immediate-1a.')
        if name not in BY_NAME:
            raise NoRequirement(f'there is no requirement "{name}"; there are {", ".join(BY_NAME)}.')
        chosen[class_] = BY_NAME[name]
    return chosen
