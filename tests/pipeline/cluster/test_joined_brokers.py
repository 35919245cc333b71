"""Three joined brokers of which two are killed: all logs together hold each message once, and jobs read all of them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.kits.dial import Dial
from tests.kits.patience import PATIENCE_S, until
from tieline.bench.peer import free_ports
from tieline.pipeline.jobs.latency import latency, requirements_of
from tieline.pipeline.jobs.topic_heat import Weights, Windows, from_deliveries, topic_heat
from tieline.pipeline.jobs.traffic import carried, deliveries, demand_matrix
from tieline.wire.packets import Puback, Publish

NAMES = ("a", "b", "c")


class Line:
    """Brokers a, b and c in a line, each with a data directory that its log server reads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[tuple[str, str], subprocess.Popen[str]] = {}
        ports = dict(zip(NAMES, [free_ports(3) for _ in NAMES], strict=True))
        self.urls = {name: f"tcp://127.0.0.1:{ports[name][0]}" for name in NAMES}
        self.logs = {name: f"http://127.0.0.1:{ports[name][2]}" for name in NAMES}
        for name, joins in zip(NAMES, ("", "a", "b"), strict=True):
            peer = f'[[peer]]\nurl = "peer://127.0.0.1:{ports[joins][1]}"\n' if joins else ""
            (folder / f"{name}.toml").write_text(
                f'name = "{name}"\ndata = "{folder / name}"\n[mqtt]\nsys_interval_s = 0\n'
                f'[log]\ncapture = ["x/#"]\nevents = "on"\nperiod = "1s"\n'
                f'[[listener]]\nurl = "{self.urls[name]}"\n'
                f'[[listener]]\nurl = "peer://127.0.0.1:{ports[name][1]}"\n{peer}'
            )

    def start(self, name: str) -> None:
        self._start(name, "broker", "serve")

    def serve_log(self, name: str) -> None:
        self._start(name, "log", "log", "serve", "--url", self.logs[name])

    def _start(self, name: str, kind: str, *words: str) -> None:
        with (self._folder / f"{name}-{kind}.log").open("a") as log:
            command = [sys.executable, "-m", "tieline", *words, "--config", str(self._folder / f"{name}.toml")]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self._processes[name, kind] = process
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert " ready: " in ready, (self._folder / f"{name}-{kind}.log").read_text()[-2000:]

    def kill(self, name: str, kind: str = "broker") -> None:
        process = self._processes.pop((name, kind))
        process.kill()
        process.wait(PATIENCE_S)
        assert process.stdout is not None
        process.stdout.close()

    def end(self) -> None:
        for name, kind in list(self._processes):
            self.kill(name, kind)

    def connect(self, name: str, client: str) -> Dial:
        """A client with a session, once the broker is there."""

        def attempt() -> Dial | None:
            with suppress(OSError):
                dialled = Dial(self.urls[name], version=4)
                try:
                    dialled.connect(client, clean_start=False)
                except (OSError, AssertionError):
                    dialled.close()
                else:
                    return dialled
            return None

        return until(attempt, f"{name} lets {client} in")


@contextmanager
def line(folder: Path) -> Iterator[Line]:
    running = Line(folder)
    try:
        for name in NAMES:
            running.start(name)
        yield running
    finally:
        running.end()


