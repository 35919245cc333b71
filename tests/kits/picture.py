"""A picture of everything an object holds, to see whether asking has changed anything."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final

from tieline.match.index import AdaptiveIndex

#: What is worked out once and then remembered, the same for everybody: remembering it is no change.
MEMOS: Final = frozenset({"visited", "_test", "_canonical", "grant"})
_PLAIN: Final = (str, bytes, bytearray, int, float, bool, type(None), Enum)
_CODE: Final = (FunctionType, MethodType, BuiltinFunctionType, type)


def picture(thing: object) -> list[str]:
    """Every value that can be reached from a thing, by the way that leads to it."""
    lines: list[str] = []
    seen: dict[int, str] = {}
    waiting: deque[tuple[str, Any]] = deque([("", thing)])
    while waiting:
        path, value = waiting.popleft()
        if isinstance(value, _PLAIN):
            lines.append(f"{path} = {value!r}")
        elif isinstance(value, _CODE):
            continue
        elif id(value) in seen:
            lines.append(f"{path} is {seen[id(value)]}")
        else:
            seen[id(value)] = path
            parts = list(_parts(value))
            lines.append(f"{path}: {type(value).__name__}, {len(parts)}")
            waiting.extend((f"{path}.{name}", part) for name, part in parts)
    return lines


def _parts(value: Any) -> Any:
    if isinstance(value, Mapping):
        for number, (key, part) in enumerate(value.items()):
            yield f"{number}k", key
            yield f"{number}v", part
        return
    if isinstance(value, list | tuple | set | frozenset | deque):
        ordered = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        yield from ((str(number), part) for number, part in enumerate(ordered))
        return
    if isinstance(value, AdaptiveIndex):
        # it prepares itself for questions when there is one; what it holds is what counts
        yield "boxes", len(value)
        return
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    for name in sorted({*names, *getattr(value, "__dict__", {})} - MEMOS):
        if hasattr(value, name):
            yield name, getattr(value, name)
