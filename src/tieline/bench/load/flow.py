"""Publishers and subscribers that keep a broker busy: a window of outstanding messages, refilled in bursts.

Theory of operation.  Every subscriber counts the bytes of the PUBLISH packets it receives; every message
is to reach a known number of subscribers; so the bytes still owed are known at any moment.  When half of
the window has arrived the publishers fill it up again.  The broker therefore always has work, and never has to
hold (or drop) more than the window.  The window grows only while the broker empties half of it
in a few milliseconds, so that a slow broker is not buried.

A broker that writes every message singly would wake the generator for each of them, and pay for the waking.  When a
look at the sockets brings little although much is owed, the generator therefore rests for a fraction of the time that
the last refill lasted: the broker keeps working from what it has, and neither interrupts the other.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tieline.bench.load.ends import SKIMMED, Sink, Source
from tieline.bench.load.job import Lost
from tieline.bench.load.packets import Stream, check_deliveries

#: Most outstanding messages for each subscriber by QoS, and bytes: below every broker's queue limits.
_WINDOW_MESSAGES = (16_384, 1_024, 1_024)
_WINDOW_BYTES = 4 << 20
#: Most bytes owed to all subscribers together, unless two messages are more.
_WINDOW_ALL_BYTES = 64 << 20
_FIRST_WINDOW_MESSAGES = 64
_GROW_WITHIN_S = 0.02
_LARGEST_SEND = 65_536
_LARGEST_SEND_SKIMMED = 524_288
_LONGEST_REST_S = 0.005
#: No delivery for so long means that none will come.
_SILENCE_S = 4.0
_KEPT_PACKETS = 6_000
_KEPT_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Volume:
    """Messages that went in and came out during one spell."""

    published: int
    delivered: int


class LoadFlow:
    """All clients of one workload on one event loop."""

    def __init__(
        self,
        *,
        publishers: Sequence[tuple[socket.socket, Stream]],
        subscribers: Sequence[tuple[socket.socket, str]],
        fan: int,
        qos: int,
    ) -> None:
        self._poller = select.epoll()
        self._streams = [stream for _, stream in publishers]
        self._filters = [topic_filter for _, topic_filter in subscribers]
        layout = self._streams[0].layout
        kept = min(_KEPT_PACKETS, max(_KEPT_BYTES // layout.packet, 2 * len(subscribers)))
        keep = max(2 if layout.packet >= SKIMMED else 20, kept // len(subscribers))
        self._sources = [Source(sock, self._poller, stream, qos) for sock, stream in publishers]
        self._sinks = [Sink(sock, self._poller, layout, qos, keep) for sock, _ in subscribers]
        self._source_of = {source.fd: source for source in self._sources}
        self._sink_of = {sink.fd: sink for sink in self._sinks}
        self._packet = layout.packet
        self._fan = fan
        self._rest_s = 0.0
        #: Bytes that the subscribers together are still to receive.
        self._owed = 0
        each = min(_WINDOW_BYTES, _WINDOW_MESSAGES[qos] * layout.packet)
        self._largest = min(each * len(subscribers), max(_WINDOW_ALL_BYTES, 2 * layout.packet * fan))
        self._send = _LARGEST_SEND_SKIMMED if layout.packet >= SKIMMED else _LARGEST_SEND
        self._window = min(self._largest, _FIRST_WINDOW_MESSAGES * layout.packet * fan)
        self._refilled = 0.0
        self._turn = 0

    def close(self) -> None:
        """The sockets belong to whoever opened them."""
        self._poller.close()

    def spell(self, seconds: float, *, rounds: int = 0, at_most_s: float = 0.0) -> Volume:
        """Send for a while (and until the first publisher has gone round its topics), then see everything arrive."""
        published, delivered = self._totals()
        began = last = time.perf_counter()
        until = began + seconds
        latest = max(until, began + at_most_s)
        one_round = len(self._streams[0].topics) * self._packet * rounds + self._sources[0].sent
        sending = True
        while True:
            now = time.perf_counter()
            if sending:
                sending = now < until or (now < latest and self._sources[0].sent < one_round)
            if sending:
                self._refill(now)
            elif self._finished():
                break
            owed = self._owed
            if self._serve(self._poller.poll(0.25)):
                last = now
                if (owed - self._owed) * 8 < self._owed and self._owed * 8 > self._window:
                    time.sleep(self._rest_s)
            elif now - last > _SILENCE_S:
                self._give_up()
        after_published, after_delivered = self._totals()
        return Volume(after_published - published, after_delivered - delivered)

    def check(self) -> int:
        """Compare the messages kept at the beginning with those sent."""
        return sum(
            check_deliveries(bytes(sink.kept), topic_filter, self._streams)
            for sink, topic_filter in zip(self._sinks, self._filters, strict=True)
        )

    def _totals(self) -> tuple[int, int]:
        sent = sum(source.sent for source in self._sources)
        return sent // self._packet, sum(sink.delivered for sink in self._sinks) // self._packet

    def _serve(self, events: list[tuple[int, int]]) -> bool:
        progress = False
        for fd, event in events:
            sink = self._sink_of.get(fd)
            if sink is not None:
                if event & select.EPOLLOUT:
                    sink.writable()
                if event & ~select.EPOLLOUT:
                    self._owed -= sink.readable()
                    progress = True
            else:
                source = self._source_of[fd]
                if event & select.EPOLLOUT:
                    source.writable()
                if event & ~select.EPOLLOUT:
                    source.readable()
                    progress = True
        return progress

    def _refill(self, now: float) -> None:
        if self._owed > self._window // 2:
            return
        if now - self._refilled < _GROW_WITHIN_S:
            self._window = min(self._largest, self._window * 2)
        self._rest_s = min(_LONGEST_REST_S, (now - self._refilled) / 8)
        self._refilled = now
        budget = (self._window - self._owed) // self._fan
        count = len(self._sources)
        share = max(1, min(self._send, budget // count) // self._packet) * self._packet
        for step in range(count):
            if budget <= 0:
                self._turn = (self._turn + step) % count  # whoever comes next was left out this time
                break
            source = self._sources[(self._turn + step) % count]
            room = min(share, source.room())
            if room > 0 and not source.blocked:
                taken = source.publish(room)
                budget -= taken
                self._owed += taken * self._fan

    def _finished(self) -> bool:
        for source in self._sources:
            if not source.blocked:
                self._owed += source.complete() * self._fan
        if self._owed > 0 or any(source.unfinished for source in self._sources):
            return False
        return not any(sink.unfinished for sink in self._sinks)

    def _give_up(self) -> None:
        published, delivered = self._totals()
        missing = published * self._fan - delivered
        if missing > 0:
            raise Lost(f"{missing} of {published * self._fan} messages did not arrive within {_SILENCE_S:.0f} s")
        raise Lost(f"acknowledgements did not arrive within {_SILENCE_S:.0f} s")