class Publisher:
    """Publishes numbers to one broker, each once, whatever happens to it."""

    def __init__(self, brokers: Line, name: str) -> None:
        self._brokers = brokers
        self._name = name
        self._is_over = threading.Event()
        self.acknowledged: list[str] = []
        self.uncertain: list[str] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(2 * PATIENCE_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        client = self._brokers.connect(self._name, f"publisher-{self._name}")
        number = 0
        while not self._is_over.is_set():
            number += 1
            text = f"{self._name} {number}"
            try:
                packet = Publish(topic=f"x/{self._name}", payload=text.encode(), qos=1, packet_id=1 + number % 60_000)
                client.send(packet)
                answer = client.receive()
                if isinstance(answer, Puback):
                    self.acknowledged.append(text)
                    sleep(0.005)
                    continue
            except OSError:
                pass
            # it may have been accepted, and nobody said so; it is not sent again
            self.uncertain.append(text)
            client.close()
            client = self._brokers.connect(self._name, f"publisher-{self._name}")
        client.close()


class Sink:
    """Takes what comes to one broker and acknowledges it, for as long as the broker is there."""

    def __init__(self, brokers: Line, name: str) -> None:
        self._brokers = brokers
        self._name = name
        self._is_over = False
        self.got: set[str] = set()
        self._client = brokers.connect(name, f"sink-{name}")
        assert self._client.subscribe("x/#", 1).reasons == (1,)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._is_over = True
        with suppress(OSError):
            self._client.sock.shutdown(2)
        self._thread.join(PATIENCE_S)
        self._client.close()

    def _run(self) -> None:
        while not self._is_over:
            try:
                packet = self._client.receive()
            except OSError:
                packet = None
            if isinstance(packet, Publish):
                self.got.add(packet.payload.decode())
                with suppress(OSError):
                    self._client.send(Puback(packet_id=packet.packet_id))
            elif packet is None and not self._is_over:
                self._client.close()
                self._client = self._brokers.connect(self._name, f"sink-{self._name}")


def read(spark: SparkSession, brokers: Line, stream: str) -> DataFrame:
    """A stream of all brokers' logs."""
    options = {"url": ",".join(brokers.logs.values()), "stream": stream}
    return spark.read.format("tieline").options(**options).load()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_logs_of_three_brokers_hold_each_message_once(spark: SparkSession, tmp_path: Path) -> None:
    with line(tmp_path) as brokers:
        sinks = {name: Sink(brokers, name) for name in NAMES}
        publishers = {name: Publisher(brokers, name) for name in NAMES}
        sleep(3)
        for victim in ("b", "a"):
            brokers.kill(victim)
            sleep(0.5)
            brokers.start(victim)
            sleep(3)
        for publisher in publishers.values():
            publisher.end()
        acknowledged = {text for publisher in publishers.values() for text in publisher.acknowledged}
        for sink in sinks.values():
            until(lambda sink=sink: acknowledged <= sink.got, "what was acknowledged has arrived")  # type: ignore[misc]
        # the sums of the last period are told
        sleep(2)
        for sink in sinks.values():
            sink.end()
        for name in NAMES:
            brokers.serve_log(name)
        rows = read(spark, brokers, "log").select("shard", "payload").collect()
        events = read(spark, brokers, "events").cache()
        captured = Counter(bytes(row["payload"]).decode() for row in rows)
        assert set(captured.values()) == {1}, captured.most_common(5)
        uncertain = {text for publisher in publishers.values() for text in publisher.uncertain}
        assert acknowledged <= set(captured) <= acknowledged | uncertain
        # where it was accepted, and nowhere else
        assert all(row["shard"] == bytes(row["payload"]).decode().split()[0] for row in rows)
        assert all(len(publisher.acknowledged) > 20 for publisher in publishers.values())

        matrix = demand_matrix(deliveries(events)).collect()
        assert all(row["origin"] == row["publisher"].removeprefix("publisher-") for row in matrix)
        assert {(row["origin"], row["shard"]) for row in matrix} == {(one, other) for one in NAMES for other in NAMES}
        assert all(row["subscriber"] == f"sink-{row['shard']}" for row in matrix)
        judged = latency(deliveries(events), requirements_of([]), by_broker=True).collect()
        assert len(judged) == 9 and all(row["messages"] > 0 for row in judged)
        came = latency(carried(events), requirements_of([]), by_broker=True).collect()
        # a way begins anew where a frame was parked because the next broker was dead
        hops = {(row["origin"], row["shard"]): round(row["hops"]) for row in came}
        assert hops == {
            ("a", "b"): 1, ("b", "a"): 1, ("b", "c"): 1, ("c", "b"): 1, ("a", "c"): 2, ("c", "a"): 2,
        }  # fmt: skip
        hot = topic_heat(from_deliveries(deliveries(events)), Windows(length_s=600, slide_s=600), Weights()).collect()
        assert {row["topic"]: (row["subscribers"], row["brokers"]) for row in hot} == {
            f"x/{name}": (3, 3) for name in NAMES
        }
        told = events.where("kind = 'peer_down'").select("shard", "detail").collect()
        assert {row["shard"] for row in told} >= {"b", "c"} or {row["shard"] for row in told} >= {"a", "c"}
