"""Slow reader: a subscriber that takes 1 kB a second of four that it is sent still gets what is urgent first.

A second subscriber of the same topics reads promptly; it must not notice the slow one.  Neither may strangers: the
throughput and latency of other clients is measured beside the same scene twice, with a reader that is slow and with
one that takes whatever comes, so that the difference is the slowness and not the work of playing the scene.

The slow reader's own receive buffer and the kernel's bytes on the broker's side are beyond any scheduler: at 1 kB a
second they last for seconds.  What counts is therefore how many bytes the reader takes between the moment an urgent
message is published and its arrival.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Self

from tieline.bench.brokers import Mosquitto, Tieline
from tieline.bench.load.job import Endpoint, Failure, Generator, Metrics
from tieline.bench.load.latency import PacedClients
from tieline.bench.load.saturate import Saturate, Topics
from tieline.bench.peer import Instance
from tieline.bench.timed.link import KERNEL_BYTES
from tieline.bench.timed.nodes import Reader, SlowReader, Timetable, Writer, clock, hang_up, open_node, subscribe
from tieline.bench.timed.packets import Arrival, Flows, quantile_of

READ_BYTES_PER_S = 1_000.0
BULK_BYTES, URGENT_BYTES = 500, 120
BULK_BYTES_PER_S = 4_000.0
URGENT_EVERY_S = 1.0
#: Asked of the kernel for the slow reader; it doubles the number, and less is not to be had.
RECEIVE_BUFFER = 1_152
SEGMENT = 536
_URGENT, _BULK = "slow/urgent", "slow/bulk"
CONFIGURATION = f"""\
[[class]]
name = "alarm"
filter = "{_URGENT}"
level = 3
[[class]]
name = "bulk"
filter = "slow/#"
level = 1
"""
#: What the strangers' rows are called.
WITH_PROMPT, WITH_SLOW = "beside a prompt reader", "beside a slow reader"
#: Faster than anything it is sent.
PROMPT_BYTES_PER_S = 1e9
#: After the last urgent message so much time is left for its arrival.
_TAIL_S = 9.0
_CONGESTED_S = 1.5


@dataclass(slots=True)
class SlowScene:
    """A slow reader, a prompt one, and what they are sent."""

    timetable: Timetable
    bytes_per_s: float = READ_BYTES_PER_S
    flows: Flows = field(default_factory=lambda: Flows((_URGENT, _BULK)))
    #: The same messages as the prompt reader saw them.
    prompt: dict[str, dict[int, int]] = field(default_factory=lambda: {_URGENT: {}, _BULK: {}})
    #: Bytes that the slow reader had taken when each urgent message was published, and when it arrived.
    taken_before: list[int] = field(default_factory=list)
    taken_after: dict[int, int] = field(default_factory=dict)
    slow: SlowReader | None = None
    sockets: list[socket.socket] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        hang_up(self.sockets)

    def begin(self, at: Endpoint, *, urgent_until: float, until: float) -> None:
        """Connect everybody and publish from now on."""
        reader = open_node(at.host, at.port, "slow", receive_buffer=RECEIVE_BUFFER, segment=SEGMENT)
        self.sockets.append(reader)
        self.sockets += [open_node(at.host, at.port, name) for name in ("prompt", "slow-urgent", "slow-bulk")]
        _, prompt, *senders = self.sockets
        for sock in (reader, prompt):
            subscribe(sock, ["slow/#"])
        self.slow = SlowReader(reader, self.timetable, self._slow, bytes_per_s=self.bytes_per_s)
        Reader(prompt, self.timetable, self._prompt)
        urgent, bulk = (Writer(sock, self.timetable) for sock in senders)

        def send_urgent() -> None:
            assert self.slow is not None
            self.taken_before.append(self.slow.taken)
            urgent.write(self.flows.message(_URGENT, URGENT_BYTES))

        now = clock()
        self.timetable.every(URGENT_EVERY_S, now + _CONGESTED_S, urgent_until, send_urgent)
        period_s = BULK_BYTES / BULK_BYTES_PER_S
        self.timetable.every(period_s, now, until, lambda: bulk.write(self.flows.message(_BULK, BULK_BYTES)))

    def _slow(self, arrival: Arrival, when_ns: int) -> None:
        if arrival.topic == _URGENT:
            assert self.slow is not None
            self.taken_after[arrival.mark[0]] = self.slow.taken
        self.flows.received(arrival, when_ns)

    def _prompt(self, arrival: Arrival, when_ns: int) -> None:
        number, _ = arrival.mark
        self.prompt[arrival.topic][number] = when_ns

    def metrics(self, seconds: float) -> Metrics:
        """What both readers saw."""
        urgent = self.flows[_URGENT]
        # a message that never came has everything the reader took ahead of it
        total = self.slow.taken if self.slow is not None else 0
        ahead = [
            self.taken_after.get(number, total) - before - (URGENT_BYTES if number in self.taken_after else 0)
            for number, before in enumerate(self.taken_before)
        ]
        prompt = [
            (self.prompt[topic][number] - sent) / 1e9
            for topic, tally in self.flows.items()
            for number, sent in enumerate(tally.sent)
            if number in self.prompt[topic]
        ]
        return {
            "ahead_p50_bytes": quantile_of([float(value) for value in ahead], 0.5),
            "ahead_max_bytes": max(ahead, default=0),
            "ahead_bound_bytes": ahead_bound(),
            "urgent_p50_ms": urgent.quantile_s(0.5, seconds) * 1e3,
            "urgent_p99_ms": urgent.quantile_s(0.99, seconds) * 1e3,
            "urgent_sent": len(urgent.sent),
            "urgent_lost": urgent.lost,
            "prompt_p50_ms": quantile_of(prompt, 0.5) * 1e3,
            "prompt_p99_ms": quantile_of(prompt, 0.99) * 1e3,
            "read_bytes_per_s": total / seconds,
        }


def ahead_bound() -> int:
    """Bytes that may stand before an urgent message: both kernels', one packet begun, one floor quantum."""
    return KERNEL_BYTES + 2 * RECEIVE_BUFFER + 2 * BULK_BYTES + URGENT_BYTES


