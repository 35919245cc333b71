"""What is wrong in a document, said about its elements: decoders speak of paths, and nobody counts brackets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

_PLACE: Final = re.compile(r"^(?P<complaint>.*) - at `\$(?P<path>.*)`$", re.DOTALL)
_ELEMENT: Final = re.compile(r"^\.(nodes|links|topics|subscriptions)\[(\d+)\](.*)$")


def explained(complaint: str, raw: dict[str, Any]) -> str:
    """A complaint of the decoder about a document, as a sentence that names the element."""
    found = _PLACE.match(complaint)
    if found is None:
        return f"the instance: {complaint}"
    complaint, path = found["complaint"].replace("`", '"'), found["path"]
    element = _ELEMENT.match(path)
    if element is None:
        return f"the instance: {path.lstrip('.')}: {complaint}"
    kind, number, field = element[1], int(element[2]), element[3].lstrip(".")
    where = f"{kind[:-1]} {number}{_nickname(kind, raw[kind][number])}"
    return f"{where}: {field}: {complaint}" if field else f"{where}: {complaint}"


def _nickname(kind: str, element: Any) -> str:
    if not isinstance(element, dict):
        return ""
    names: Sequence[str] = {"links": ("a", "b"), "subscriptions": ("node", "filter")}.get(kind, ("id",))
    return f" ({' - '.join(str(element[name]) for name in names if name in element)})"
