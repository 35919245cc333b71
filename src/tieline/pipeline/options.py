"""Options of a Spark format as they are given: texts under names, read with a sentence for each that makes no sense."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final  # Any: Spark's offsets are JSON

#: Options that Spark itself puts among ours.
_SPARKS: Final = frozenset({"path", "checkpointlocation", "queryname", "truncate", "numrows"})


#: An offset as Spark keeps it in its checkpoint: JSON of which only the source that made it knows what is in it.
SparkOffset = dict[str, Any]


class OptionError(ValueError):
    """An option that cannot be meant; the message is one sentence that names it."""


@contextmanager
def needs_spark(version: str, what: str) -> Iterator[None]:
    """Around an import of what Spark has from a version on; :class:`OptionError` says so in earlier ones."""
    try:
        yield
    except ImportError as missing:
        if not (missing.name or "").startswith("pyspark."):
            raise
        import pyspark

        raise OptionError(
            f"{what} needs Spark {version} or later, and this is {pyspark.__version__}; batches are read with "
            "spark.read, and tieline pipeline ingest fills tables with every Spark 4"
        ) from None


class Given:
    """The options of one reader or writer; names as people write them, in any case."""

    def __init__(self, format_name: str, names: Sequence[str], options: Mapping[str, str]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        known = {name.lower() for name in names}
        for name in sorted(self._options.keys() - known - _SPARKS):
            raise OptionError(f'format("{format_name}") has no option "{name}"; it has {", ".join(names)}')

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._options

    def text(self, name: str) -> str | None:
        """A text that is not empty, if there is one."""
        return self._options.get(name.lower(), "").strip() or None

    def one_of(self, name: str, *choices: str) -> str:
        """One of some words, the first if none is given."""
        found = self.text(name) or choices[0]
        if found.lower() not in choices:
            raise OptionError(f'{name} = "{found}" is refused: it is {" or ".join(choices)}')
        return found.lower()

    def listed(self, name: str) -> tuple[str, ...]:
        """Several texts: on lines of their own, or, on one line, separated by commas."""
        text = self.text(name) or ""
        return tuple(each.strip() for each in text.split("\n" if "\n" in text else ",") if each.strip())

    def count(self, name: str, default: int) -> int:
        """A whole number from 1 up."""
        text = self.text(name) or str(default)
        if not (text.isascii() and text.isdigit() and len(text) <= 18) or int(text) < 1:
            raise OptionError(f'{name} = "{text}" is refused: it is a whole number from 1 up')
        return int(text)

    def seconds(self, name: str, default: float) -> float:
        """A time, at most a day."""
        text = self.text(name) or str(default)
        try:
            found = float(text)
        except ValueError:
            found = -1.0
        if not 0 <= found <= 86_400:
            raise OptionError(f'{name} = "{text}" is refused: it is a number of seconds, at most a day')
        return found

    def file(self, name: str) -> str | None:
        """What stands in a file that the option names.

        It is read where the query is planned and travels inside the plan, so that executors need no copy.
        """
        path = self.text(name)
        if path is None:
            return None
        try:
            return Path(path).read_text()
        except (OSError, UnicodeDecodeError) as problem:
            why = problem.strerror.lower() if isinstance(problem, OSError) and problem.strerror else "not a text file"
            raise OptionError(f"{name} = {path} cannot be read: {why}") from None

    def password(self) -> str | None:
        """From ``password`` or ``passwordFile``; neither makes sense without ``user``."""
        if "password" in self and "passwordFile" in self:
            raise OptionError("password and passwordFile are both given: one of them is enough")
        if self.text("user") is None and ("password" in self or "passwordFile" in self):
            raise OptionError("there is a password and no user: add the option user")
        text = self.file("passwordFile")
        # an editor ends the last line, and that is no part of a password
        return self._options.get("password") if text is None else text.rstrip("\r\n")
