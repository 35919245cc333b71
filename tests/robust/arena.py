"""A live broker, a pair of well-behaved clients that talk all the time, and room for somebody who misbehaves.

Leaving the arena asserts that the pair noticed nothing: every message it sent arrived, in order, in good time, on
connections that were never closed.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic, thread_time
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import msgspec

from tests.kits.dial import Dial, dial, open_socket
from tests.kits.patience import until
from tests.kits.world import configured
from tieline.conf.schema import Listener, Mqtt, Settings
from tieline.core.broker import Broker as Core
from tieline.net.loop import Loop
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Puback, Publish, Suback

T = TypeVar("T")

#: The pair must not wait longer than this for one message, on a machine that has other things to do as well.
LONGEST_S: Final = 5.0
#: Exchanges that the pair makes after the abuse is over, at least.
AFTERWARDS: Final = 5


class Pair:
    """A publisher and a subscriber that exchange QoS 1 messages, one at a time, until told to stop."""

    def __init__(self, url: str, prefix: str = "pair") -> None:
        #: Out of sight of filters that begin with a wildcard.
        self._topic = f"${prefix}/topic"
        self._subscriber = dial(url, f"{prefix}-subscriber", keep_alive=60)
        self._publisher = dial(url, f"{prefix}-publisher", version=4, keep_alive=60)
        self._subscriber.subscribe(self._topic, qos=1)
        self._stopping = threading.Event()
        #: Messages sent and received.
        self.exchanged = 0
        self.longest_s = 0.0
        self._trouble: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="pair", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                began = monotonic()
                self._exchange(self.exchanged)
                self.longest_s = max(self.longest_s, monotonic() - began)
                self.exchanged += 1
                self._stopping.wait(0.001)
        except BaseException as trouble:  # noqa: BLE001 - told by the thread that asks
            self._trouble = trouble

    def _exchange(self, number: int) -> None:
        packet_id = number % 65_535 + 1
        self._publisher.send(Publish(topic=self._topic, payload=b"%d" % number, qos=1, packet_id=packet_id))
        self._publisher.expect(Puback, packet_id=packet_id)
        message = self._subscriber.expect(Publish, topic=self._topic, payload=b"%d" % number, qos=1, dup=False)
        self._subscriber.send(Puback(packet_id=message.packet_id))

    def abandon(self) -> None:
        """Stop without asking."""
        self._stopping.set()
        self._thread.join()
        self._subscriber.close()
        self._publisher.close()

    def stop(self) -> None:
        """Let a few more exchanges happen, then assert that nothing was ever amiss."""
        goal = self.exchanged + AFTERWARDS
        until(lambda: self.exchanged >= goal or self._trouble is not None, "the pair goes on")
        self.abandon()
        if self._trouble is not None:
            raise AssertionError(f"the pair suffered after {self.exchanged} messages") from self._trouble
        assert self.longest_s < LONGEST_S, f"a message of the pair took {self.longest_s:.1f} s"


class _TimedLoop:
    """The broker's loop, for whoever calls its turns; the time that each takes is told."""

    def __init__(self, loop: Loop, tell: Callable[[float], None]) -> None:
        self._loop = loop
        self._tell = tell

    def turn(self) -> None:
        """One turn."""
        start = thread_time()
        self._loop.turn()
        self._tell(thread_time() - start)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


