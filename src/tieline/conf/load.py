"""A TOML file becomes Settings, or a ConfError that names the line; there is no third outcome.

A key that is unknown, of the wrong type or out of range stops the start.  A broker that falls back to a default does
something its operator did not write, and usually at the worst time.
"""

from __future__ import annotations

import codecs
import difflib
import math
import re
import tomllib
from pathlib import Path
from typing import Any  # Any: TOML has values of every type

import msgspec

from tieline.conf import access_rules, describe, rules
from tieline.conf.describe import Finding, KeyPath
from tieline.conf.error import ConfError
from tieline.conf.lines import line_of
from tieline.conf.schema import Event, Listener, Settings

_SYNTAX_AT = re.compile(r" \(at line (\d+), column (\d+)\)$")
_INVALID_AT = re.compile(r" - at `\$(.*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[(?:(\d+)|\.\.\.)\]")
_UNKNOWN = re.compile(r"unknown field `(.*?)`")
_MISSING = re.compile(r"missing required field `(.*?)`")


def load(path: str | Path) -> Settings:
    """Read a configuration file.  Relative paths in it are relative to the directory it lies in."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as problem:
        text = f"cannot be read: {(problem.strerror or str(problem)).lower()}."
        raise ConfError(file=str(path), line=None, text=text) from None
    return _anchored(loads(_decoded(data, str(path)), str(path)), path.parent)


def loads(text: str, name: str = "configuration") -> Settings:
    """Settings from a TOML text; ``name`` stands for the file in error messages."""
    data = _parsed(text, name)
    try:
        settings = msgspec.convert(data, Settings, strict=True)
    except msgspec.ValidationError as problem:
        path, sentence = _explained(str(problem), data)
        raise ConfError(file=name, line=line_of(text, path), text=sentence) from None
    for path, sentence in (*_endless(data, ()), *rules.broken(settings)):
        raise ConfError(file=name, line=line_of(text, path), text=sentence)
    return access_rules.placed(settings, text, name)


def _decoded(data: bytes, name: str) -> str:
    if data.startswith(codecs.BOM_UTF8):
        text = "begins with a byte order mark: save it as UTF-8 without one."
    elif data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data[:4]:
        text = "is written in UTF-16 or UTF-32: save it as UTF-8."
    else:
        try:
            return data.decode()
        except UnicodeDecodeError as problem:
            line = data.count(b"\n", 0, problem.start) + 1
            text = f"byte 0x{data[problem.start]:02X} is not UTF-8: save the file as UTF-8."
            raise ConfError(file=name, line=line, text=text) from None
    raise ConfError(file=name, line=1, text=text)


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        message = str(problem)
        found = _SYNTAX_AT.search(message)
        if found is None:  # tomllib says "at end of document"
            line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
        else:
            line, column = int(found[1]), int(found[2])
        what = re.sub(r" \(at .*\)$", "", message)
        sentence = f"is not TOML: column {column}: {what[:1].lower()}{what[1:]}."
        raise ConfError(file=name, line=line, text=sentence) from None
    except RecursionError:
        raise ConfError(file=name, line=None, text="is nested too deeply.") from None
    except ValueError:  # of Python itself, which stops reading numbers of thousands of digits
        raise ConfError(file=name, line=None, text="has a number of too many digits.") from None


def _explained(message: str, data: dict[str, Any]) -> Finding:
    """A refusal by msgspec as the path it is about and a sentence in the words of the reference page."""
    at = _INVALID_AT.search(message)
    path: KeyPath = ()
    for key, index in _STEP.findall(at[1]) if at else ():
        # msgspec writes [...] for the name that the file gave to a table
        path = (*path, key or (int(index) if index else _refused_name(path, _value_at(data, path))))
    if unknown := _UNKNOWN.search(message):
        return (*path, unknown[1]), _unknown(path, unknown[1])
    if missing := _MISSING.search(message):
        key = describe.find((*path, missing[1]))
        meaning = f" {key.description}" if key else ""
        return path, f'{describe.dotted(path)} lacks "{missing[1]}".{meaning}'
    shown = _shown(_value_at(data, path))
    key = describe.find(path[:1] if path[:1] == ("groups",) else path)
    if key is not None:
        return path, f"{describe.dotted(path)} = {shown} is refused: it takes {key.kind}. {key.description}"
    return path, f"{describe.dotted(path)} = {shown} is refused: {_as_table(path)}"


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


def _endless(data: Any, path: KeyPath) -> list[Finding]:
    """TOML has inf; a timer that never fires is written "none" where that is allowed, and refused elsewhere."""
    if isinstance(data, float) and not math.isfinite(data):
        return [(path, f"{describe.dotted(path)} = {data} is refused: it takes a finite number.")]
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [found for part, value in inner for found in _endless(value, (*path, part))]


def _anchored(settings: Settings, directory: Path) -> Settings:
    def anchor(name: str | None) -> str | None:
        return None if name is None else str(directory / name)

    def listener(each: Listener) -> Listener:
        return msgspec.structs.replace(
            each, certificate=anchor(each.certificate), key=anchor(each.key), client_ca=anchor(each.client_ca)
        )

    listeners = tuple(listener(each) for each in settings.listener)
    auth = msgspec.structs.replace(settings.auth, password_file=anchor(settings.auth.password_file))
    http = msgspec.structs.replace(
        settings.http, certificate=anchor(settings.http.certificate), key=anchor(settings.http.key)
    )
    overlay = msgspec.structs.replace(
        settings.overlay,
        key_file=anchor(settings.overlay.key_file),
        certificate=anchor(settings.overlay.certificate),
        key=anchor(settings.overlay.key),
        ca=anchor(settings.overlay.ca),
    )
    return msgspec.structs.replace(
        settings, data=anchor(settings.data), listener=listeners, auth=auth, http=http, overlay=overlay
    )
