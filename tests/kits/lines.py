"""What an operation costs, in lines of Python: the same number on every machine, however busy it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tests.kits.interpreted import skip_if_compiled


class Lines:
    """How many lines of Python ran."""

    def __init__(self) -> None:
        self.count = 0

    def trace(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        self.count += event == "line"
        return self.trace


@contextmanager
def counting() -> Iterator[Lines]:
    """Count the lines that the block runs, in functions that it calls."""
    skip_if_compiled("compiled code has no lines to count")
    lines = Lines()
    before = sys.gettrace()
    sys.settrace(lines.trace)
    try:
        yield lines
    finally:
        sys.settrace(before)