class Arena:
    """A broker in a thread, with its log and its counters in reach."""

    def __init__(self, **options: object) -> None:
        settings = Settings(listener=(Listener(url="tcp://127.0.0.1:0"),), mqtt=Mqtt(sys_interval_s=0))
        listener_connections = options.pop("listener_connections", "none")
        settings = configured(settings, **options)
        listeners = tuple(msgspec.structs.replace(one, connections=listener_connections) for one in settings.listener)
        self._thread = BrokerThread(msgspec.structs.replace(settings, listener=listeners))
        self._log = _Log()
        self._opened: list[socket.socket] = []
        self._longest_turn_s = 0.0

    def __enter__(self) -> Self:
        logger = logging.getLogger("tieline")
        self._level = logger.level
        logger.setLevel(logging.INFO)
        logger.addHandler(self._log)
        self._thread.__enter__()
        self.url = self._thread.urls[0]
        self.pair = Pair(self.url)
        self.ask(lambda _: self._watch_turns())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.pair.stop()
                assert not [line for line in self._log.lines if "internal error" in line]
                assert not self.closed("internal_error")
        finally:
            self.pair.abandon()
            for sock in self._opened:
                sock.close()
            self._thread.__exit__(kind, error, trace)
            logger = logging.getLogger("tieline")
            logger.removeHandler(self._log)
            logger.setLevel(self._level)

    # --- who misbehaves -----------------------------------------------------------------------------------------------

    def open(self, *, reads_little: bool = False) -> socket.socket:
        """A bare connection; one that ``reads_little`` leaves almost everything with the broker."""
        sock = open_socket(self.url)
        self._opened.append(sock)
        if reads_little:
            shrink(sock)
        return sock

    def dial(self, client_id: str, *, version: int = 5, reads_little: bool = False, **fields: Any) -> Dial:
        """A client that has been let in."""
        client = dial(self.url, client_id, version=version, **fields)
        self._opened.append(client.sock)
        if reads_little:
            shrink(client.sock)
        return client

    def subscriber(self, client_id: str, filter_: str, *, qos: int = 0, version: int = 5) -> Dial:
        """A client that subscribes and then never reads again."""
        client = self.dial(client_id, version=version, reads_little=True)
        assert isinstance(client.subscribe(filter_, qos), Suback)
        return client

    # --- what the broker says -----------------------------------------------------------------------------------------

    def ask(self, question: Callable[[Core], T]) -> T:
        """Run a question in the broker's own thread."""
        return self._thread.ask(question)

    def spent_s(self) -> float:
        """Processor time that the broker's thread has taken so far."""
        return self.ask(lambda _: thread_time())

    def take_longest_turn(self) -> float:
        """The longest turn of the broker's loop since the last call, in seconds of the thread's own processor time.

        What else the machine does meanwhile is not the broker's work.
        """
        longest, self._longest_turn_s = self._longest_turn_s, 0.0
        return longest

    def _watch_turns(self) -> None:
        nested = self._thread._server._nested
        assert nested is not None
        timed = _TimedLoop(nested._loop, self._note_turn)
        setattr(nested, "_loop", timed)  # noqa: B010 - to mypy it is no Loop

    def _note_turn(self, seconds: float) -> None:
        self._longest_turn_s = max(self._longest_turn_s, seconds)

    def closed(self, name: str) -> int:
        """Connections that ended for this reason."""
        return self.ask(lambda core: core.account.closed[name])

    def drops(self, name: str) -> int:
        """Messages that were discarded for this reason."""
        return self.ask(lambda core: {why.value: count for why, count in core.account.drops.items()}.get(name, 0))

    def refusals(self, name: str) -> int:
        """Subscriptions and packet ids that were refused for this reason."""
        return self.ask(lambda core: core.account.refusals[name])

    def holds(self, name: str) -> int:
        """How often a connection was not read for this reason."""
        return self.ask(lambda core: core.account.holds[name])

    def expect_closed(self, name: str, count: int = 1, *, who: str = "") -> None:
        """Connections end for this reason, and the log says so."""
        until(lambda: self.closed(name) >= count, f"{count} connections closed as {name}")
        self.expect_log(name, who)

    def expect_drops(self, name: str) -> None:
        """Messages are discarded for this reason, and the log says so."""
        until(lambda: self.drops(name), f"messages dropped as {name}")
        self.expect_log(name)

    def expect_held(self, name: str, *, who: str = "") -> None:
        """A connection is not read for this reason, and the log says so."""
        until(lambda: self.holds(name), f"a connection held as {name}")
        self.expect_log(name, who)

    def expect_log(self, *words: str) -> None:
        """A line of the log contains all these words."""
        until(
            lambda: any(all(word in line for word in words) for line in list(self._log.lines)),
            f"a log line with {words}",
        )


class _Log(logging.Handler):
    """Keeps the lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def shrink(sock: socket.socket) -> None:
    """Leave the kernel as little room as it allows for what we do not read."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)


@contextmanager
def beside(action: Callable[[], object]) -> Iterator[None]:
    """Do something in another thread while the block runs, and wait for its end."""
    worker = threading.Thread(target=action, daemon=True)
    worker.start()
    try:
        yield
    finally:
        worker.join()


@contextmanager
def hammering(action: Callable[[], object]) -> Iterator[None]:
    """Repeat an action in another thread until the block ends; the error of a closed socket ends it, too."""
    stopping = threading.Event()

    def run() -> None:
        with suppress(OSError):
            while not stopping.is_set():
                action()

    with beside(run):
        try:
            yield
        finally:
            stopping.set()
