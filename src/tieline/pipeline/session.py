"""One way to a Spark session: the same call on a laptop, on a cluster and through Spark Connect.

What a master on this machine needs is set here: a Java, this interpreter for the workers, loopback addresses, memory
and partitions by the machine's size.  A cluster keeps its own ideas about memory; it gets this interpreter's path only
if nobody said otherwise.  What ``spark-submit`` or ``spark-defaults.conf`` say comes before all of it.  A Spark Connect
server has been set up by others.  Both get our own modules as a zip, so that their machines need the libraries but not
us.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import tieline
from tieline.extras import is_installed, remedy
from tieline.pipeline.class_archive import Sharing, sharing
from tieline.pipeline.decided import decided, is_submitted
from tieline.pipeline.java import NoJava, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LOGGING: Final = Path(__file__).resolve().with_name("log4j2.properties")

#: For sessions that live for seconds: the quick compiler only, and the collector without threads; few rows are sooner
#: read again than compressed, and a plan that was made once is not made again on the way.  Long jobs would be slower.
BRIEF: Final[Mapping[str, str]] = MappingProxyType(
    {
        _JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        "spark.sql.adaptive.enabled": "false",
    }
)

_EVERYWHERE: Final = {
    # a timestamp in our tables is an instant; which clock the machine shows must not change a day partition
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
_LOOPBACK: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_NO_SETTINGS: Final[Mapping[str, str]] = MappingProxyType({})
#: Where a Spark Connect server listens unless told otherwise, and for how long it may take to accept a connection.
_CONNECT_PORT: Final = 15002
_PATIENCE_S: Final = 20.0
#: How often a request to it is sent again; with the pauses of Spark's client between them, for some twenty seconds.  A
#: server that was started anew has forgotten the session, so more patience would only help on bad networks.
_RETRIES: Final = 5
#: Modules that executors load: ourselves, and the two by which Spark finds our formats.
_OURS: Final = ("tieline", "pyspark_tieline", "pyspark_mqtt")


def brief() -> Mapping[str, str]:
    """:data:`BRIEF` without what somebody has decided before; nothing under ``spark-submit``: Java runs already."""
    if is_submitted():
        return {}
    before = decided()
    return {name: value for name, value in BRIEF.items() if name not in before}


class NoSpark(Exception):
    """Spark cannot be started or reached; the message is a sentence."""


def make_session(
    app_name: str,
    *,
    master: str | None = None,
    remote: str | None = None,
    settings: Mapping[str, str] = _NO_SETTINGS,
    makes_archive: bool = False,
) -> SparkSession:
    """A session on a master, or on a Spark Connect server (``remote="sc://host"``).

    If no master is said, it is that of ``spark-submit`` or ``spark-defaults.conf``, or else ``local[*]``.
    ``settings`` are Spark's own and come before theirs and ours.  With ``makes_archive`` this may be the run that
    leaves classes for later ones (``class_archive``): its JVM then ends with the program, which waits for it.  Raises
    :class:`NoJava` or :class:`NoSpark`, with a sentence.
    """
    if not is_installed("pyspark"):
        raise NoSpark(f"Spark is not installed: {remedy('pipeline')}")
    if remote is not None and master is not None:
        raise NoSpark(f"a session has a master ({master}) or a Spark Connect server ({remote}), not both")
    if remote is not None:
        return _connected(app_name, remote, settings)
    others = decided()
    named = settings.get("spark.master", others.get("spark.master", "local[*]"))
    return _launched(
        app_name,
        master or named,
        {**others, **settings},
        is_named="spark.app.name" in settings,
        makes_archive=makes_archive,
    )


def _connected(app_name: str, remote: str, settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy

        _look_for(remote)
        session = SparkSession.builder.remote(remote).appName(app_name).getOrCreate()
    except ImportError:
        raise NoSpark(f"Spark Connect needs libraries that are not here: {remedy('connect')}") from None
    session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
    for name, value in {"spark.sql.session.timeZone": "UTC", **settings}.items():
        session.conf.set(name, value)
    _send_modules(session)
    return session


def _look_for(remote: str) -> None:
    """Raise :class:`NoSpark` if nobody listens: Spark's client would try for ten minutes."""
    address = urlsplit(remote)
    try:
        host, port = address.hostname, address.port or _CONNECT_PORT
    except ValueError:
        host, port = None, 0
    if address.scheme != "sc" or host is None:
        raise NoSpark(f'"{remote}" is no Spark Connect server: one is written sc://HOST or sc://HOST:PORT')
    try:
        socket.create_connection((host, port), _PATIENCE_S).close()
    except OSError as problem:
        why = (problem.strerror or str(problem)).lower()
        raise NoSpark(f"no Spark Connect server answers at {host}:{port}: {why}") from None


