"""The broker's end of the store: batches go into a socket without waiting, answers come out of it.

The broker's loop never runs SQL and never waits for a disk.  What the socket does not take at once is kept here, and
while that is more than a bound, ``is_behind`` asks the broker to read no more from its clients.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from tieline.conf.paths import distrust
from tieline.core.ports import Fact, Portion, Rows
from tieline.core.restore import StoredState
from tieline.net.store.directory import BROKER, Lock
from tieline.net.store.frames import AnswerKind, Answers, Keep, Options, Question, encode_batch, encode_question
from tieline.net.store.schema import Unusable

if TYPE_CHECKING:
    from tieline.net.loop import Loop

#: Bytes not yet taken by the writer above which clients are not read, and below which they are again.
BEHIND: Final = 8_388_608
CAUGHT_UP: Final = 2_097_152
#: Bytes given to the socket at once.
_WRITE: Final = 1_048_576
_READ: Final = 65_536
#: How long a clean shutdown waits for the writer.
_CLOSE_S: Final = 30.0

_decode: Final = msgspec.msgpack.decode


class Durable:
    """A store that survives the process, kept by a writer process."""

    is_volatile = False

    def __init__(self, data: str | Path, keep: Keep, declared: str = "") -> None:
        """``declared`` are the event types under which messages are captured, as the store keeps them."""
        self._data = Path(data)
        self._options = Options(data=str(self._data), keep=keep, declared=declared)
        self._lock: Lock | None = None
        self._sock: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._answers = Answers()
        self._token = 0
        self._committed = 0
        #: Batches that the socket has not taken, the first one perhaps in part; and their bytes.
        self._unsent: deque[bytes | memoryview] = deque()
        self.backlog = 0
        self.is_behind = False
        #: Questions that were not answered yet.
        self.unanswered = 0
        self.fd = -1
        self._loop: Loop | None = None
        self._is_blocked = False
        #: Called when a token is permanent, with what was read, when there is no room (or room again), with an alarm,
        #: and when it is over.
        self.on_committed: Callable[[int], None] = lambda _: None
        self.on_portion: Callable[[Portion, float], None] = lambda _portion, _now: None
        self.on_trouble: Callable[[str, float], None] = lambda _text, _now: None
        self.on_alarm: Callable[[str], None] = lambda _: None
        self.on_end: Callable[[str], None] = lambda _: None

    # -- beginning and end

    def open(self) -> StoredState:
        """Start the writer and wait for what it knows; raises Unusable with a sentence."""
        try:
            self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise Unusable(f"{self._data} cannot be used: {error.strerror}") from None
        if problem := distrust(self._data):
            raise Unusable(problem)
        self._lock = Lock(self._data, BROKER)
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", "tieline.net.store.writer", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.PIPE,
                env=_environment(),
            )
        except BaseException:
            ours.close()
            self._lock.release()
            raise
        finally:
            theirs.close()
        self._sock = ours
        self.fd = ours.fileno()
        try:
            _tell(self._process, self._options)
            return self._load(ours)
        except BaseException:
            self.close()
            raise

    def _load(self, sock: socket.socket) -> StoredState:
        state = StoredState()
        while True:
            data = sock.recv(_READ)
            if not data:
                raise Unusable("the writer of the store ended before it had begun")
            for kind, content in self._answers.feed(data):
                match kind:
                    case AnswerKind.ROWS:
                        table, rows = _decode(content)
                        state.tables[table] += rows
                    case AnswerKind.READY:
                        counters = _decode(content)
                        state.starts, state.messages = counters["starts"], counters["messages"]
                        sock.setblocking(False)
                        return state
                    case AnswerKind.REFUSED:
                        raise Unusable(_decode(content, type=str))
                    case _:
                        self.on_alarm(_decode(content, type=str))

    def attach(self, loop: Loop) -> None:
        """Let the broker's loop watch the socket."""
        self._loop = loop
        loop.watch(self)

    def detach(self) -> None:
        """The loop ends; what is submitted from now on is written by :meth:`close`."""
        if self._loop is not None:
            self._loop.forget(self)
            self._loop = None

    def close(self) -> None:
        """Hand everything over and wait until the writer has made it permanent and ended."""
        self.detach()
        sock, self._sock = self._sock, None
        if sock is not None:
            sock.settimeout(_CLOSE_S)
            try:
                for data in self._unsent:
                    sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)
                while data := sock.recv(_READ):
                    self._take(data, 0.0)
            except OSError:
                pass  # the writer is gone; what it did not commit was never acknowledged
            sock.close()
        if self._process is not None:
            try:
                self._process.wait(_CLOSE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    # -- the store

    def submit(self, facts: Sequence[Fact], log: Rows = (), events: Rows = ()) -> int:
        """Take a batch over; it leaves with the next :meth:`flush`."""
        self._token += 1
        data = encode_batch(self._token, facts, log, events)
        self._unsent.append(data)
        self.backlog += len(data)
        if self.backlog > BEHIND:
            self.is_behind = True
        return self._token

    def read(self, session: int, lane: int, after: int, messages: int, size: int) -> None:
        """Ask for the next part of what waits for a session in the store alone; ``on_portion`` is called with it."""
        data = encode_question(Question(session, lane, after, messages, size))
        self._unsent.append(data)
        self.backlog += len(data)
        self.unanswered += 1

    @property
    def committed(self) -> int:
        """Every batch up to this token is permanent."""
        return self._committed

    @property
    def submitted(self) -> int:
        """The last token given."""
        return self._token

    def flush(self) -> None:
        """Give the writer what it takes now."""
        if not self._unsent or self._is_blocked or self._sock is None:
            return
        unsent = self._unsent
        while unsent:
            data = unsent[0] if len(unsent) == 1 else self._gather()
            try:
                sent = self._sock.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                return  # the writer is gone; reading the socket will say so
            self.backlog -= sent
            if sent == len(data):
                unsent.popleft()
                continue
            unsent[0] = memoryview(data)[sent:]
            self._watch(is_blocked=True)
            break
        if self.is_behind and self.backlog < CAUGHT_UP:
            self.is_behind = False
            self.on_committed(self._committed)

    def _gather(self) -> bytes:
        """Many small batches as one piece, which takes the place of the first."""
        unsent = self._unsent
        parts: list[bytes | memoryview] = []
        size = 0
        while unsent and size < _WRITE:
            part = unsent.popleft()
            parts.append(part)
            size += len(part)
        data = b"".join(parts)
        unsent.appendleft(data)
        return data

    def _watch(self, *, is_blocked: bool) -> None:
        self._is_blocked = is_blocked
        if self._loop is not None:
            self._loop.modify(self, select.EPOLLIN | (select.EPOLLOUT if is_blocked else 0))

    def handle(self, events: int, now: float, is_alone: bool) -> None:
        """The socket can be read or written."""
        if events & select.EPOLLOUT:
            self._watch(is_blocked=False)
            self.flush()
        if not events & ~select.EPOLLOUT or self._sock is None:
            return
        try:
            data = self._sock.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.detach()
            self.on_end("the writer of the store has ended")
            return
        self._take(data, now)

    def _take(self, data: bytes, now: float) -> None:
        token = 0
        for kind, content in self._answers.feed(data):
            match kind:
                case AnswerKind.COMMITTED:
                    token = _decode(content, type=int)
                case AnswerKind.PORTION:
                    self.unanswered -= 1
                    self.on_portion(_decode(content, type=Portion), now)
                case AnswerKind.TROUBLE:
                    self.on_trouble(_decode(content, type=str), now)
                case AnswerKind.REFUSED:
                    self.detach()
                    self.on_end(_decode(content, type=str))
                case _:
                    self.on_alarm(_decode(content, type=str))
        if token > self._committed:
            self._committed = token
            self.on_committed(token)


def _tell(process: subprocess.Popen[bytes], options: Options) -> None:
    """Say to a writer what it needs to know; one that has ended already says so when it is listened to."""
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as pipe:
        pipe.write(msgspec.json.encode(options))


def _environment() -> dict[str, str]:
    """The writer must find this package, wherever this process found it."""
    root = str(Path(__file__).resolve().parents[3])
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{inherited}" if inherited else root}
