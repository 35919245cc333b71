"""Functions in machine code, kept for the next process; plain Python where numba is missing or unwanted.

Theory of operation
-------------------
numba notices when the file of a function changes, but not when a file changes whose functions it calls.  So the place
where code is kept is named by the state of all files beside the function: any edit gives a new place.  It lies in the
user's cache, or in ``NUMBA_CACHE_DIR``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast  # Any: numba comes without types

from tieline.extras import is_installed

F = TypeVar("F", bound=Callable[..., Any])

#: Set to anything to run the loops as plain Python.
PLAIN: Final = "TIELINE_PLAIN_LOOPS"


def compiled(function: F) -> F:
    """The function in machine code, compiled when it is first called with arguments of some types.

    A function whose name begins with an underscore can be called by compiled functions only.
    """
    if os.environ.get(PLAIN):
        return function
    try:
        import numba
    except ImportError:
        return function
    # numba sets the attributes of this module when it is imported
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = _place(Path(function.__code__.co_filename).parent, before)
    # what no Python code calls needs no door to it, and compiles faster without
    options: dict[str, Any] = {
        "nogil": True,
        "no_cfunc_wrapper": True,
        "no_cpython_wrapper": function.__name__.startswith("_"),
    }
    try:
        return cast("F", numba.njit(function, cache=True, **options))
    except RuntimeError:  # there is no place to keep it
        return cast("F", numba.njit(function, **options))
    finally:
        config.CACHE_DIR = before


def is_compiled() -> bool:
    """Whether the loops are machine code."""
    return not os.environ.get(PLAIN) and is_installed("numba")


@cache
def _place(folder: Path, given: str) -> str:
    """Where the code of a folder is kept."""
    base = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tieline"
    state = hashlib.sha256()
    for file in sorted(folder.glob("*.py")):
        state.update(file.name.encode())
        state.update(file.read_bytes())
    return str(base / f"{folder.name}-{state.hexdigest()[:16]}")
