"""The commands over files that brokers' records were exported to, and with a live broker to talk to."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.kits.dial import Dial, dial
from tests.kits.patience import until
from tests.pipeline.decode.records import record as message
from tests.pipeline.decode.records import table as told
from tests.pipeline.jobs.scenes import events_table, log_table, traffic
from tests.pipeline.jobs.test_replay import Listener
from tests.pipeline.lake import kit
from tieline.cli.pipeline import JOBS, flags
from tieline.cli.pipeline.running import sentences
from tieline.cli.trouble import Trouble
from tieline.cli.verbs import load_app
from tieline.conf.schema import Limits, Log, Settings
from tieline.conf.schema import Listener as Listening
from tieline.log.record import Record, digest_of
from tieline.pipeline.jobs.ingest import take_history
from tieline.pipeline.lake import Lake
from tieline.pipeline.source.client import LogClient
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish

Run = Callable[..., str]
#: Where the app of each job is.
PLACES: Final = {job: place for job, place, _help in JOBS}

TOLD: Final = [
    traffic(10, "meter", "grid/1", "desk", {1: 60, 16: 60}, level=0, class_="log"),
    traffic(10, "meter", "grid/1", "book", {1: 60}, level=0, class_="log"),
    traffic(10, "relay", "grid/trip", "desk", {4: 30}, level=3, class_="alarm"),
]


@pytest.fixture(name="run")
def _run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command to its end, in this process and on the tests' session; what it printed."""

    @contextmanager
    def session(*_: object, **__: object) -> Iterator[SparkSession]:
        with sentences():
            yield spark

    def run(verb: str, *words: str) -> str:
        monkeypatch.setattr(flags, "session", session)
        capsys.readouterr()
        load_app("tieline.cli.pipeline", PLACES[verb])(args=list(words), standalone_mode=False)
        return capsys.readouterr().out

    return run


@pytest.fixture(name="events")
def _events(tmp_path: Path) -> str:
    return _written(tmp_path / "events", events_table(TOLD))


@pytest.fixture(name="log")
def _log(tmp_path: Path) -> str:
    def record(number: int) -> Record:
        topic, payload = "t/1", json.dumps({"v": number}).encode()
        digest = digest_of(topic.encode(), payload)
        return Record(number * 10**9, "meter", 1, number, False, 1, False, 1, "normal", topic, payload, b"", digest)

    return _written(tmp_path / "log", log_table([record(number) for number in range(20)]))


def _written(directory: Path, table: pa.Table) -> str:
    directory.mkdir()
    pq.write_table(table, directory / "0.parquet")
    return str(directory)


def test_latency(run: Run, events: str) -> None:
    head, alarm, log = run("latency", "--events", events).splitlines()
    assert head.split()[:4] == ["level", "class", "topics", "messages"]
    assert alarm.split()[:5] == ["3", "alarm", "#", "30", "4"] and " kept " in alarm
    assert (
        log.split()[:8] == ["0", "log", "#", "180", "1", "16", "16", "16"]
        and "kept, strict" in log
        and log.endswith("within")
    )
    lines = run("latency", "--events", events, "--format", "json", "--require", "log=immediate-1a").splitlines()
    row = json.loads(lines[-1])
    assert (row["class"], row["requirement"], row["verdict"]) == ("log", "immediate-1a", "undecided")
    with pytest.raises(Trouble, match='no requirement "soon"'):
        run("latency", "--events", events, "--require", "log=soon")


def test_traffic_and_its_instance(run: Run, events: str, tmp_path: Path) -> None:
    out = tmp_path / "instance.json"
    printed = run("traffic", "--events", events, "--format", "csv", "--instance", str(out), "--name", "grid")
    assert printed.splitlines()[1:] == [
        "a,a,meter,grid/1,book,log,60,6000,6.0,600.0",
        "a,a,meter,grid/1,desk,log,120,12000,12.0,1200.0",
        "a,a,relay,grid/trip,desk,alarm,30,3000,3.0,300.0",
    ]
    found = json.loads(out.read_text())
    assert [(each["id"], each["rate"], each.get("class", 0)) for each in found["topics"]] == [
        ("grid/1", 1200.0, 0),
        ("grid/trip", 300.0, 3),
    ]


