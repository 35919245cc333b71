"""A year of load and generation in steps of 15 minutes: the profiles of SimBench, read from its installed files.

The data are SimBench's (Open Database License 1.0, https://simbench.de).  Only the columns that somebody uses are
read: the whole file has 160 columns and takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tieline.sim.microgrid.extra import Unbuildable, data_of, need

#: Seconds between two values.
STEP_S: Final = 900
#: 52 whole weeks of the 366 days that there are, so that a Monday stays a Monday when the year begins again.
_ROWS: Final = 52 * 7 * 96
#: 2016-01-01T00:00Z, where the profiles begin.
_FIRST_S: Final = 1_451_606_400
_FOLDER: Final = "networks/1-complete_data-mixed-all-0-sw"
_FILES: Final = ("LoadProfile.csv", "RESProfile.csv")


def rows_at(first: int, count: int) -> NDArray[np.int64]:
    """The rows of a profile for ``count`` steps from the ``first``, in steps of 15 minutes since 1970.

    The year is repeated; within it weekdays are right and the season is, to about a fortnight.
    """
    return (np.arange(first, first + count) - _FIRST_S // STEP_S) % _ROWS


def read_profiles(names: Collection[str]) -> dict[str, NDArray[np.float64]]:
    """The named profiles, relative to the rated power of what they belong to."""
    return dict(_read(tuple(sorted(set(names)))))


@lru_cache(maxsize=4)
def _read(names: tuple[str, ...]) -> tuple[tuple[str, NDArray[np.float64]], ...]:
    csv: Any = need("pyarrow.csv")
    folder = data_of("simbench") / _FOLDER
    found: list[tuple[str, NDArray[np.float64]]] = []
    for file in _FILES:
        with (folder / file).open(encoding="utf-8") as lines:
            columns = lines.readline().rstrip("\n").split(";")
        wanted = [name for name in names if name in columns]
        if not wanted:
            continue
        table = csv.read_csv(
            folder / file,
            parse_options=csv.ParseOptions(delimiter=";"),
            convert_options=csv.ConvertOptions(include_columns=wanted),
        )
        found += [(name, table[name].to_numpy()[:_ROWS]) for name in wanted]
    missing = set(names).difference(name for name, _values in found)
    if missing:
        raise Unbuildable(f"SimBench has no profile called {', '.join(sorted(missing))}.")
    return tuple(found)
