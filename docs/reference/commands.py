"""The command-line page, made from the same tables that parse the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from typer.main import get_command

from tieline.cli import pub, sub
from tieline.cli.flags import Flag
from tieline.cli.main import VERBS
from tieline.cli.verbs import load_app

_INTRODUCTION = """\
# Command line

<!-- Generated from src/tieline/cli by `make docs`; edits here are lost. -->

`tieline VERB --help` prints the same from the program. Exit codes: 0 done; 1 failed (no connection, a refusal, a file
that cannot be read); 2 asked for something it cannot mean, or given a configuration that `serve` would refuse; 3
`tieline log` met a gap that retention left; 27 `tieline sub -W` ran out of time; 130 ended with Ctrl-C. A failure is
one sentence on standard error.
"""

_RAW = {"pub": (pub.GROUPS, "mosquitto_pub"), "sub": (sub.GROUPS, "mosquitto_sub")}


def markdown() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for verb, place, help_text in VERBS:
        if verb in _RAW:
            groups, model = _RAW[verb]
            parts.append(f"## tieline {verb}\n\n{help_text}\n\n" + "\n".join(_flags(groups)) + "\n")
            parts.append(f"Flags that `{model}` has and this list has not are refused by name, never ignored.\n")
        else:
            parts.append("\n".join(_command(f"tieline {verb}", get_command(load_app("tieline.cli", place)))))
    return "\n".join(parts)


def _command(name: str, command: Any, depth: int = 2) -> Iterator[str]:
    yield f"{'#' * depth} {name}"
    yield ""
    yield _sentences(command.help or "")
    yield ""
    inner = getattr(command, "commands", None) or {}
    rows = [_option(parameter) for parameter in command.params if "--help" not in parameter.opts]
    if rows and (not inner or command.invoke_without_command):
        yield from ("| option | meaning | default |", "|---|---|---|", *rows, "")
    for each, inner_command in inner.items():
        yield from _command(f"{name} {each}", inner_command, depth + 1)


def _option(parameter: Any) -> str:
    metavar = "" if getattr(parameter, "is_flag", False) else f" {_metavar(parameter)}"
    if parameter.param_type_name == "argument":
        names = f"`{_in_a_cell(parameter.metavar or parameter.name.upper())}`"
    else:
        names = f"`{', '.join(parameter.opts)}{metavar}`"
    default = parameter.default
    shown = "" if default in (None, False, (), []) or callable(default) else f"`{default}`"
    return f"| {names} | {parameter.help or ''} | {shown} |"


def _metavar(parameter: Any) -> str:
    choices = getattr(parameter.type, "choices", None)
    if choices:
        return _in_a_cell("|".join(map(str, choices)))
    return _in_a_cell(parameter.metavar or parameter.name.strip("_").upper())


def _in_a_cell(name: str) -> str:
    """A bar would end the cell of a table, in code as anywhere."""
    return name.replace("|", "\\|")


def _flags(groups: Sequence[tuple[str, Sequence[Flag]]]) -> Iterator[str]:
    for title, rows in groups:
        yield from (f"### {title}", "", "| flag | meaning |", "|---|---|")
        for row in rows:
            names = ", ".join(row.names) + (f" {row.metavar}" if row.metavar else "")
            yield f"| `{names}` | {row.help} |"
        yield ""


def _sentences(text: str) -> str:
    # a bracket is escaped for help pages, where it would be markup
    paragraphs = text.replace("\\[", "[").strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