def is_connected(session: SparkSession) -> bool:
    """Whether a session is behind Spark Connect: what it runs, runs in another process, also what the driver runs."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def has_sources(session: SparkSession) -> bool:
    """Whether this Spark can have sources in Python, which ``format("tieline")`` is one of: 4.0 and later can."""
    return hasattr(type(session), "dataSource")


def _launched(
    app_name: str, master: str, settings: Mapping[str, str], *, is_named: bool, makes_archive: bool
) -> SparkSession:
    from pyspark import SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    is_local = master.startswith("local")
    java = None if is_submitted() else find_java()
    shared = Sharing()
    if is_local and java is not None and SparkContext._gateway is None:  # noqa: SLF001  a JVM that runs has its options
        shared = sharing(java, settings, makes=makes_archive)
    # while the JVM starts nothing else decides what it prints, and a setting of Spark's comes too late
    logging = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    java_options = " ".join(filter(None, (logging, shared.options, settings.get(_JAVA_OPTIONS, ""))))
    ours = {**_EVERYWHERE, **(_on_this_machine(master) if is_local else {})}
    name = settings["spark.app.name"] if is_named else app_name
    builder = SparkSession.builder
    for key, value in {**ours, **settings, _JAVA_OPTIONS: java_options}.items():
        builder = builder.config(key, value)
    builder = builder.master(master).appName(name)
    environment = {**_worker_python(settings), **_import_path()}
    if java is not None:
        environment["JAVA_HOME"] = str(java.launcher)
    if is_local and "SPARK_LOCAL_IP" not in os.environ:
        # without it Spark looks for an address that others can reach, and warns when it finds loopback
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    try:
        with _environment(environment):
            session = builder.getOrCreate()
    except PySparkRuntimeError as problem:
        if shared.making is not None:
            shared.making.lock.close()
        if java is None or problem.getErrorClass() != "JAVA_GATEWAY_EXITED":
            raise
        raise NoJava(
            f"Java ({java.home}) ended before Spark had started; what it said itself is above. "
            "`tieline doctor` shows which Java was taken and why."
        ) from None
    gateway = session.sparkContext._gateway  # noqa: SLF001  nothing else knows the process
    if shared.making is not None and gateway is not None:
        shared.making.keep_at_exit(gateway.proc)
    if "spark.log.level" not in settings:
        session.sparkContext.setLogLevel("ERROR")
    if not is_local:
        _send_modules(session)
    return session


def _on_this_machine(master: str) -> dict[str, str]:
    threads = re.fullmatch(r"local\[(\d+)(?:,.*)?\]", master)
    partitions = int(threads[1]) if threads else cores()
    return {
        **_LOOPBACK,
        "spark.sql.shuffle.partitions": str(max(2, partitions)),
        "spark.driver.memory": f"{heap_mebibytes(memory_bytes())}m",
    }


def cores() -> int:
    """Processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes(group: Path = Path("/sys/fs/cgroup/memory.max")) -> int:
    """Memory of the machine, or of the container if that has less."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no such file, or "max"
        return min(whole, int(group.read_text()))
    return whole


def heap_mebibytes(memory: int) -> int:
    """How large the JVM may grow: a quarter of the machine, so that the Python workers beside it have room."""
    return min(8_192, max(1_024, memory // 4 >> 20))


def _worker_python(settings: Mapping[str, str]) -> dict[str, str]:
    # Spark would take `python3` from PATH, which has no pandas where this is a virtual environment; of the setting only
    # spark-submit knows
    said = settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or sys.executable
    return {"PYSPARK_PYTHON": said, "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON", sys.executable)}


def _import_path() -> dict[str, str]:
    """Workers find what this process finds, though it was put on ``sys.path`` by hand or by a test runner."""
    ours = str(_root())
    paths = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    return {"PYTHONPATH": os.pathsep.join(paths if ours in paths else [*paths, ours])}


def _root() -> Path:
    assert tieline.__file__ is not None
    return Path(tieline.__file__).resolve().parent.parent


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for the JVM's start alone: this process's own stay as they were."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _send_modules(session: SparkSession) -> None:
    """Give executors, and a Spark Connect server, our modules.

    Formats that Spark finds by name run without the files that were added to a session; registered ones have them.
    """
    packed = _packed()
    if is_connected(session):
        session.addArtifact(str(packed), pyfile=True)
        # the server has its own copy now; a driver would serve this one for as long as it lives
        shutil.rmtree(packed.parent)
    else:
        session.sparkContext.addPyFile(str(packed))
    if has_sources(session):
        from tieline.pipeline.foreign.format import MqttSource
        from tieline.pipeline.source.format import TielineSource

        for source in (TielineSource, MqttSource):
            session.dataSource.register(source)


def _packed() -> Path:
    """Our modules as a zip that Python imports from; Spark copies it to every executor."""
    target = Path(tempfile.mkdtemp(prefix="tieline-"), "tieline-modules.zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for name in _OURS:
            for path in sorted((_root() / name).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    packed.write(path, path.relative_to(_root()))
    return target