def test_heat_given_by_the_job_is_what_the_broker_has(run: Run, events: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with BrokerThread(Settings(listener=(Listening(url="tcp://127.0.0.1:0"),), data=str(data)), manage=True) as broker:
        words = ("--events", events, "--window", "20s", "--slide", "20s", "--put", str(data), "--period", "2m")
        printed = run("heat", *words)
        table, period_s = broker.ask(lambda core: (core.heat_source.table, core.heat_source.period_s))
        assert table is not None
        # two subscribers and 180 deliveries in 20 s; one and 30
        assert table.hottest(5) == [("grid/1", 11.0), ("grid/trip", 2.5)]
        assert period_s == 120.0
        assert printed.endswith("given: 2 entries for 2.0 min\n")
    with pytest.raises(Trouble, match="goes with --put"):
        run("heat", "--every", "10s")
    with pytest.raises(Trouble, match="does not go with Spark Connect"):
        run("heat", "--every", "10s", "--put", str(data), "--master", "sc://head")


@contextmanager
def _log_of(data: Path) -> Iterator[str]:
    """The address at which a process of its own serves a broker's log."""
    words = ("log", "serve", "--data", str(data), "--url", "http://127.0.0.1:0")
    with subprocess.Popen([sys.executable, "-m", "tieline", *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        try:
            yield found[0]
        finally:
            process.terminate()


def test_heat_goes_from_what_brokers_tell_through_windows_to_the_order_of_delivery(run: Run, tmp_path: Path) -> None:
    settings = Settings(
        listener=(Listening(url="tcp://127.0.0.1:0"),),
        data=str(tmp_path / "data"),
        log=Log(events="on", period="1s"),
        limits=Limits(queue_bytes=1 << 27, queue_bytes_total=1 << 27),
    )
    with BrokerThread(settings, manage=True) as broker, _log_of(tmp_path / "data") as log, ExitStack() as clients:

        def client(name: str, *filters: str) -> Dial:
            made = clients.enter_context(dial(broker.urls[0], name))
            for filter_ in filters:
                made.subscribe(filter_)
            return made

        # a broker's own heat is the number of listeners; by what was delivered it is the other way round
        for number in range(4):
            client(f"listener-{number}", "grid/wide")
        client("archive", "grid/busy")
        meter = client("meter")

        def told() -> bool:
            meter.send(Publish(topic="grid/wide", payload=b"x"), *[Publish(topic="grid/busy", payload=b"x")] * 10)
            return LogClient(log).offsets("events").latest > 20

        until(told, "the broker has told of its deliveries")
        windows = ("--window", "600s", "--slide", "600s", "--weights", "0", "1", "0")
        run("heat", "--url", log, *windows, "--put", str(tmp_path / "data"))
        table = broker.ask(lambda core: core.heat_source.table)
        assert table is not None
        assert [topic for topic, _heat in table.hottest(2)] == ["grid/busy", "grid/wide"]

        slow = client("slow", "grid/#", "plug")
        before = broker.ask(lambda core: core.account.publishes_in)
        meter.send(*[Publish(topic="plug", payload=bytes(60_000))] * 400)
        until(lambda: broker.ask(lambda core: core.account.publishes_in) == before + 400, "its socket is full")
        assert broker.ask(lambda core: core.queued_bytes) > 1 << 20, "what comes now waits"
        for kind in ("wide", "busy"):
            meter.send(*(Publish(topic=f"grid/{kind}", payload=b"%d" % number) for number in range(20)))
        until(lambda: broker.ask(lambda core: core.account.publishes_in) == before + 440, "all have come")
        # until then a queue is first in, first out
        late_s = broker.ask(lambda core: max(each.timeout_s for each in core.priorities.classes.rules.classes))
        came = monotonic()
        until(lambda: monotonic() > came + late_s, "they have waited longer than they should")
        got = [topic for topic in (slow.expect(Publish).topic for _ in range(440)) if topic != "plug"]
        assert got == ["grid/busy"] * 20 + ["grid/wide"] * 20


def test_match_prints_messages_and_counts(run: Run, log: str, tmp_path: Path) -> None:
    wishes = tmp_path / "wishes"
    wishes.write_text("t/#?v >= 17\nt/+?delta(v) > 4\nnothing/here\n")
    printed = run("match", "--history", log, "-s", "t/1?v < 2", "--format", "csv").splitlines()
    assert [line.split(",")[:3] for line in printed[1:]] == [["t/1?v < 2", "a", "0"], ["t/1?v < 2", "a", "1"]]
    counted = run("match", "--history", log, "--file", str(wishes), "--count", "--format", "csv").splitlines()
    assert counted[1:] == ["t/+?delta(v) > 4,4", "t/#?v >= 17,3", "nothing/here,0"]
    with pytest.raises(Trouble, match="give subscriptions"):
        run("match", "--history", log)
    with pytest.raises(Trouble, match="shared subscription"):
        run("match", "--history", log, "-s", "$share/g/t/#")
    with pytest.raises(Trouble, match="not from both"):
        run("match", "--history", log, "--lake", log, "-s", "#")


def test_tables_that_declare_nothing_of_a_condition_are_left_out_of_it(
    run: Run, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake.create(tmp_path / "lake", kit.settings())
    said = [("grid/1/reading", b'{"voltage": %d}' % volts) for volts in (230, 232, 280, 231)]
    said += [("grid/1/switch", b'{"closed": true, "voltage": 300}'), ("other/1", b'{"voltage": 400}')]
    _written(tmp_path / "told", told([message(offset, *each) for offset, each in enumerate(said)]))
    take_history(spark, lake, tmp_path / "told")
    words = ("--lake", str(tmp_path / "lake"), "--count", "--format", "csv")
    with pytest.raises(Trouble, match="asks for nothing that an event type of its topics declares"):
        run("match", *words, "-s", "grid/#?power > 3")
    # some of what it asks for is declared, so that what the table says would not be the answer
    with pytest.raises(Trouble, match="asks for closed, which the event type reading does not declare"):
        run("match", *words, "-s", "grid/#?voltage > 250 or closed = true")

    job = load_app("tieline.cli.pipeline", PLACES["match"])
    job(args=[*words, "-s", "grid/#?delta(voltage) > 40", "-s", "#?voltage > 250"], standalone_mode=False)
    printed = capsys.readouterr()
    # two of the readings, and in the other table one message that was kept as it came
    assert printed.out.splitlines()[1:] == ["grid/#?delta(voltage) > 40,3", "#?voltage > 250,2"]
    assert printed.err == (
        'tieline: "grid/#?delta(voltage) > 40" and 1 more cannot be met by events of type switch, which declares '
        "nothing of what is asked for; they are left out.\n"
    )


def test_load_is_simulated(run: Run, log: str) -> None:
    with BrokerThread() as broker:
        listener = Listener(broker)
        try:
            printed = run(
                "simulate-load", "--history", log, "--broker", f"mqtt://127.0.0.1:{broker.port}", "--speed", "max",
                "--from", "1970-01-01T00:00:05", "--to", "1970-01-01T00:00:15", "--topic", "t/+",
            )  # fmt: skip
            assert printed.startswith("10 published in ") and "10 acknowledged, 0 late" in printed
            until(lambda: len(listener.heard) == 10, "all messages")
            heard = [json.loads(each.payload)["v"] for each in listener.heard]
        finally:
            listener.close()
    assert heard == list(range(5, 15))
