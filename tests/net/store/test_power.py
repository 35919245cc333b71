"""Power is lost: what was acknowledged is on the disk, not only in the page cache."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest

from tests.kits.patience import PATIENCE_S
from tests.net.store.disk import Disk, calls, strace
from tests.net.store.stage import record, retain
from tieline.net.store.database import open_to_write, replay, rows
from tieline.net.store.frames import AnswerKind, Answers, Options, encode_batch
from tieline.net.store.schema import Unusable, path_of

#: Runs the writer with another value of PRAGMA synchronous, set after its own; and in small steps, so that the journal
#: becomes rows and the write-ahead log goes into the file many times.
_LOWERED = """
import sys
from tieline.net.store import database, writer
configure = database._configure
def lowered(db):
    configure(db)
    db.execute("PRAGMA synchronous = {}")
database._configure = lowered
database._CHECKPOINT_PAGES = 40
writer.FOLD_ROWS = 7
sys.exit(writer.main())
"""

BATCHES = 60


pytestmark = pytest.mark.usefixtures("tracing")


def written(folder: Path, synchronous: str) -> tuple[Path, Path]:
    """A data directory to which a traced writer has committed batches one by one, and the trace."""
    data, trace = folder / "data", folder / "trace"
    data.mkdir(mode=0o700)
    ours, theirs = socket.socketpair()
    program = [sys.executable, "-c", _LOWERED.format(synchronous), str(theirs.fileno())]
    with subprocess.Popen([*strace(trace), *program], pass_fds=(theirs.fileno(),), stdin=subprocess.PIPE) as process:
        theirs.close()
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(Options(data=str(data))))
        process.stdin.close()
        ours.settimeout(PATIENCE_S)
        answers = Answers()
        waiting = _answers(ours, answers)
        assert next(waiting) is AnswerKind.READY
        for number in range(1, BATCHES + 1):
            ours.sendall(encode_batch(number, retain(number, b"payload %d" % number * 50), [record(number)]))
            assert next(waiting) is AnswerKind.COMMITTED
        ours.close()
        process.wait(PATIENCE_S)
    return data, trace


def _answers(sock: socket.socket, answers: Answers) -> Iterator[AnswerKind]:
    while data := sock.recv(65_536):
        for kind, _ in answers.feed(data):
            if kind is not AnswerKind.ROWS:
                yield kind


def survivors(data: Path) -> tuple[set[int], int]:
    """The retained messages and the log's next offset that a broker would find."""
    db = open_to_write(data)
    try:
        fold, last = replay(db, path_of(data))
        fold.write(db, last)
        kept = {number for _, number in rows(db, "retained", path_of(data))}
        list(rows(db, "message", path_of(data)))
        return kept, db.execute("SELECT next FROM stream WHERE name = 'log'").fetchone()[0]
    finally:
        db.close()


def lost(folder: Path, synchronous: str, random: Random, *, is_torn: bool = False) -> int:
    """How many acknowledged batches are missing if power is lost at the worst of some random moments.

    Half of the moments are those when an acknowledgement has just left.
    """
    data, trace = written(folder, synchronous)
    made = list(calls(trace))
    answers = [
        place for place, call in enumerate(made) if call.name == "sendto" and call.text[0] == AnswerKind.COMMITTED
    ]
    assert len(answers) == BATCHES
    moments = {answers[-1], *random.sample(answers, 8), *random.sample(range(answers[0], len(made)), 8)}
    disk, acknowledged, worst = Disk(data), 0, 0
    for place, call in enumerate(made):
        acknowledged += place in answers
        disk.follow(call)
        if place in moments:
            image = folder / f"image {place}"
            disk.lose_power(image, random if is_torn else None)
            try:
                kept, offset = survivors(image)
            except (Unusable, sqlite3.DatabaseError):
                kept, offset = set(), 0
            worst = max(worst, len(set(range(1, acknowledged + 1)) - kept), acknowledged - offset)
    return worst


@pytest.mark.parametrize("is_torn", [False, True], ids=["all lost", "some sectors kept"])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_what_was_acknowledged_is_on_the_disk(tmp_path: Path, seed: int, is_torn: bool) -> None:
    assert lost(tmp_path, "FULL", Random(seed), is_torn=is_torn) == 0


@pytest.mark.parametrize("synchronous", ["NORMAL", pytest.param("OFF", marks=pytest.mark.slow)])
def test_the_test_would_notice_if_it_were_not(tmp_path: Path, synchronous: str) -> None:
    assert lost(tmp_path, synchronous, Random(1)) > 0
