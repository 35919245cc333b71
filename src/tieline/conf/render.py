"""Pages made from the schema: a commented default file, the reference page, the JSON Schema."""

from __future__ import annotations

import json
import textwrap
from typing import Any  # Any: settings have values of every type

import msgspec

from tieline.conf.describe import Key, Section, tables
from tieline.conf.schema import EXAMPLES, Settings

_HEADER = """\
# Tieline's configuration: every key with its default.
# A line that begins with "#" changes nothing; remove the mark to set a key.
# `tieline check FILE` shows what a file means, and writes nothing.
"""

_INTRODUCTION = """\
# Configuration

<!-- Generated from src/tieline/conf/schema.py by `make docs`; edits here are lost. -->

`tieline serve` needs no configuration file: it listens on `tcp://127.0.0.1:1883`, which only programs on the same
machine can reach. `tieline serve --config FILE` reads a TOML file with the keys below; `--listen`, `--data` and
`--name` on the command line replace what the file says.

- `tieline conf default` prints a file with every key, its default and its meaning; `tieline conf schema` prints the
  JSON Schema for editors.
- `tieline check FILE` prints the settings as they will act, and writes nothing. Exit code 2 means that the file is
  refused.
- A key that is unknown, of the wrong type or out of range is an error with the line and the nearest key. Nothing falls
  back to a default.
- A limit is a number or `"none"`; zero always means zero.
- Relative paths are relative to the directory of the configuration file.
"""


def default_toml() -> str:
    """A file that, read as it is, means exactly what no file means."""
    parts = [_HEADER]
    for table in tables():
        lines = _comment(table.description) if table.name else []
        if table.name:
            lines.append(f"# {table.heading}" if table.is_repeated else table.heading)
        for key in table.keys:
            lines += ["", *_comment(f"{key.description} Takes {key.kind}.")]
            lines.append(f"# {key.name} = {_example(table, key)}")
        parts.append("\n".join(lines).lstrip("\n") + "\n")
    return "\n".join(parts)


def reference_markdown() -> str:
    """The page of the documentation that lists every setting."""
    parts = [_INTRODUCTION]
    for table in tables():
        title = f"`{table.heading}`" if table.name else "Top level"
        again = " May be written several times." if table.is_repeated else ""
        rows = [
            f"| `{key.name}` | {key.kind} | {_default(table, key)} | {_escaped(key.description)} |"
            for key in table.keys
        ]
        lines = ["| key | takes | default | meaning |", "|---|---|---|---|", *rows]
        parts.append(f"## {title}\n\n{table.description}{again}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def json_schema() -> str:
    """JSON Schema 2020-12, for editors that complete and check TOML."""
    schema: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Tieline"}
    schema |= msgspec.json.schema(Settings)
    return json.dumps(schema, indent=2) + "\n"


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return str(value).lower()
        case int() if value >= 10_000:
            return f"{value:_}"
        case tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case str():
            return json.dumps(value, ensure_ascii=False)
    return str(value)


def _example(table: Section, key: Key) -> str:
    example = getattr(EXAMPLES.get(table.name), key.name, None)
    if example is not None and (key.is_required or key.default is None):
        return toml_value(example)
    return '""' if key.default is None else toml_value(key.default)


def _default(table: Section, key: Key) -> str:
    if key.is_required and table.name != "listener":
        return f"required, for example `{_example(table, key)}`"
    if key.is_required:
        return f"required; without any {table.heading}: `{_example(table, key)}`"
    return "not set" if key.default is None else f"`{toml_value(key.default)}`"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, 100)]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
