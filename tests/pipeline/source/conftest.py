"""How the tests of the source name the log servers that they read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.pipeline.source.served import Served

Serve = Callable[..., Served]


def options(*served: Served, **more: Any) -> dict[str, str]:
    """The options of a source that reads these servers."""
    return {"url": ",".join(each.url for each in served), **{name: str(value) for name, value in more.items()}}