def broker(peer_name: str) -> Instance:
    """A broker for this experiment, not started yet."""
    return Instance(Tieline(CONFIGURATION) if peer_name == "tieline" else Mosquitto())


def watch(peer_names: Sequence[str], *, seconds: float, over: threading.Event) -> dict[str, Metrics]:
    """The slow reader's view, all brokers at once: they have nearly nothing to do.  Ends early when it is ``over``."""
    with contextlib.ExitStack() as stack:
        timetable = stack.enter_context(Timetable())
        scenes: dict[str, SlowScene] = {}
        for name in peer_names:
            at = stack.enter_context(broker(name))
            scenes[name] = stack.enter_context(SlowScene(timetable))
            end = clock() + seconds
            scenes[name].begin(at, urgent_until=end - _TAIL_S, until=end)
        timetable.run(clock() + seconds, over.is_set)
        return {name: scene.metrics(seconds) for name, scene in scenes.items()}


class Watch:
    """The same in a thread of its own, so that something else can be measured meanwhile."""

    def __init__(self, peer_names: Sequence[str], seconds: float) -> None:
        self._peer_names = peer_names
        self._seconds = seconds
        self._over = threading.Event()
        self._threads = ThreadPoolExecutor(1)
        self._watched: Future[dict[str, Metrics]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._threads.shutdown()

    def begin(self) -> None:
        """Begin to watch, unless that has been done."""
        if self._watched is None:
            self._watched = self._threads.submit(watch, self._peer_names, seconds=self._seconds, over=self._over)

    def result(self) -> dict[str, Metrics]:
        """What was seen, by broker; waits for the end."""
        self.begin()
        assert self._watched is not None
        return self._watched.result()


def strangers(at: Endpoint, generator: Generator, *, seconds: float, is_slow_there: bool) -> Metrics:
    """Throughput and latency of clients that have nothing to do with the slow reader."""
    topics = Topics(pattern="strangers/{i:03d}", each=100)
    flow = Saturate(filters=("strangers/#",), topics=topics, version=5, seconds=seconds)
    paced = PacedClients(clients=50, per_second=20, seconds=seconds)
    with _beside(at, READ_BYTES_PER_S if is_slow_there else PROMPT_BYTES_PER_S):
        throughput, latency = generator.run(flow, at), generator.run(paced, at)
    return {"rate": throughput["rate"], "p50_us": latency["p50_us"], "p99_us": latency["p99_us"]}


@contextlib.contextmanager
def _beside(at: Endpoint, bytes_per_s: float) -> Iterator[None]:
    """The scene played meanwhile, in a thread of its own."""
    over = threading.Event()
    ready = threading.Event()
    problems: list[Exception] = []

    def live() -> None:
        try:
            with Timetable() as timetable, SlowScene(timetable, bytes_per_s) as scene:
                never = float("inf")
                scene.begin(at, urgent_until=never, until=never)
                timetable.run(clock() + _CONGESTED_S)
                ready.set()
                timetable.run(never, over.is_set)
        except (Failure, OSError) as problem:
            problems.append(problem)
        finally:
            ready.set()

    thread = threading.Thread(target=live)
    thread.start()
    try:
        ready.wait()
        yield
    finally:
        over.set()
        thread.join()
    if problems:
        raise Failure(f"the scene beside the strangers: {problems[0]}")
