"""What is wrong with a configuration, where, and in one sentence."""

from __future__ import annotations


class ConfError(Exception):
    """A configuration that cannot be used; nothing falls back to a default.

    ``file`` names the source as the user knows it, ``line`` counts from 1 and is None when no line is to blame.
    """

    def __init__(self, *, file: str, line: int | None, text: str) -> None:
        super().__init__(file, line, text)
        self.file = file
        self.line = line
        self.text = text

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.text}"
