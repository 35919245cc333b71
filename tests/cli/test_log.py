"""`tieline log` as people use it: ranges, what follows, offsets, readers; a sentence and an exit code for the rest."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple

import pytest

from tests.kits.patience import PATIENCE_S
from tests.net.logserver.writing import Writer, fill, record
from tieline.cli.log import GAP
from tieline.cli.main import main
from tieline.cli.trouble import FAILED, MISUSED
from tieline.conf.schema import Attribute, Event, Settings
from tieline.log.record import Occurrence
from tieline.net.store import declarations

Start = Callable[..., Popen[str]]


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Log = Callable[..., Done]


@pytest.fixture(name="log")
def _log(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Log:
    """Runs `tieline log` in this process: starting one for each question would take most of the time."""

    def run(*words: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["tieline", "log", *words])
        with pytest.raises(SystemExit) as end:
            main()
        sys.stdout.flush()
        return Done(int(end.value.code or 0), *capfd.readouterr())

    return run


@pytest.fixture(name="stored", scope="module")
def _stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Writer]:
    """Offsets 20 to 99; retention has had the others."""
    writer = Writer(tmp_path_factory.mktemp("data"))
    fill(writer, 98)
    writer.append(
        [
            record(98, topic="odd\x1b[2Jtopic", payload=b"\xff\x00", qos=0),
            record(99, payload=b"two\nlines", dup=True, retain=True, properties=b"\x26\x00\x03seq\x00\x012"),
        ]
    )
    writer.append([Occurrence(1_000, "drop", "sleepy", "grid/1/pcc", {"count": 3})], stream="events")
    writer.forget(20)
    yield writer
    writer.close()


def offsets(printed: str) -> list[int]:
    return [int(line.split()[0]) for line in printed.splitlines()]


def test_a_range(log: Log, stored: Writer) -> None:
    done = log("read", "--data", str(stored.data), "--from", "33", "--to", "41")
    assert (done.returncode, done.stderr) == (0, "")
    assert offsets(done.stdout) == list(range(33, 41))
    expected = '      34  2023-11-14T22:13:20.000034Z  q1  normal  meter-1  grid/6/pcc  {"number": 34, "voltage": 234}'
    assert done.stdout.splitlines()[1] == expected


def test_what_a_client_chose_does_nothing_to_the_terminal(log: Log, stored: Writer) -> None:
    done = log("read", "--data", str(stored.data), "--from", "98")
    first, second = done.stdout.splitlines()
    assert first.endswith(r"odd\x1b[2Jtopic  0xff00")
    assert "q1 dup retain" in second and second.endswith(r"two\x0alines")


def test_one_object_on_each_line(log: Log, stored: Writer) -> None:
    done = log("read", "--data", str(stored.data), "--from", "98", "--format", "json")
    first, second = map(json.loads, done.stdout.splitlines())
    assert (first["offset"], first["payload_base64"]) == (98, "/wA=")
    assert "payload" not in first
    assert (second["offset"], second["payload"], second["class"]) == (99, "two\nlines", "normal")
    assert second["properties"] == [["seq", "2"]]


def test_topics_and_a_condition(log: Log, stored: Writer) -> None:
    done = log("read", "--data", str(stored.data), "--from", "20",
        "--topic", "grid/3/+", "--topic", "grid/4/#", "--where", "number >= 80",
    )  # fmt: skip
    assert offsets(done.stdout) == [number for number in range(80, 98) if number % 7 in {3, 4}]


def test_the_last_few(log: Log, stored: Writer) -> None:
    done = log("read", "--data", str(stored.data), "--last", "3")
    assert offsets(done.stdout) == [97, 98, 99]
    assert offsets(log("read", "--data", str(stored.data), "--last", "500").stdout) == list(range(20, 100))


def test_the_last_few_of_those_that_are_asked_for(log: Log, tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    fill(writer, 5_000)
    writer.close()
    done = log("read", "--data", str(tmp_path), "--last", "2", "--where", "number < 40")
    assert (done.returncode, offsets(done.stdout)) == (0, [38, 39])


def test_what_came_since_a_time(log: Log, tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    for second in range(1_000, 1_010):
        records = [record(number, received=(second * 1_000 + number) * 1_000_000) for number in range(3)]
        writer.append(records, at=second + 0.5)
    writer.close()
    since = "1970-01-01T00:16:44.001+00:00"
    assert offsets(log("read", "--data", str(tmp_path), "--since", since).stdout) == list(range(13, 30))
    assert offsets(log("read", "--data", str(tmp_path), "--since", since, "--to", "15").stdout) == [13, 14]
    assert log("read", "--data", str(tmp_path), "--since", "1h").stdout == ""


def test_events(log: Log, stored: Writer) -> None:
    done = log("read", "--data", str(stored.data), "--from", "0", "--stream", "events")
    assert done.stdout == '       0  1970-01-01T00:00:00.000001Z  drop  sleepy  grid/1/pcc  {"count":3}\n'
    done = log("read", "--data", str(stored.data), "--from", "0", "--stream", "events", "--format", "json")
    assert json.loads(done.stdout)["detail"] == {"count": 3}


def test_a_gap_is_named(log: Log, stored: Writer) -> None:
    done = log("read", "--data", str(stored.data), "--from", "5", "--to", "23")
    assert (done.returncode, done.stdout) == (GAP, "")
    assert "5 to 19" in done.stderr and "15 records are missing" in done.stderr
    done = log("read", "--data", str(stored.data), "--from", "5", "--to", "23", "--allow-gap")
    assert (done.returncode, offsets(done.stdout)) == (0, [20, 21, 22])
    assert "15 records are missing" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["--from", "101"], FAILED, "beyond"),
        (["--from", "50", "--to", "101"], FAILED, "beyond"),
        (["--from", "50", "--to", "49"], MISUSED, "before"),
        (["--from", "50", "--topic", "a/#/b"], MISUSED, "topic filter"),
        (["--from", "50", "--where", "a >"], MISUSED, "--where: column 4"),
        (["--from", "-1"], MISUSED, "--from"),
        ([], MISUSED, "one of --from OFFSET, --since TIME and --last N"),
        (["--from", "50", "--last", "3"], MISUSED, "one of --from OFFSET, --since TIME and --last N"),
        (["--last", "3", "--to", "50"], MISUSED, "--to does not go with it"),
        (["--since", "tea time"], MISUSED, "is no time"),
        (["--since", "25:00"], MISUSED, "is no time of day"),
    ],
)
def test_what_cannot_be_printed(log: Log, stored: Writer, words: list[str], code: int, expected: str) -> None:
    done = log("read", "--data", str(stored.data), *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert expected in done.stderr and "Traceback" not in done.stderr


def test_no_directory_and_no_log(log: Log, tmp_path: Path) -> None:
    done = log("read", "--from", "0")
    assert done.returncode == MISUSED and "--data" in done.stderr
    done = log("offsets", "--data", str(tmp_path))
    assert done.returncode == FAILED and "does not exist" in done.stderr
    (tmp_path / "tieline.db").write_bytes(b"SQLite format 3\0" + b"\xa5" * 5_000)
    done = log("offsets", "--data", str(tmp_path))
    assert done.returncode == FAILED and "Traceback" not in done.stderr


def test_damage_is_named(log: Log, tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    fill(writer, 30)
    writer.damage(10)
    writer.close()
    done = log("read", "--data", str(tmp_path), "--from", "0")
    assert done.returncode == FAILED and "offset 10" in done.stderr
    assert offsets(done.stdout) == list(range(10))


def test_where_the_streams_begin_and_end(log: Log, stored: Writer) -> None:
    done = log("offsets", "--data", str(stored.data))
    head, messages, events = done.stdout.splitlines()
    assert head.split() == ["stream", "earliest", "latest", "bytes", "oldest"]
    assert messages.split()[:3] == ["log", "20", "100"] and events.split()[:3] == ["events", "0", "1"]
    done = log("offsets", "--data", str(stored.data), "--format", "json")
    assert [json.loads(line)["latest"] for line in done.stdout.splitlines()] == [100, 1]


def test_how_far_readers_are(log: Log, stored: Writer) -> None:
    places = stored.data / "readers"
    places.mkdir(exist_ok=True)
    (places / "spark").write_text("60\n")
    done = log("readers", "--data", str(stored.data))
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["reader", "position", "behind"],
        ["spark", "60", "40"],
    ]
    done = log("readers", "--data", str(stored.data), "--format", "json")
    assert json.loads(done.stdout) == {"name": "spark", "position": 60, "behind": 40}


def test_a_tail_follows_until_it_is_interrupted(start: Start, tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    fill(writer, 20)
    tail = start("log", "tail", "--data", str(tmp_path), "--from", "17")
    assert tail.stdout is not None
    assert [int(tail.stdout.readline().split()[0]) for _ in range(3)] == [17, 18, 19]
    for number in range(20, 40, 5):
        writer.append([record(each) for each in range(number, number + 5)])
        assert [int(tail.stdout.readline().split()[0]) for _ in range(5)] == list(range(number, number + 5))
    tail.send_signal(signal.SIGINT)
    printed, told = tail.communicate(timeout=PATIENCE_S)
    assert (tail.returncode, printed, told) == (0, "", "")
    writer.close()


def test_a_tail_whose_reader_has_gone_ends_by_itself(start: Start, tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    fill(writer, 10)
    tail = start("log", "tail", "--data", str(tmp_path), "--from", "0")
    assert tail.stdout is not None
    tail.stdout.readline()
    tail.stdout.close()
    assert tail.wait(timeout=PATIENCE_S) == FAILED
    assert tail.stderr is not None and tail.stderr.read() == ""
    tail.stdout = None
    writer.close()


def test_a_tail_begins_at_the_end_and_says_what_it_missed(start: Start, log: Log, tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    fill(writer, 10)
    writer.forget(10)
    done = log("tail", "--data", str(tmp_path), "--from", "3")
    assert done.returncode == GAP and "3 to 9" in done.stderr
    assert log("tail", "--data", str(tmp_path), "--from", "11").returncode == FAILED
    assert log("tail", "--data", str(tmp_path), "--from", "start").returncode == MISUSED
    tail = start("log", "tail", "--data", str(tmp_path), "--from", "3", "--allow-gap")
    assert tail.stderr is not None and "7 records are missing" in tail.stderr.readline()
    writer.append([record(10)])
    assert tail.stdout is not None and tail.stdout.readline().split()[0] == "10"
    tail.send_signal(signal.SIGINT)
    assert tail.wait(timeout=PATIENCE_S) == 0
    writer.close()


def test_a_server_that_must_not_start_says_why(log: Log, stored: Writer) -> None:
    done = log("serve", "--data", str(stored.data), "--url", "http://0.0.0.0:0")
    assert done.returncode == MISUSED and "from other machines" in done.stderr


def test_what_messages_say_is_read_by_what_was_declared_when_they_came(log: Log, tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.append([record(0, topic="m/1", payload=b"\xa1\x61v\x05")])
    for name in ("v", "w"):
        attributes = (Attribute(name), Attribute("phase", "category"))
        writer.declare(Settings(event={"e": Event(topic="m/+", payload="cbor", attributes=attributes)}))
        writer.append([record(0, topic="m/1", payload=b"\xa2\x61v\x05\x61w\x06"), record(0, topic="other")])
    writer.close()
    data = str(tmp_path)
    done = log("read", "--data", data, "--from", "0", "--format", "json")
    said = [json.loads(line)["attributes"] for line in done.stdout.splitlines()]
    assert said == [None, {"v": 5.0}, None, {"w": 6.0}, None]
    assert offsets(log("read", "--data", data, "--from", "0", "--where", "v = 5 or w > 6").stdout) == [1]


def test_event_types_that_this_program_does_not_know_are_a_sentence(log: Log, tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    declarations.keep(writer._db, '{"event": {"e": {"topic": "#", "later": 1}}, "untyped_bytes": 1}', 0)
    writer.append([record(0)])
    writer.close()
    done = log("read", "--data", str(tmp_path), "--from", "0")
    assert (done.returncode, offsets(done.stdout)) == (0, [0]), "nobody asked what it says"
    done = log("read", "--data", str(tmp_path), "--from", "0", "--format", "json")
    assert done.returncode == FAILED and "messages from offset 0 on say cannot be read" in done.stderr


def test_a_tail_learns_what_a_later_broker_declares(start: Start, tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.append([record(0)])
    tail = start("log", "tail", "--data", str(tmp_path), "--from", "0", "--format", "json")
    assert tail.stdout is not None
    assert json.loads(tail.stdout.readline())["attributes"] is None
    writer.declare(Settings(event={"e": Event(topic="grid/#", attributes=(Attribute("number"),))}))
    writer.append([record(7)])
    assert json.loads(tail.stdout.readline())["attributes"] == {"number": 7.0}
    tail.send_signal(signal.SIGINT)
    assert tail.wait(timeout=PATIENCE_S) == 0
    writer.close()
