"""Onlookers: the same flood and the same urgent messages, with twenty pages open and with none.

Each page is a client that subscribes to what the broker tells the live page, as a browser does, and reads whatever
comes.  Both take turns repetition by repetition, so that a machine that becomes slower is slower for both.
"""

from __future__ import annotations

import select
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from tieline.bench.brokers import SUBJECT, known_peers
from tieline.bench.load.clients import clients, subscribe
from tieline.bench.load.job import Endpoint, Generator, Metrics
from tieline.bench.peer import Instance
from tieline.bench.priority.busy import PER_SECOND, PUBLISHERS, Flood, Probe

#: What the rows are called.
ALONE, WATCHED = "nobody looks", "20 pages open"
PAGES: Final = 20
TOPIC: Final = "$SYS/broker/tieline/page"
#: Urgent messages may take so much longer at the 99th percentile while the pages are open.
UNDISTURBED: Final = 1.2
_LEAD_S = 1.2
_READ = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Onlookers:
    """So many pages, open for so long."""

    pages: int
    seconds: float

    @property
    def patience_s(self) -> float:
        """How long connecting and looking may take."""
        return 20.0 + 2 * self.seconds

    def run(self, at: Endpoint) -> Metrics:
        """What each page was told in a second."""
        heard = 0
        names = [f"page-{number:02d}" for number in range(self.pages)]
        with select.epoll() as poller, clients(at, names, version=5) as socks:
            for sock in socks:
                subscribe(sock, [TOPIC], version=5)
                poller.register(sock.fileno(), select.EPOLLIN)
            by_fd = {sock.fileno(): sock for sock in socks}
            until = time.perf_counter() + self.seconds
            while (left_s := until - time.perf_counter()) > 0:
                for fd, _ in poller.poll(left_s):
                    heard += len(by_fd[fd].recv(_READ))
        return {"page_bytes_per_s": heard / self.pages / self.seconds}


def measure(*, seconds: float, pages: int) -> Metrics:
    """One broker under one flood, with so many pages open."""
    with Instance(known_peers()[SUBJECT]) as at, ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(2))
        probing, flooding, looking = (stack.enter_context(Generator()) for _ in range(3))
        whole_s = _LEAD_S + seconds + 0.5
        looked = threads.submit(looking.run, Onlookers(pages=pages, seconds=whole_s), at) if pages else None
        flooded = threads.submit(flooding.run, Flood(publishers=PUBLISHERS, seconds=whole_s), at)
        found = probing.run(Probe(per_second=PER_SECOND, seconds=seconds, delay_s=_LEAD_S), at)
        return found | flooded.result() | ({} if looked is None else looked.result())
