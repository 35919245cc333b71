"""Whether the broker's hot modules run as machine code, and whether that code is made of the source beside it.

Compiling writes down the digests of the sources, in the form of ``sha256sum``, beside the libraries
(``native_build.py``).  A library whose source has changed would run code that nobody can read any more, so that
``import tieline`` asks :func:`check` first.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent
#: Beside this file, one for each Python, since the libraries of one are not seen by another.
_RECORD: Final = f"native{EXTENSION_SUFFIXES[0]}.sha256"


class StaleLibrary(ImportError):
    """The compiled modules are not those of the source."""


def is_compiled() -> bool:
    """Whether there are compiled modules for this Python."""
    return (_PACKAGE / _RECORD).exists()


def check() -> None:
    """Raise :class:`StaleLibrary` if a source has changed since it was compiled."""
    if not is_compiled():
        return
    lines = (line.partition("  ") for line in (_PACKAGE / _RECORD).read_text().splitlines())
    changed = [name for digest, _, name in lines if _digest(_PACKAGE / name) != digest]
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise StaleLibrary(
            f"tieline/{changed[0]}{more} changed after the broker was compiled, and the old machine code would run: "
            "'make compile' compiles it again, 'make uncompile' goes back to plain Python."
        )


def record(sources: Iterable[str]) -> tuple[str, str]:
    """Name and text of what is written down about sources, whose paths are relative to the package."""
    return _RECORD, "".join(f"{_digest(_PACKAGE / name)}  {name}\n" for name in sources)


def _digest(file: Path) -> str:
    """Empty if there is no such file any more."""
    from hashlib import sha256

    return sha256(file.read_bytes()).hexdigest() if file.exists() else ""
