"""What the world needs beyond the base install, and the sentence for those who do not have it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any  # Any: these libraries come without types

from tieline.extras import library_in, remedy


class Unbuildable(Exception):
    """The world cannot be made as it was asked for; the text is a sentence for the user."""


def need(module: str) -> Any:
    """Import a module of the extra ``sim``; a missing one is a sentence, not a traceback."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        raise Unbuildable(f"the microgrid needs {library_in(missing)}: {remedy('sim')}") from None


def data_of(package: str) -> Path:
    """The directory of an installed package, found without importing it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise Unbuildable(f"the microgrid needs the data of {package}: {remedy('sim')}")
    return Path(spec.origin).parent
