"""What executors need to have, as one archive: the libraries of this environment that tasks import, and our modules.

Spark unpacks an archive in the directory of each executor and has it on the path of the Python workers, so that their
machines need a Python of the same minor version and nothing else.  Nothing is built or downloaded: the files are those
that are installed here, as their lists of files name them, so versions agree with the driver's.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final, NamedTuple

import tieline

#: What tasks import, by the names of distributions; the second ones only where they are installed.
_NEEDED: Final = ("msgspec", "numpy", "paho-mqtt", "pandas", "pyarrow")
_IF_THERE: Final = ("cbor2", "deltalake", "numba", "protobuf")
#: Modules of ours: ourselves, and the two by which Spark finds our formats.
_OURS: Final = ("tieline", "pyspark_tieline", "pyspark_mqtt")
#: Parts of libraries that are not for running: tests, headers, and what Python makes anew.
_LEFT_OUT: Final = frozenset({"__pycache__", "tests", "include"})
_COMPRESSION: Final = 6


class Packed(NamedTuple):
    """What is in an archive."""

    #: Name and version of each library.
    libraries: list[str]
    files: int
    size: int


def pack(target: Path) -> Packed:
    """Write the archive, in one step; what was there before stays until it is whole."""
    found = _closure()
    count = 0
    partial = target.with_name(f".{target.name}.new")
    try:
        with tarfile.open(partial, "w:gz", compresslevel=_COMPRESSION) as archive:
            for name, path in (*_libraries(found), *_ours()):
                archive.add(path, name, recursive=False)
                count += 1
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return Packed([f"{each.name} {each.version}" for each in found], count, target.stat().st_size)


def settings(archive: Path) -> dict[str, str]:
    """The settings of Spark by which executors use an archive."""
    return {"spark.archives": f"{archive}#tieline", "spark.executorEnv.PYTHONPATH": "tieline"}


def _closure() -> list[Distribution]:
    """The libraries and all that they require here."""
    from packaging.requirements import Requirement

    waiting = [*_NEEDED, *_IF_THERE]
    found: dict[str, Distribution] = {}
    while waiting:
        name = waiting.pop()
        if name.lower() in found:
            continue
        try:
            here = distribution(name)
        except PackageNotFoundError:
            if name in _NEEDED:
                raise
            continue
        found[name.lower()] = here
        required = map(Requirement, here.requires or ())
        waiting += [each.name for each in required if each.marker is None or each.marker.evaluate({"extra": ""})]
    return sorted(found.values(), key=lambda each: each.name.lower())


def _libraries(found: list[Distribution]) -> Iterator[tuple[str, Path]]:
    for each in found:
        for file in each.files or ():
            # programs are beside the modules, not below them
            if ".." in file.parts or file.is_absolute() or _LEFT_OUT.intersection(file.parts):
                continue
            path = Path(str(file.locate()))
            if path.is_file():
                yield file.as_posix(), path


def _ours() -> Iterator[tuple[str, Path]]:
    assert tieline.__file__ is not None
    root = Path(tieline.__file__).resolve().parent.parent
    for name in _OURS:
        for path in sorted((root / name).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(root).as_posix(), path
