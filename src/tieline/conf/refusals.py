"""In which ways a table of TOML does not fit the schema, each as a path and a sentence in the words of the reference.

The library that converts stops at the first thing that it refuses.  To find the others, a table is taken apart into
the parts that cannot spoil each other, what was refused is taken out, and what is left is tried again.
"""

from __future__ import annotations

import copy
import difflib
import math
import re
from collections.abc import Iterator
from typing import Any  # Any: TOML has values of every type

import msgspec

from tieline.conf import describe
from tieline.conf.describe import Finding, KeyPath
from tieline.conf.schema import Event, Settings

_INVALID_AT = re.compile(r" - at `\$(.*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[(?:(\d+)|\.\.\.)\]")
_UNKNOWN = re.compile(r"unknown field `(.*?)`")
_MISSING = re.compile(r"missing required field `(.*?)`")

#: Settings whose tables have names that the file gives.
_NAMED = ("event", "groups")


def refusals(data: dict[str, Any]) -> list[Finding]:
    """Everything that the schema refuses."""
    return [found for place, part in _parts(data) for found in _refused_in(place, part)]


def _parts(data: dict[str, Any]) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    """Each key, each table of an array of tables, and each named table, by itself, and where it stands."""
    for key, value in data.items():
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            for number, each in enumerate(value):
                yield (key, number), {key: [each]}
        elif key in _NAMED and isinstance(value, dict):
            for name, each in value.items():
                yield (key,), {key: {name: each}}
        else:
            yield (key,), {key: value}


def _refused_in(place: KeyPath, part: dict[str, Any]) -> Iterator[Finding]:
    part = copy.deepcopy(part)
    taken_out: set[KeyPath] = set()
    while True:
        try:
            msgspec.convert(part, Settings, strict=True)
        except msgspec.ValidationError as problem:
            message = str(problem)
        else:
            return
        path = _place_in(message, part)
        missing = _MISSING.search(message)
        if missing is not None and (*path, missing[1]) in taken_out:
            return  # it was there, and has been refused already
        whole = (*place, *path[len(place) :]) if len(path) >= len(place) else path
        yield _explained(message, whole, _value_at(part, path))
        if unknown := _UNKNOWN.search(message):
            path = (*path, unknown[1])
        above = _value_at(part, path[:-1]) if path else None
        if missing is not None or not isinstance(above, dict) or path[-1] not in above:
            return
        del above[path[-1]]
        taken_out.add(path)


def _place_in(message: str, data: dict[str, Any]) -> KeyPath:
    """The path of what a refusal is about; of an unknown or a missing key that of its table."""
    at = _INVALID_AT.search(message)
    path: KeyPath = ()
    for key, index in _STEP.findall(at[1]) if at else ():
        # msgspec writes [...] for the name that the file gave to a table
        path = (*path, key or (int(index) if index else _refused_name(path, _value_at(data, path))))
    return path


def _explained(message: str, path: KeyPath, value: Any) -> Finding:
    """A refusal by msgspec, of a value, as the path it is about and a sentence in the words of the reference page."""
    if unknown := _UNKNOWN.search(message):
        return (*path, unknown[1]), _unknown(path, unknown[1])
    if missing := _MISSING.search(message):
        key = describe.find((*path, missing[1]))
        meaning = f" {key.description}" if key else ""
        return path, f'{describe.dotted(path)} lacks "{missing[1]}".{meaning}'
    key = describe.find(path[:1] if path[:1] == ("groups",) else path)
    if key is not None:
        return path, f"{describe.dotted(path)} = {_shown(value)} is refused: it takes {key.kind}. {key.description}"
    return path, f"{describe.dotted(path)} = {_shown(value)} is refused: {_as_table(path)}"


def _unknown(path: KeyPath, name: str) -> str:
    table = describe.known_as(path)
    here = [key.name for place, key in describe.entries() if place.name == table]
    for place in describe.tables():
        above, _dot, inner = place.name.rpartition(".")
        here += [inner] if inner and above == table else []
    sentence = f'"{describe.dotted((*path, name))}" is not a setting'
    if near := difflib.get_close_matches(name, here, n=1):
        return f'{sentence}; did you mean "{near[0]}"?'
    elsewhere = {f"{place.name}.{key.name}".lstrip("."): key.name for place, key in describe.entries()}
    if near := difflib.get_close_matches(name, elsewhere.values(), n=1, cutoff=0.8):
        full = next(full for full, short in elsewhere.items() if short == near[0])
        return f'{sentence} here; did you mean "{full}"?'
    return f"{sentence}; known here: {', '.join(sorted(here))}."


def _refused_name(path: KeyPath, tables: dict[str, Any]) -> str:
    """Under which name the first refused event type or group is."""
    for name, table in tables.items():
        try:
            msgspec.convert(table, tuple[str, ...] if path == ("groups",) else Event, strict=True)
        except msgspec.ValidationError:
            return name
    raise AssertionError("msgspec refused a table, and accepts each part of it")


def _as_table(path: KeyPath) -> str:
    for table in describe.tables():
        if table.name and describe.known_as(path) == table.name:
            return f"it is a table, written as {table.heading}. {table.description}"
    return "it is not what the schema expects."


def _value_at(data: Any, path: KeyPath) -> Any:
    for part in path:
        data = data[part]
    return data


def _shown(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"' if len(value) <= 60 else f'"{value[:57]}…"'
        case dict():
            return "{…}"
        case list():
            return "[…]"
    return str(value)


def endless(data: Any, path: KeyPath) -> list[Finding]:
    """TOML has inf; a timer that never fires is written "none" where that is allowed, and refused elsewhere."""
    if isinstance(data, float) and not math.isfinite(data):
        return [(path, f"{describe.dotted(path)} = {data} is refused: it takes a finite number.")]
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [found for part, value in inner for found in endless(value, (*path, part))]
