"""The schema as rows: each key with its table, its kind in words, its default and its description.

The loader's error messages and every generated page read these rows, so they cannot tell different stories.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any  # Any: settings have values of every type

import msgspec
from msgspec import Struct, inspect

from tieline.conf.schema import Settings

#: Where a key stands: tables, numbers of repeated ones, and the name of the key.
KeyPath = tuple[str | int, ...]
#: The key to blame and a sentence.
Finding = tuple[KeyPath, str]


class Key(Struct, frozen=True, kw_only=True):
    """A setting as the reference page and the JSON Schema describe it."""

    name: str
    #: What it takes, as the end of the sentence "it takes …".
    kind: str
    description: str
    #: msgspec.NODEFAULT when the key must be written.
    default: Any

    @property
    def is_required(self) -> bool:
        return self.default is msgspec.NODEFAULT


class Section(Struct, frozen=True, kw_only=True):
    """One table of settings: the top level has an empty name."""

    name: str
    #: How it begins in a file; NAME stands for a name that the file gives it.
    heading: str
    description: str
    #: Whether there may be none of it, or several: ``[[name]]`` and ``[name.NAME]``.
    is_repeated: bool
    keys: tuple[Key, ...]


@cache
def tables() -> tuple[Section, ...]:
    """Every table of the schema, the top level first, then in the order of the schema."""
    top: list[Key] = []
    inner: list[Section] = []
    for field in _fields(Settings):
        tables = list(_tables(field, "", ""))
        inner += tables
        if not tables:
            top.append(_key(field))
    return (Section(name="", heading="", description=_docstring(Settings), is_repeated=False, keys=tuple(top)), *inner)


def entries() -> Iterator[tuple[Section, Key]]:
    """Every key together with its table."""
    for table in tables():
        for key in table.keys:
            yield table, key


def find(path: tuple[str | int, ...]) -> Key | None:
    """The key at a path such as ``("listener", 0, "url")``; None when the schema has none there."""
    name = known_as(path)
    for table, key in entries():
        if name == (f"{table.name}.{key.name}" if table.name else key.name):
            return key
    return None


def known_as(path: tuple[str | int, ...]) -> str:
    """What the schema calls the place at a path: without positions, and without names that a file gave."""
    named = {table.name for table in tables() if table.heading == f"[{table.name}.NAME]"}
    return ".".join(
        part for depth, part in enumerate(path) if isinstance(part, str) and not (depth == 1 and path[0] in named)
    )


def dotted(path: tuple[str | int, ...]) -> str:
    """A path as a user would say it: ``limits.inflight``, ``listener[2].url`` (counting from 1)."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            text += f".{part}" if text else part
    return text


def _tables(field: inspect.Field, above: str, heading_above: str) -> Iterator[Section]:
    """The table that a field is, and those inside it; nothing if the field is a key."""
    name = above + field.encode_name
    heading = heading_above + field.encode_name
    match _unwrap(field.type):
        case inspect.StructType() as struct, description:
            yield from _with_inner(name, f"[{heading}]", heading, struct, description, repeated=False)
        case inspect.VarTupleType(item_type=inspect.StructType() as struct), description:
            yield from _with_inner(name, f"[[{heading}]]", heading, struct, description, repeated=True)
        case inspect.DictType(value_type=inspect.StructType() as struct), description:
            heading += ".NAME"
            yield from _with_inner(name, f"[{heading}]", heading, struct, description, repeated=True)


def _with_inner(
    name: str, heading: str, prefix: str, kind: inspect.StructType, description: str, *, repeated: bool
) -> Iterator[Section]:
    inner = {field.name: list(_tables(field, f"{name}.", f"{prefix}.")) for field in kind.fields}
    rows = tuple(_key(field) for field in kind.fields if not inner[field.name])
    said = description or _docstring(kind.cls)
    yield Section(name=name, heading=heading, description=said, is_repeated=repeated, keys=rows)
    for tables in inner.values():
        yield from tables


def _key(field: inspect.Field) -> Key:
    kind, description = _unwrap(field.type)
    default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return Key(name=field.name, kind=_words(kind), description=description, default=default)


def _fields(struct: type[msgspec.Struct]) -> tuple[inspect.Field, ...]:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return info.fields


def _unwrap(kind: inspect.Type) -> tuple[inspect.Type, str]:
    if isinstance(kind, inspect.Metadata):
        return kind.type, (kind.extra_json_schema or {}).get("description", "")
    return kind, ""


def _docstring(struct: type) -> str:
    return (struct.__doc__ or "").strip().splitlines()[0]


def _words(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata():
            return _words(kind.type)
        case inspect.BoolType():
            return "true or false"
        case inspect.StrType():
            return "a text"
        case inspect.IntType():
            return _range("a whole number", kind.ge, kind.le)
        case inspect.FloatType():
            return _range("a number", kind.ge, kind.le)
        case inspect.VarTupleType():
            return f"a list, each {_words(kind.item_type)}"
        case inspect.TupleType():
            return f"a list of {len(kind.item_types)}, each {_words(kind.item_types[0])}"
        case inspect.DictType():
            return f"a table of names, each with {_words(kind.value_type)}"
        case inspect.LiteralType():
            return _either([_literal(value) for value in kind.values])
        case inspect.UnionType():
            return _either([_words(each) for each in kind.types if not isinstance(each, inspect.NoneType)])
    raise TypeError(f"the schema uses {kind!r}, which has no words yet")


def _range(noun: str, low: float | None, high: float | None) -> str:
    # msgspec keeps the bounds of a float as floats; "at least 0" reads better than "at least 0.0".
    if low is not None and high is not None:
        return f"{noun} from {low:,g} to {high:,}" if isinstance(high, int) else f"{noun} from {low:g} to {high:g}"
    if low is not None:
        return f"{noun} from {low:g} up"
    return noun if high is None else f"{noun}, at most {high:g}"


def _either(choices: list[str]) -> str:
    return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"


def _literal(value: str | int | None) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
