"""`tieline pub` and `tieline sub` talk to a live broker with the flags people know."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Served, Tieline
from tests.kits.certificates import issue
from tests.kits.patience import PATIENCE_S

Start = Callable[..., "subprocess.Popen[str]"]


def subscribed(start: Start, served: Served, *words: str) -> subprocess.Popen[str]:
    """A running `tieline sub`, once the broker has confirmed the subscription."""
    process = start("sub", "-p", served.port, "-d", *words)
    assert process.stderr is not None
    for line in process.stderr:
        if "SUBACK" in line:
            return process
    raise AssertionError("never subscribed")


def output(process: subprocess.Popen[str]) -> str:
    printed, _log = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    return printed


@pytest.mark.parametrize("version", ["311", "5"])
@pytest.mark.parametrize("qos", ["0", "1", "2"])
def test_a_message_arrives(tieline: Tieline, start: Start, served: Served, version: str, qos: str) -> None:
    topic = f"arrive/{version}/{qos}"
    listener = subscribed(start, served, "-V", version, "-q", qos, "-t", topic, "-C", "1", "-F", "%t %p %q %r")
    assert tieline("pub", "-p", served.port, "-V", version, "-q", qos, "-t", topic, "-m", "-é").returncode == 0
    assert output(listener) == f"{topic} -é {qos} 0\n"


def test_sources_of_messages(tieline: Tieline, start: Start, served: Served, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("from a file")
    listener = subscribed(start, served, "-q", "1", "-t", "source/#", "-v", "-C", "7")
    to = ("pub", "-p", served.port, "-q", "1", "-t")
    tieline(*to, "source/f", "-f", str(tmp_path / "f"))
    tieline(*to, "source/l", "-l", stdin="one\ntwo\n")
    tieline(*to, "source/s", "-s", stdin="one two")
    tieline(*to, "source/n", "-n")
    tieline(*to, "source/r", "-m", "again", "--repeat", "2", "--repeat-delay", "0.01")
    assert output(listener).splitlines() == [
        "source/f from a file", "source/l one", "source/l two", "source/s one two", "source/n (null)",
        "source/r again", "source/r again",
    ]  # fmt: skip


def test_retained_messages(tieline: Tieline, served: Served) -> None:
    at = ("-p", served.port)
    tieline("pub", *at, "-t", "keep/a", "-m", "kept", "-r")
    assert tieline("sub", *at, "-t", "keep/#", "-C", "1", "-F", "%p %r").stdout == "kept 1\n"
    assert tieline("sub", *at, "-t", "keep/#", "-C", "1", "--retained-only").stdout == "kept\n"
    assert tieline("sub", *at, "-t", "keep/#", "-R", "-W", "0.3").stdout == ""
    assert tieline("sub", *at, "-V", "5", "-t", "keep/#", "--retain-handling", "never", "-W", "0.3").stdout == ""
    assert tieline("sub", *at, "-t", "keep/#", "--remove-retained", "-C", "1", "-N").stdout == "kept"
    shown = tieline("sub", *at, "-t", "keep/#", "-W", "0.3")
    assert (shown.returncode, shown.stdout) == (27, "")


def test_properties_arrive(tieline: Tieline, start: Start, served: Served) -> None:
    listener = subscribed(start, served, "-V", "5", "-t", "props", "-C", "1", "-F", "%J")
    sent = tieline(
        *("pub", "-p", served.port, "-V", "5", "-t", "props", "-m", "[1]", "-D", "publish", "user-property", "k", "v"),
        *("-D", "publish", "user-property", "k", "w", "-D", "publish", "content-type", "json"),
        *("-D", "publish", "correlation-data", "id", "-D", "connect", "receive-maximum", "5"),
    )  # fmt: skip
    assert (sent.returncode, sent.stderr) == (0, "")
    shown = json.loads(output(listener))
    assert shown["payload"] == [1]
    assert shown["properties"]["UserProperty"] == [["k", "v"], ["k", "w"]]
    assert shown["properties"]["ContentType"] == "json"


def test_a_kept_session_collects(tieline: Tieline, served: Served) -> None:
    for version in ("311", "5"):
        me = (
            "sub",
            "-p",
            served.port,
            "-V",
            version,
            "-i",
            f"keeper{version}",
            "-c",
            "-q",
            "1",
            "-t",
            f"later/{version}",
        )
        assert tieline(*me, "-E").returncode == 0
        tieline("pub", "-p", served.port, "-q", "1", "-t", f"later/{version}", "-m", "waited")
        assert tieline(*me, "-C", "1").stdout == "waited\n"


def test_websocket(tieline: Tieline, start: Start, served: Served) -> None:
    listener = subscribed(start, served, "-t", "web", "-C", "1")
    assert tieline("pub", "-p", served.ws_port, "--ws", "-t", "web", "-m", "over ws").returncode == 0
    assert output(listener) == "over ws\n"


def test_filter_out(tieline: Tieline, start: Start, served: Served) -> None:
    listener = subscribed(start, served, "-t", "f/#", "-T", "f/+/noise", "-C", "1", "-v")
    tieline("pub", "-p", served.port, "-t", "f/a/noise", "-m", "x")
    tieline("pub", "-p", served.port, "-t", "f/a/signal", "-m", "y")
    assert output(listener) == "f/a/signal y\n"


@pytest.mark.parametrize("version", ["311", "5"])
def test_where(tieline: Tieline, start: Start, served: Served, version: str) -> None:
    words = ("-V", version, "-t", f"where/{version}/#", "-t", f"where/{version}?n<9", "--where", "n>1 and m!='#/+'")
    listener = subscribed(start, served, *words, "-C", "2", "-v")
    for level, content in (("a", '{"n":1,"m":"x"}'), ("b", '{"n":2,"m":"#/+"}'), ("c", '{"n":2,"m":"x"}')):
        tieline("pub", "-p", served.port, "-t", f"where/{version}/{level}", "-m", content)
    tieline("pub", "-p", served.port, "-t", f"where/{version}", "-m", '{"n":9,"m":"y"}')
    assert output(listener).splitlines() == [
        f'where/{version}/c {{"n":2,"m":"x"}}',
        f'where/{version} {{"n":9,"m":"y"}}',
    ]


def test_every_spelling_of_a_condition_is_taken(tieline: Tieline, start: Start, served: Served) -> None:
    filters = ("spell/+?n>1", "spell/#?n>1 and m!='#/+'", "$where/n>1/spell/a", "$share/g/spell/a?n>1")
    listeners = [subscribed(start, served, "-q", "1", "-t", each, "-C", "1") for each in filters]
    for content in ('{"n":1,"m":"x"}', '{"n":2,"m":"x"}'):
        tieline("pub", "-p", served.port, "-q", "1", "-t", "spell/a", "-m", content)
    assert [output(each) for each in listeners] == ['{"n":2,"m":"x"}\n'] * len(filters)


def test_what_looks_like_a_condition_and_is_none_is_told_of(tieline: Tieline, served: Served) -> None:
    shown = tieline("sub", "-p", served.port, "-t", "pcc?voltge", "-E")
    assert shown.returncode == 0
    assert "pcc?voltge: nothing is compared behind the question mark" in shown.stderr
    assert tieline("sub", "-p", served.port, "-t", "pcc?voltge", "-E", "--quiet").stderr == ""


def test_a_condition_that_is_wrong_never_leaves_the_house(tieline: Tieline) -> None:
    shown = tieline("sub", "-t", "a", "--where", "n >")
    assert shown.returncode == 2
    assert shown.stderr == "tieline: --where 'n >': column 4: expected a number or a quoted text after '>'.\n"


def test_a_broker_says_why_it_refuses_a_message(tieline: Tieline, served: Served) -> None:
    shown = tieline("pub", "-p", served.port, "-V", "5", "-q", "1", "-t", "$SYS/no", "-m", "x")
    assert shown.returncode == 1
    assert "refused 1 of the messages: " in shown.stderr and shown.stderr.count(":") >= 3, "a reason and a sentence"


def test_a_broker_says_what_is_wrong_with_a_condition(tieline: Tieline, served: Served) -> None:
    shown = tieline("sub", "-p", served.port, "-V", "5", "-t", "a?n >", "-W", "5")
    assert shown.returncode == 1
    assert "column 4: expected a number" in shown.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_politely(tieline: Tieline, start: Start, served: Served, number: signal.Signals) -> None:
    wills = subscribed(start, served, "-t", "will", "-W", "3")
    leaving = subscribed(start, served, "-t", "x", "--will-topic", "will", "--will-payload", "died")
    leaving.send_signal(number)
    _printed, log = leaving.communicate(timeout=PATIENCE_S)
    assert leaving.returncode == (0 if number == signal.SIGTERM else 130)
    assert "Traceback" not in log and "DISCONNECT" in log
    wills.terminate()
    assert output(wills) == ""


def test_a_killed_client_leaves_its_will(start: Start, served: Served) -> None:
    wills = subscribed(start, served, "-t", "will/k", "-C", "1")
    dying = subscribed(start, served, "-t", "x", "--will-topic", "will/k", "--will-payload", "died")
    dying.kill()
    assert output(wills) == "died\n"


def test_a_reader_that_leaves_is_no_error(tieline: Tieline, served: Served) -> None:
    tieline("pub", "-p", served.port, "-t", "pipe", "-m", "x", "-r")
    command = f"{sys.executable} -m tieline sub -p {served.port} -t pipe -W 5 | true"
    shown = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert shown.stderr == ""


def test_a_broker_that_goes_away_is_one_sentence(start: Start, tmp_path: Path) -> None:
    listen = ("--listen", "tcp://127.0.0.1:0", "--listen", "ws://127.0.0.1:0")
    served = Served(start("serve", "--data", str(tmp_path), *listen), tmp_path)
    receiver = subscribed(start, served, "-t", "lines", "-C", "1")
    command = [sys.executable, "-m", "tieline", "pub", "-p", served.port, "-t", "lines", "-l", "-q", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        process.stdin.write("one\n")
        process.stdin.flush()
        assert output(receiver) == "one\n"
        served.process.kill()
        served.process.wait(PATIENCE_S)
        _printed, said = process.communicate("two\n", timeout=PATIENCE_S)
    assert process.returncode == 1
    assert said.startswith("tieline: ") and "Traceback" not in said


def test_no_broker_is_one_sentence(tieline: Tieline) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = str(unused.getsockname()[1])
    shown = tieline("pub", "-h", "127.0.0.1", "-p", port, "-t", "a", "-m", "x")
    assert shown.returncode == 1
    assert shown.stderr == f"tieline: cannot connect to 127.0.0.1:{port}: connection refused.\n"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"\x20\x02\x00\x05", "refused the connection: not authorized."),
        (b"", "was lost"),
        (b"\x20\x02\x00\x00", "was lost"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "was lost"),
    ],
)
def test_what_other_servers_answer(tieline: Tieline, answer: bytes, said: str) -> None:
    def serve(listening: socket.socket) -> None:
        connection, _address = listening.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(answer)
            if answer.endswith(b"\0\0"):
                connection.recv(1000)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        port = str(listening.getsockname()[1])
        shown = tieline("sub", "-h", "127.0.0.1", "-p", port, "-t", "a", "-W", "5")
        thread.join(5)
    assert shown.returncode == 1
    assert said in shown.stderr and shown.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", [("pub", "-m", "x"), ("sub",)])
def test_a_key_with_a_password_is_refused_without_asking(
    tieline: Tieline, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    made = issue(tmp_path)
    made.encrypt_key()
    files = "--cafile", str(made.authority), "--cert", str(made.certificate), "--key", str(made.key)
    # answers are read from the terminal, not from the input, so a question would last until the test gives up
    ended = tieline(*verb, "-t", "t", *files)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.endswith("key.pem: the key is encrypted with a password.\n")
