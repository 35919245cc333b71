"""Which line of a TOML text a key was written on.

``tomllib`` gives values without positions, and an error without a line makes people search.  This scanner reads a text
that ``tomllib`` has already accepted, so it needs to find its way only through valid TOML: statements, headers, keys,
and the nesting of values.  It interprets no value.
"""

from __future__ import annotations

import re

from msgspec import Struct, field

Path = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
#: What ends an unstructured value: a comma or closing bracket of what surrounds it, a comment, the end of the line.
_SCALAR = re.compile(r"[^,\]}#\r\n]*")
_QUOTED = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)


def line_of(text: str, path: Path) -> int | None:
    """The line (from 1) where ``path``, or failing that the nearest thing around it, was written."""
    known = _Scanner(text).scan()
    for end in range(len(path), 0, -1):
        line = known.get(path[:end])
        if line is not None:
            return line
    return None


class _Scanner(Struct):
    text: str
    pos: int = 0
    lines: dict[Path, int] = field(default_factory=dict)
    #: How many elements each array of tables has so far.
    counts: dict[Path, int] = field(default_factory=dict)

    def scan(self) -> dict[Path, int]:
        table: Path = ()
        while True:
            self._skip(_GAP)
            if self.pos >= len(self.text):
                return self.lines
            if self.text.startswith("[[", self.pos):
                table = self._header(2)
            elif self.text.startswith("[", self.pos):
                table = self._header(1)
            else:
                self._pair(table)

    def _header(self, width: int) -> Path:
        line = self._line()
        self.pos += width
        path = self._resolve(self._key())
        self.pos += width
        if width == 2:
            index = self.counts.get(path, 0)
            self.counts[path] = index + 1
            self.lines.setdefault(path, line)
            path = (*path, index)
        self.lines[path] = line
        return path

    def _resolve(self, parts: Path) -> Path:
        """A header below an array of tables speaks of the array's last element."""
        path: Path = ()
        for number, part in enumerate(parts, 1):
            path = (*path, part)
            if number < len(parts) and path in self.counts:
                path = (*path, self.counts[path] - 1)
        return path

    def _pair(self, table: Path) -> None:
        line = self._line()
        path = table
        for part in self._key():
            path = (*path, part)
            self.lines.setdefault(path, line)
        self.pos += 1  # the equals sign
        self._skip(_BLANK)
        self._value(path)

    def _key(self) -> Path:
        parts: list[str] = []
        while True:
            self._skip(_BLANK)
            bare = _BARE.match(self.text, self.pos)
            found = bare or _QUOTED.match(self.text, self.pos)
            if found is None:
                return tuple(parts)
            self.pos = found.end()
            parts.append(found.group() if bare else found.group()[1:-1])
            self._skip(_BLANK)
            if not self.text.startswith(".", self.pos):
                return tuple(parts)
            self.pos += 1

    def _value(self, path: Path) -> None:
        if self.text.startswith("[", self.pos):
            self._array(path)
        elif self.text.startswith("{", self.pos):
            self._inline_table(path)
        else:
            found = _QUOTED.match(self.text, self.pos) or _SCALAR.match(self.text, self.pos)
            self.pos = found.end() if found else self.pos + 1

    def _array(self, path: Path) -> None:
        self.pos += 1
        index = 0
        while not self._closes("]"):
            element = (*path, index)
            self.lines[element] = self._line()
            self._value(element)
            index += 1

    def _inline_table(self, path: Path) -> None:
        self.pos += 1
        while not self._closes("}"):
            self._pair(path)

    def _closes(self, bracket: str) -> bool:
        """Step over gaps and one comma; true, and past it, at the closing bracket or the end of the text."""
        self._skip(_GAP)
        if self.text.startswith(",", self.pos):
            self.pos += 1
            self._skip(_GAP)
        if self.pos >= len(self.text):
            return True
        if self.text.startswith(bracket, self.pos):
            self.pos += 1
            return True
        return False

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.pos)
        self.pos = found.end() if found else self.pos

    def _line(self) -> int:
        return self.text.count("\n", 0, self.pos) + 1
