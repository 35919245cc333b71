"""In which ways a table of TOML does not fit the schema, each as a path and a sentence in the words of the reference.

The library that converts stops at the first thing that it refuses.  To find the others, a table is taken apart into
the parts that cannot spoil each other, what was refused is taken out, and what is left is tried again.  What is left in
the end can be converted, so that rules between settings are asked in the same run.
"""

from __future__ import annotations

import copy
import difflib
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple  # Any: TOML has values of every type

import msgspec

from tieline.conf import describe
from tieline.conf.describe import Finding, KeyPath
from tieline.conf.schema import Event, Settings

_INVALID_AT = re.compile(r" - at `\$(.*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[(?:(\d+)|\.\.\.)\]")
_UNKNOWN = re.compile(r"unknown field `(.*?)`")
_MISSING = re.compile(r"missing required field `(.*?)`")

#: Of every kind that a key may have to be of: what is said of them is never told.
_STAND_INS: tuple[Any, ...] = (0, "a", False, [], {})

#: Settings whose tables have names that the file gives.
_NAMED = ("event", "groups")


class Refused(NamedTuple):
    """What the schema refuses of a table, and what it does not."""

    findings: list[Finding]
    #: The rest, which converts.
    rest: dict[str, Any]
    #: Of arrays of tables: at which number each table of the rest has been.
    numbers: dict[str, list[int]]

    def in_the_file(self, found: Iterable[Finding]) -> Iterator[Finding]:
        """What was found in the rest, at its place in the file; without what may only be so because of a refusal."""
        refused = [path for path, _sentence in self.findings]
        for path, sentence in found:
            whole, said = path, sentence
            if len(path) > 1 and isinstance(path[1], int) and path[0] in self.numbers:
                number = self.numbers[path[0]][path[1]]
                whole = (path[0], number, *path[2:])
                said = sentence.replace(describe.dotted(path[:2]), describe.dotted(whole[:2]))
            if not any(whole == each[: len(whole)] or each == whole[: len(each)] for each in refused):
                yield whole, said


def refusals(data: dict[str, Any]) -> Refused:
    """Everything that the schema refuses, and what is left without it."""
    findings: list[Finding] = []
    rest: dict[str, Any] = {}
    numbers: dict[str, list[int]] = {}
    for place, part in _parts(data):
        part = copy.deepcopy(part)
        findings += _refused_in(place, part)
        for key, value in part.items():
            if isinstance(value, list) and len(place) > 1 and isinstance(place[1], int):
                rest.setdefault(key, []).extend(value)
                numbers.setdefault(key, []).append(place[1])
            elif isinstance(value, dict) and key in _NAMED:
                rest.setdefault(key, {}).update(value)
            else:
                rest[key] = value
    return Refused(findings, rest, numbers)


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
    """Say what is refused of a part, and take it out of the part."""
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
        # what was there, and has been refused already, is missing only since then
        is_known = missing is not None and (*path, missing[1]) in taken_out
        if is_known and missing is not None and _filled(part, (*path, missing[1])):
            continue
        if not is_known:
            whole = (*place, *path[len(place) :]) if len(path) >= len(place) else path
            yield _explained(message, whole, _value_at(part, path))
        if unknown := _UNKNOWN.search(message):
            path = (*path, unknown[1])
        # an array is taken out as a whole, so that its other values keep their numbers
        while not isinstance(above := _value_at(part, path[:-1]), dict):
            path = path[:-1]
        del above[path[-1]]
        taken_out.add(path)


def _filled(part: dict[str, Any], path: KeyPath) -> bool:
    """Put something that converts where a value was refused that must be there, so that the rest of its table stays."""
    table = _value_at(part, path[:-1])
    for value in _STAND_INS:
        table[path[-1]] = value
        try:
            msgspec.convert(part, Settings, strict=True)
        except msgspec.ValidationError as problem:
            if _place_in(str(problem), part)[: len(path)] == path:
                continue
        return True
    del table[path[-1]]
    return False


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
