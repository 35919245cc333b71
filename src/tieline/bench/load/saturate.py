"""Throughput: as much as the broker takes, everything delivered, and what that cost it; also beside idle filters."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tieline.bench.load.clients import clients, forget, subscribe
from tieline.bench.load.ends import SKIMMED
from tieline.bench.load.flow import LoadFlow
from tieline.bench.load.job import Endpoint, Metrics
from tieline.bench.load.packets import Stream, encode
from tieline.bench.measure import CostMeter

_STREAM_BYTES = 2 << 20
_FEWEST_MESSAGES = 512
#: Of long messages; at QoS 1 and 2 none may come again while its packet identifier is in use.
_FEWEST_LONG_MESSAGES = 16
_WARM_UP_S = 0.15
_WARM_UP_AT_MOST_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """The topics of each publisher: a pattern over the publisher's number and the position in its round."""

    #: Fields: ``p`` publisher, ``i`` position, and its ``ones``, ``tens`` and ``rest`` in decimal.
    pattern: str
    each: int = 1

    def of(self, publisher: int) -> list[str]:
        """The topics one publisher takes in turn."""
        return [
            self.pattern.format(p=publisher, i=i, ones=i % 10, tens=i // 10 % 10, rest=i // 100)
            for i in range(self.each)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturate:
    """Publishers that never pause, and subscribers that together receive each message ``fan`` times."""

    filters: tuple[str, ...]
    topics: Topics
    seconds: float
    publishers: int = 1
    payload: int = 64
    qos: int = 0
    fan: int = 1
    version: int = 4
    #: The subscribers' sessions outlive their connections, and what waits for them is the broker's to keep (3.1.1).
    keeps_sessions: bool = False

    @property
    def patience_s(self) -> float:
        """Connecting, warming up, working and draining, with room for a slow machine."""
        return 30.0 + 4 * self.seconds

    def run(self, at: Endpoint) -> Metrics:
        """Warm up and compare contents, then measure."""
        with self.flow(at) as flow:
            meter = CostMeter(*at.pids)
            volume = flow.spell(_WARM_UP_S, rounds=1 if self.topics.each > 1 else 0, at_most_s=_WARM_UP_AT_MOST_S)
            cold_us = meter.read().broker_s * 1e6 / max(1, volume.delivered)
            checked = flow.check()
            before = at.disk.flushes() if at.disk else None
            meter = CostMeter(*at.pids)
            volume = flow.spell(self.seconds)
            reading = meter.read()
            after = at.disk.flushes() if at.disk else None
        return {
            "rate": volume.delivered / reading.wall_s,
            "inbound_rate": volume.published / reading.wall_s,
            "cpu_us_delivered": reading.broker_s * 1e6 / volume.delivered,
            "cpu_us_inbound": reading.broker_s * 1e6 / volume.published,
            "cpu_us_cold": cold_us,
            "generator_us_delivered": reading.generator_s * 1e6 / volume.delivered,
            "delivered": volume.delivered,
            "checked": checked,
            **_flushes(before, after, reading.wall_s),
            **reading.shares(),
        }

    @contextlib.contextmanager
    def flow(self, at: Endpoint) -> Iterator[LoadFlow]:
        """The connected clients, ready to work."""
        streams = [self._stream(publisher) for publisher in range(self.publishers)]
        receivers = [f"sub{number}" for number in range(len(self.filters))]
        senders = [f"pub{number}" for number in range(self.publishers)]
        if self.keeps_sessions:
            forget(at, receivers)
        with (
            clients(at, receivers, version=self.version, clean=not self.keeps_sessions) as subscribing,
            clients(at.entrance, senders, version=self.version) as publishing,
        ):
            for sock, topic_filter in zip(subscribing, self.filters, strict=True):
                subscribe(sock, [topic_filter], qos=self.qos, version=self.version)
            flow = LoadFlow(
                publishers=list(zip(publishing, streams, strict=True)),
                subscribers=list(zip(subscribing, self.filters, strict=True)),
                fan=self.fan,
                qos=self.qos,
            )
            with contextlib.closing(flow):
                yield flow

    def _stream(self, publisher: int) -> Stream:
        fewest = _FEWEST_LONG_MESSAGES if self.qos == 0 and self.payload >= SKIMMED else _FEWEST_MESSAGES
        count = max(fewest, _STREAM_BYTES // self.publishers // (self.payload + 20))
        return encode(
            publisher, self.topics.of(publisher), payload=self.payload, qos=self.qos, version=self.version, count=count
        )


def _flushes(before: int | None, after: int | None, wall_s: float) -> Metrics:
    """How often the disk was told to keep what it had got."""
    return {} if before is None or after is None else {"flushes_per_s": (after - before) / wall_s}


_AT_MOST_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstMessages:
    """So many topics that nobody has used before, one message to each, and then another."""

    topics: int

    @property
    def patience_s(self) -> float:
        """Three rounds at most."""
        return 30.0 + 3 * _AT_MOST_S

    def run(self, at: Endpoint) -> Metrics:
        """CPU of a PUBLISH in the first round and in the second."""
        # a broker that runs already may know topics from before, and must have done this work before
        since = time.monotonic_ns() & 0xFFFFFFFF
        self._load(f"early/{since:08x}").run(at)
        with self._load(f"first/{since:08x}").flow(at) as flow:
            rounds = []
            for _ in range(2):
                meter = CostMeter(*at.pids)
                volume = flow.spell(0.0, rounds=1, at_most_s=_AT_MOST_S)
                rounds.append((meter.read(), volume.published))
            checked = flow.check()
        first, later = (reading.broker_s * 1e6 / published for reading, published in rounds)
        return {
            "cpu_us_first": first,
            "cpu_us_later": later,
            "ratio_first": first / later,
            "delivered": sum(published for _, published in rounds),
            "checked": checked,
            **rounds[0][0].shares(),
        }

    def _load(self, name: str) -> Saturate:
        topics = Topics(pattern=f"{name}/{{i:06d}}", each=self.topics)
        return Saturate(filters=(f"{name}/#",), topics=topics, seconds=0.1)


_FILTERS_EACH = 1_000
#: Literal, with wildcards inside, and with a wildcard first: a matcher may treat each kind differently.
_SHAPES = ("other/{n}/state", "other/+/{n}/#", "+/{n}/+/state")


@dataclass(frozen=True, slots=True, kw_only=True)
class BystandingFilters:
    """The same publisher without and with so many subscriptions that never match."""

    filters: int
    seconds: float

    @property
    def patience_s(self) -> float:
        """Four spells and the subscribing."""
        return 90.0 + 16 * self.seconds

    def run(self, at: Endpoint) -> Metrics:
        """CPU of a PUBLISH before and after, for one topic and for topics that change with every message."""
        one, many = self._load(1), self._load(20_000)
        one_before, many_before = one.run(at), many.run(at)
        names = [f"bystander{number}" for number in range(-(-self.filters // _FILTERS_EACH))]
        with clients(at, names) as socks:
            upcoming = _filters(self.filters)
            for sock in socks:
                subscribe(sock, [name for _, name in zip(range(_FILTERS_EACH), upcoming, strict=False)])
            one_after, many_after = one.run(at), many.run(at)
        return {
            "filters": self.filters,
            "cpu_us_inbound": one_after["cpu_us_inbound"],
            "ratio_one_topic": one_after["cpu_us_inbound"] / one_before["cpu_us_inbound"],
            "ratio_many_topics": many_after["cpu_us_inbound"] / many_before["cpu_us_inbound"],
            "ratio_cold": many_after["cpu_us_cold"] / many_before["cpu_us_cold"],
            "cpu_us_cold": many_after["cpu_us_cold"],
            "broker_cores": one_after["broker_cores"],
            "generator_cores": one_after["generator_cores"],
        }

    def _load(self, count: int) -> Saturate:
        topics = Topics(pattern="busy/{ones}/{tens}/{rest:03d}", each=count)
        return Saturate(filters=("busy/#",), topics=topics, seconds=self.seconds)


def _filters(count: int) -> Iterator[str]:
    for number in range(count):
        yield _SHAPES[number % len(_SHAPES)].format(n=number)
