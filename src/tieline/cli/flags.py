"""Flags as mosquitto's clients read them: a table, a parser and a help page made from it.

An argument parser that guesses cannot serve here: ``-m -5`` publishes "-5", ``-h`` is the host, and ``-D`` takes two,
three or four words depending on the second.  Each flag simply takes the number of words that its row says.
"""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any  # Any: whatever the parser of a command line takes

from tieline.cli.trouble import MISUSED, Trouble


def one(_rest: Sequence[str]) -> int:
    """How many words most flags take."""
    return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One row: what the user writes, and which attribute of the options it sets."""

    names: tuple[str, ...]
    into: str
    help: str
    #: Shown after the name; empty for a switch, which takes no word.
    metavar: str = ""
    #: What a switch sets.
    value: object = True
    #: Makes the value from the word or words; its ValueError becomes the user's sentence.
    convert: Callable[..., object] = str
    #: How many of the words after the flag belong to it.
    takes: Callable[[Sequence[str]], int] = one
    is_repeated: bool = False


def flag(names: str, into: str, help: str, metavar: str = "", **more: Any) -> Flag:
    """One row of a table: ``flag("-t --topic", "topics", "…", "TOPIC")``."""
    return Flag(names=tuple(names.split()), into=into, help=help, metavar=metavar, **more)


def parse(rows: Sequence[Flag], words: Sequence[str], options: object) -> None:
    """Set the attributes of ``options`` that the words ask for; Trouble for anything the table does not know."""
    known = {name: row for row in rows for name in row.names}
    position = 0
    while position < len(words):
        word = words[position]
        row = known.get(word)
        if row is None:
            raise Trouble(_unknown(word, known), code=MISUSED)
        position += 1
        if not row.metavar:
            setattr(options, row.into, row.value)
            continue
        count = row.takes(words[position:])
        values = words[position : position + count]
        if len(values) < count:
            raise Trouble(f"{word} needs {row.metavar}.", code=MISUSED)
        position += count
        try:
            value = row.convert(*values)
        except ValueError as problem:
            raise Trouble(f"{word} {' '.join(values)}: {problem}.", code=MISUSED) from None
        if row.is_repeated:
            getattr(options, row.into).append(value)
        else:
            setattr(options, row.into, value)


def whole(low: int, high: int) -> Callable[[str], int]:
    """A converter for whole numbers within bounds."""

    def convert(text: str) -> int:
        if text.isascii() and text.isdigit() and low <= int(text) <= high:
            return int(text)
        raise ValueError(f"expected a whole number from {low} to {high}")

    return convert


def seconds(text: str) -> float:
    """A converter for times."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise ValueError("expected a number of seconds")
    return value


def choice(*values: str) -> Callable[[str], str]:
    """A converter for a word from a list."""

    def convert(text: str) -> str:
        if text in values:
            return text
        raise ValueError(f"expected one of {', '.join(values)}")

    return convert


def page(usage: str, duty: str, groups: Sequence[tuple[str, Sequence[Flag]]]) -> str:
    """The help page that a table of flags makes: one line or more for each, in groups."""
    lines = [f"Usage: {usage}", "", *textwrap.wrap(duty, 100)]
    for title, rows in groups:
        lines += ["", f"{title}:"]
        for row in rows:
            left = ", ".join(row.names) + (f" {row.metavar}" if row.metavar else "")
            first, *more = textwrap.wrap(row.help, 66)
            lines.append(f"  {left:<32}  {first}" if len(left) <= 32 else f"  {left}\n{'':36}{first}")
            lines += [f"{'':36}{line}" for line in more]
    return "\n".join(lines)


def _unknown(word: str, known: dict[str, Flag]) -> str:
    if not word.startswith("-"):
        return f'"{word}" belongs to no option.'
    near = difflib.get_close_matches(word, known, n=1)
    return f"unknown option {word}{f'; did you mean {near[0]}?' if near else '.'}"
