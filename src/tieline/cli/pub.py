"""``tieline pub``: publish messages, with the flags of mosquitto_pub."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # Any: paho's callbacks have no types

import typer
from paho.mqtt.client import MQTTMessageInfo

from tieline.cli.flags import flag, page, parse, seconds, whole
from tieline.cli.options import CONNECTION, OUTPUT, QOS, TLS, TOPIC, WILL, ClientOptions, build_properties, settle
from tieline.cli.session import Session, explained
from tieline.cli.trouble import MISUSED, Trouble
from tieline.cli.verbs import Raw, new_app

#: Messages handed to paho and not yet sent or acknowledged; more would only move a pipe's content into memory.
_WINDOW = 200

app = new_app()


@dataclass(slots=True, kw_only=True)
class PubOptions(ClientOptions):
    """The connection, and what to publish over it."""

    message: str | None = None
    file: str | None = None
    is_lines: bool = False
    is_empty: bool = False
    is_stdin: bool = False
    is_retained: bool = False
    repeat: int = 1
    repeat_delay_s: float = 0.0


MESSAGE = (
    TOPIC,
    flag("-m --message", "message", "Publish this text.", "TEXT"),
    flag("-f --file", "file", "Publish the content of a file.", "FILE"),
    flag("-l --stdin-line", "is_lines", "Publish each line of standard input as a message."),
    flag("-n --null-message", "is_empty", "Publish an empty message; with -r it removes a retained one."),
    flag("-s --stdin-file", "is_stdin", "Publish all of standard input as one message."),
    QOS,
    flag("-r --retain", "is_retained", "Retain the message."),
    flag("--repeat", "repeat", "Publish it this many times.", "COUNT", convert=whole(1, 2**31)),
    flag("--repeat-delay", "repeat_delay_s", "Seconds between repetitions.", "SECONDS", convert=seconds),
)
GROUPS = (("Message", MESSAGE), ("Connection", CONNECTION), ("Will", WILL), ("TLS", TLS), ("Output", OUTPUT))


@app.command(cls=Raw, add_help_option=False)
def pub(ctx: typer.Context) -> None:
    """Publish messages, with the flags of mosquitto_pub."""
    options = PubOptions()
    parse([row for _title, rows in GROUPS for row in rows], ctx.args, options)
    if options.wants_help:
        usage = "tieline pub -t TOPIC {-m TEXT | -f FILE | -l | -n | -s} [OPTIONS]"
        print(page(usage, "Publish messages, with the flags of mosquitto_pub.", GROUPS))
        return
    try:
        settle(options)
        _check(options)
        publish(options)
    except Trouble as trouble:
        if options.is_quiet:
            raise typer.Exit(trouble.code) from None
        raise


def publish(options: PubOptions) -> None:
    """Connect, publish everything, wait until all of it is acknowledged, leave."""
    # What to publish is found out first: a file that cannot be read is no reason to disturb a broker.
    payloads = _payloads(options)
    session = Session(options)
    refused: list[str] = []

    def on_publish(_client: Any, _userdata: Any, _number: int, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            refused.append(explained(reason, properties))

    session.client.on_publish = on_publish
    try:
        session.open()
        _send(session, options, payloads)
    finally:
        session.close()
    if refused:
        raise Trouble(f"{options.target} refused {len(refused)} of the messages: {refused[0]}.")


def _send(session: Session, options: PubOptions, payloads: Iterator[bytes]) -> None:
    with_v5 = build_properties(options.properties, "publish") if options.version == 5 else None
    waiting: deque[MQTTMessageInfo] = deque()
    for payload in payloads:
        try:
            sent = session.client.publish(
                options.topics[0], payload, options.qos, retain=options.is_retained, properties=with_v5
            )
        except ValueError as problem:
            raise Trouble(f"cannot publish to {options.topics[0]}: {problem}.", code=MISUSED) from None
        waiting.append(sent)
        while len(waiting) > _WINDOW:
            _wait(session, waiting.popleft())
    for sent in waiting:
        _wait(session, sent)


def _wait(session: Session, sent: MQTTMessageInfo) -> None:
    try:
        while not sent.is_published():
            session.check()
            sent.wait_for_publish(0.1)
    except (RuntimeError, ValueError):
        # paho raises when the connection went before the message did; the session knows the better sentence.
        session.check()
        raise Trouble(f"the connection to {session.options.target} was lost.") from None


def _payloads(options: PubOptions) -> Iterator[bytes]:
    if options.is_lines:
        return (line.rstrip(b"\n") for line in sys.stdin.buffer)
    if options.file is not None:
        try:
            payload = Path(options.file).read_bytes()
        except OSError as problem:
            raise Trouble(f"cannot read {options.file}: {(problem.strerror or str(problem)).lower()}.") from None
    elif options.is_stdin:
        payload = sys.stdin.buffer.read()
    else:
        payload = (options.message or "").encode(errors="surrogateescape")
    return _repeated(payload, options.repeat, options.repeat_delay_s)


def _repeated(payload: bytes, count: int, delay_s: float) -> Iterator[bytes]:
    for number in range(count):
        if number and delay_s:
            time.sleep(delay_s)
        yield payload


def _check(options: PubOptions) -> None:
    texts = [source for source in (options.message, options.file) if source is not None]
    if len(texts) + options.is_lines + options.is_empty + options.is_stdin != 1:
        raise Trouble("give exactly one of -m, -f, -l, -n and -s.", code=MISUSED)
    if len(options.topics) != 1:
        raise Trouble("give exactly one topic with -t.", code=MISUSED)
    if "+" in options.topics[0] or "#" in options.topics[0]:
        raise Trouble(f"{options.topics[0]}: a message cannot be published to a wildcard.", code=MISUSED)
