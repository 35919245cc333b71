"""Where records come from: a broker that captures what it is sent, with its log server; and two more Spark sources.

The sources show what Arrow is worth, with rows as tuples, and with records that are in memory already.  Nobody should
use them.  The tuples are read from the same ranges of the same log servers through the same client as batches are.
Reading through a log server, what the server takes is the same for both and hides the difference; from memory there is
nothing else.  Those records are the ones of :mod:`tieline.bench.pipeline.readings`, one batch of them again and again.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import (
    Any,  # Any: batches of pyarrow, which has no types
    Final,
)

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tieline.bench.load.job import Failure
from tieline.bench.peer import free_ports
from tieline.bench.pipeline.processes import our_path, our_program
from tieline.bench.pipeline.readings import EVENT_TYPE, Readings, log_table, payloads, readings, topics
from tieline.bench.process import Process
from tieline.pipeline.decode.records import NEEDED
from tieline.pipeline.source.batch import BatchReader
from tieline.pipeline.source.format import TielineSource
from tieline.pipeline.source.options import LOG, read_options
from tieline.wire.encode import encode
from tieline.wire.frames import Framer
from tieline.wire.packets import Connack, Connect, Packet, Puback, Publish

_HOST: Final = "127.0.0.1"
_PATIENCE_S: Final = 120.0
_LARGEST: Final = 268_435_460
#: Messages written in one go, and between two acknowledged ones: a broker is not asked to hold more than that.
_PORTION: Final = 2_000


class Station:
    """One broker, its store and its log server."""

    def __init__(self, folder: Path, *, name: str = "bench") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port, self._log_port = free_ports(2)
        self.config = folder / "tieline.toml"
        self.config.write_text(
            f'name = "{name}"\ndata = "{folder / "data"}"\n[mqtt]\nsys_interval_s = 0\n[log]\ncapture = ["#"]\n'
            f'[[listener]]\nurl = "tcp://{_HOST}:{self.port}"\n{EVENT_TYPE}'
        )
        self.broker = Process(
            "broker", our_program("serve", "--config", str(self.config)), folder / "broker.log", environment=our_path()
        )
        serve = our_program("log", "serve", "--config", str(self.config), "--url", self.url)
        self.log_server = Process("log server", serve, folder / "log-server.log", environment=our_path())

    @property
    def url(self) -> str:
        """Where the log is served."""
        return f"http://{_HOST}:{self._log_port}"

    def start(self) -> None:
        """Start both and wait until they are ready."""
        self.start_broker()
        self.start_log_server()

    def start_broker(self) -> None:
        """Start the broker alone."""
        self.broker.start()
        self.broker.wait_until_ready(" ready: ")

    def start_log_server(self) -> None:
        """Start the log server alone."""
        self.log_server.start()
        self.log_server.wait_until_ready(" ready: ")

    def stop(self) -> None:
        """End the log server and then the broker."""
        self.log_server.stop()
        self.broker.stop()


@contextmanager
def running(folder: Path, *, name: str = "bench") -> Iterator[Station]:
    """A station that ends with the block."""
    station = Station(folder, name=name)
    try:
        station.start()
        yield station
    finally:
        station.stop()


def publish(station: Station, rows: Readings) -> None:
    """Publish readings over one connection, QoS 0 with ``seq``; returns when the broker has taken all of them."""
    with closing(socket.create_connection((_HOST, station.port), _PATIENCE_S)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        framer = Framer(_LARGEST, 5)
        sock.sendall(encode(Connect(version=5, client_id="meters"), 5))
        _expect(sock, framer, Connack)
        written, waiting = 0, b""
        where, what = topics(rows).to_pylist(), payloads(rows).to_pylist()
        for place, (topic, payload) in enumerate(zip(where, what, strict=True)):
            # QoS 0 has no answer: the last one of each portion has, and behind it the broker has all of the portion
            is_last = written + 1 == _PORTION or place + 1 == len(rows)
            message = Publish(
                topic=topic,
                payload=payload,
                qos=int(is_last),
                packet_id=int(is_last),
                properties={"user_property": [("seq", f"bench/{rows.first + place}")]},
            )
            waiting += encode(message, 5)
            written += 1
            if is_last:
                sock.sendall(waiting)
                _expect(sock, framer, Puback)
                written, waiting = 0, b""


def _expect(sock: socket.socket, framer: Framer, kind: type[Packet]) -> None:
    while True:
        data = sock.recv(65_536)
        if not data:
            raise Failure("the broker closed the connection")
        for packet in framer.feed(data):
            if isinstance(packet, kind):
                return


class TupleReader(BatchReader):
    """Hands out one tuple for each record."""

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one range, row by row."""
        for batch in super().read(partition):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


class TupleSource(TielineSource):
    """The source that Spark knows as the format ``tieline_tuples``."""

    @classmethod
    def name(cls) -> str:
        """What stands in ``format(...)``."""
        return "tieline_tuples"

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader that makes a tuple of every record."""
        return TupleReader(read_options(self.options))


#: Rows of one batch, as a log server makes them.
BATCH_ROWS: Final = 8_192


class MemorySource(DataSource):
    """The format ``tieline_memory``; options: ``batches`` of each task, ``tasks``, and ``tuples`` = true or false."""

    @classmethod
    def name(cls) -> str:
        """What stands in ``format(...)``."""
        return "tieline_memory"

    def schema(self) -> StructType:
        """The columns that ingest reads."""
        return StructType([LOG[name] for name in NEEDED])

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader that hands the records out."""
        options = self.options
        return MemoryReader(int(options["tasks"]), int(options["batches"]), options["tuples"] == "true")


class MemoryReader(DataSourceReader):
    """Gives the same batch to Spark, so many times in each task."""

    def __init__(self, tasks: int, batches: int, is_tuples: bool) -> None:
        self._tasks = tasks
        self._batches = batches
        self._is_tuples = is_tuples

    def partitions(self) -> list[InputPartition]:
        """One for each task."""
        return [InputPartition(number) for number in range(self._tasks)]

    def read(self, _partition: InputPartition) -> Iterator[Any]:
        """The records of one task."""
        batch = _batch()
        for _ in range(self._batches):
            if self._is_tuples:
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
            else:
                yield batch


@lru_cache(maxsize=1)
def _batch() -> pa.RecordBatch:
    """Made once in a process that Spark uses again and again."""
    return log_table(readings(0, BATCH_ROWS)).select(NEEDED).combine_chunks().to_batches()[0]
