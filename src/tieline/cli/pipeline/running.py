"""How a job runs: in a Spark session that ends with it, until a signal ends it, and with errors as sentences."""

from __future__ import annotations

import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Final  # Any: a handler as the signal module has it

from tieline.cli.trouble import FAILED, INTERRUPTED, Trouble
from tieline.cli.waiting import Step, waiting
from tieline.extras import library_in, remedy
from tieline.pipeline.complaint import sentence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: What a Python process without a library says.
_MISSING: Final = re.compile(r"No module named ('[\w.]+')")


@contextmanager
def sentences() -> Iterator[None]:
    """Whatever Spark or a missing library says becomes one sentence and an exit code."""
    try:
        yield
    except ModuleNotFoundError as missing:
        library = library_in(missing)
        if library == "tieline":
            raise
        raise Trouble(f"this needs {library}: {remedy(_extra(library))}", code=FAILED) from None
    except KeyboardInterrupt:
        raise Trouble("interrupted.", code=INTERRUPTED) from None
    except OSError as problem:
        if problem.filename is None:
            raise
        raise Trouble(f"{problem.filename}: {(problem.strerror or str(problem)).lower()}.", code=FAILED) from None
    except Exception as problem:
        text = _said(problem)
        if text is None:
            raise
        raise Trouble(text, code=FAILED) from None


@contextmanager
def session(
    master: str | None,
    name: str,
    *,
    settings: Mapping[str, str] | None = None,
    verbose: bool = False,
    ends: bool = False,
    work: str | None = None,
) -> Iterator[SparkSession]:
    """A Spark session that ends with the block; SIGTERM interrupts the block as Ctrl-C does.

    ``master`` may also be a Spark Connect server, ``sc://host``.  What ``ends`` by itself may leave an archive of
    classes, with which later jobs start sooner.  ``work`` says what a terminal is told while it runs; whoever gives it
    prints answers behind the block.
    """
    with sentences(), _terminable(), _told(work) as step:
        from tieline.pipeline.session import make_session

        # Spark would put a handler of its own in place of ours
        with _handled(signal.SIGINT, signal.getsignal(signal.SIGINT)):
            if is_server(master):
                # an error says the same, in more words
                warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")
                spark = make_session(name, remote=master, settings=settings or {})
            else:
                spark = make_session(name, master=master, settings=settings or {}, makes_archive=ends)
                if spark.sparkContext.uiWebUrl is not None:
                    print(f"Spark's pages: {spark.sparkContext.uiWebUrl}", file=sys.stderr, flush=True)
                if not verbose:
                    # errors arrive as exceptions and become sentences; at level ERROR their traces would come first
                    spark.sparkContext.setLogLevel("FATAL")
        try:
            if work is not None:
                step.go_on(work, None if is_server(master) else partial(_tasks, spark))
            yield spark
        finally:
            # a second Ctrl-C must not leave a Java process behind
            with _handled(signal.SIGINT, signal.SIG_IGN), _handled(signal.SIGTERM, signal.SIG_IGN):
                spark.stop()


def _told(work: str | None) -> AbstractContextManager[Step]:
    return nullcontext(Step("")) if work is None else waiting("starting Spark")


def _tasks(spark: SparkSession) -> str:
    """How many of the tasks are done that Spark has begun with."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    done, all_ = (sum(count) for count in zip(*((s.numCompletedTasks, s.numTasks) for s in stages if s), strict=True))
    return f"{done:,} of {all_:,} tasks"


def is_server(master: str | None) -> bool:
    """Whether a master is a Spark Connect server."""
    return master is not None and master.startswith("sc://")


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """While this lasts, SIGINT and SIGTERM only set the event: for work that ends between two batches."""
    asked = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        asked.set()

    with _handled(signal.SIGINT, stop), _handled(signal.SIGTERM, stop):
        yield asked


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM as an interruption, unless somebody outside has other plans for it."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    with _handled(signal.SIGTERM, signal.default_int_handler):
        yield


@contextmanager
def _handled(number: signal.Signals, handler: Any) -> Iterator[None]:  # Any: as the library has it
    """A signal's handler, for a while; only the main thread may set one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def _said(problem: Exception) -> str | None:
    """What an error of Spark, or one of ours that is a sentence already, says; None for a fault of the program."""
    module = type(problem).__module__
    if module.startswith("tieline.pipeline."):
        return str(problem)
    if module.startswith(("pyspark.", "py4j.")):
        said = sentence(str(problem))
        missing = _MISSING.search(said)
        if missing is None:
            return said
        return (
            f"Spark's tasks have no module {missing[1]}: the machines of the cluster need the libraries of this one; "
            "`tieline pipeline package` packs them."
        )
    return None


def _extra(library: str) -> str:
    return {"deltalake": "delta", "cbor2": "payloads", "google": "payloads"}.get(library, "pipeline")
