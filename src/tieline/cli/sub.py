"""``tieline sub``: subscribe and print messages, with the flags of mosquitto_sub."""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass, field
from typing import Any  # Any: paho's callbacks have no types

import typer
from paho.mqtt.client import MQTTMessage, topic_matches_sub
from paho.mqtt.subscribeoptions import SubscribeOptions

from tieline.cli.flags import choice, flag, page, parse, seconds, whole
from tieline.cli.format import Piece, compile_format, plain, verbose
from tieline.cli.options import CONNECTION, OUTPUT, QOS, TLS, TOPIC, WILL, ClientOptions, build_properties, settle
from tieline.cli.session import Session
from tieline.cli.trouble import MISUSED, TIMED_OUT, Trouble
from tieline.cli.verbs import Raw, new_app
from tieline.match.where import Asked, ExpressionError, spell, split
from tieline.match.where import parse as parse_condition

app = new_app()

_RETAIN_HANDLING = {"always": 0, "new": 1, "never": 2}


@dataclass(slots=True, kw_only=True)
class SubOptions(ClientOptions):
    """The connection, what to subscribe to and how to print it."""

    unsubscribe: list[str] = field(default_factory=list)
    leave_out: list[str] = field(default_factory=list)
    is_verbose: bool = False
    print_message: Piece | None = None
    is_without_newline: bool = False
    count: int | None = None
    timeout_s: float | None = None
    skips_retained: bool = False
    only_retained: bool = False
    removes_retained: bool = False
    retain_as_published: bool = False
    retain_handling: str = "always"
    is_only_subscribing: bool = False
    where: str | None = None


MESSAGES = (
    TOPIC,
    flag(
        "--where",
        "where",
        "Only messages whose content meets this condition, such as 'voltage<207'. Needs a broker that knows "
        "content subscriptions.",
        "EXPR",
    ),
    QOS,
    flag("-U --unsubscribe", "unsubscribe", "Unsubscribe from this filter. Repeatable.", "TOPIC", is_repeated=True),
    flag("-T --filter-out", "leave_out", "Do not print topics that match. Repeatable.", "TOPIC", is_repeated=True),
    flag("-R", "skips_retained", "Do not print retained messages that were waiting."),
    flag("--retained-only", "only_retained", "Print only retained messages that were waiting."),
    flag("--remove-retained", "removes_retained", "Remove each retained message that arrives from the broker."),
    flag("--retain-as-published", "retain_as_published", "MQTT 5: keep the publisher's retain mark."),
    flag(
        "--retain-handling",
        "retain_handling",
        "MQTT 5: when to send retained messages: always, new (to a new subscription) or never.",
        "WHEN",
        convert=choice(*_RETAIN_HANDLING),
    ),
    flag("-C", "count", "Stop after this many messages.", "COUNT", convert=whole(1, 2**31)),
    flag("-W", "timeout_s", "Stop after this many seconds, with exit code 27.", "SECONDS", convert=seconds),
    flag("-E", "is_only_subscribing", "Stop as soon as the broker has confirmed the subscriptions."),
)
PRINTING = (
    flag("-v --verbose", "is_verbose", "Print the topic before the payload."),
    flag("-N", "is_without_newline", "Print no line end after a message."),
    flag(
        "-F",
        "print_message",
        "Print as the format says: %t topic, %p payload, %x hexadecimal, %l length, %q QoS, %r retained, %j JSON, "
        "%J JSON with a JSON payload, %I time, %U time in seconds, %m packet id, %C content type, "
        "%D correlation data, %E expiry, %F payload format, %P user properties, %R response topic, "
        "%S subscription identifiers, %A topic alias; @X as strftime's %X; \\n, \\t and the like.",
        "FORMAT",
        convert=compile_format,
    ),
    *OUTPUT,
)
GROUPS = (("Messages", MESSAGES), ("Printing", PRINTING), ("Connection", CONNECTION), ("Will", WILL), ("TLS", TLS))


@app.command(cls=Raw, add_help_option=False)
def sub(ctx: typer.Context) -> None:
    """Subscribe and print messages."""
    options = SubOptions()
    parse([row for _title, rows in GROUPS for row in rows], ctx.args, options)
    if options.wants_help:
        duty = "Subscribe and print messages, with the flags of mosquitto_sub."
        print(page("tieline sub -t TOPIC [-t TOPIC …] [OPTIONS]", duty, GROUPS))
        return
    try:
        settle(options)
        _check(options)
        options.topics = [_spelled(topic, options.where, is_quiet=options.is_quiet) for topic in options.topics]
        options.unsubscribe = [_spelled(topic, None, is_quiet=True) for topic in options.unsubscribe]
        Subscriber(options).run()
    except Trouble as trouble:
        if options.is_quiet:
            raise typer.Exit(trouble.code) from None
        raise


class Subscriber:
    """Prints what arrives until there is a reason to stop."""

    def __init__(self, options: SubOptions) -> None:
        self.options = options
        self.session = Session(options)
        self.seen = 0
        self.is_pipe_closed = False
        self.print_message = options.print_message or (verbose if options.is_verbose else plain)
        self.session.client.on_message = self._on_message
        self.session.client.on_subscribe = self._on_subscribe

    def run(self) -> None:
        """Subscribe, and wait for the end: a count, a time, a signal or a failure."""
        session, options = self.session, self.options
        # A supervisor's SIGTERM is a polite end here too: leave with a DISCONNECT, so that no will is published.
        before = signal.signal(signal.SIGTERM, lambda _number, _frame: session.ended.set())
        try:
            session.open()
            self._subscribe()
            in_time = session.ended.wait(options.timeout_s)
        finally:
            signal.signal(signal.SIGTERM, before)
            session.close()
        session.check()
        if self.is_pipe_closed:
            raise BrokenPipeError
        if not in_time:
            raise Trouble(f"{self.seen} messages in {options.timeout_s:g} seconds.", code=TIMED_OUT)

    def _subscribe(self) -> None:
        options, client = self.options, self.session.client
        v5 = options.version == 5
        try:
            if options.topics and v5:
                wish = SubscribeOptions(
                    options.qos,
                    retainAsPublished=options.retain_as_published,
                    retainHandling=_RETAIN_HANDLING[options.retain_handling],
                )
                topics = [(topic, wish) for topic in options.topics]
                client.subscribe(topics, properties=build_properties(options.properties, "subscribe"))
            elif options.topics:
                client.subscribe([(topic, options.qos) for topic in options.topics])
            if options.unsubscribe:
                with_v5 = build_properties(options.properties, "unsubscribe") if v5 else None
                client.unsubscribe(options.unsubscribe, properties=with_v5)
        except ValueError as problem:
            raise Trouble(f"cannot subscribe to {', '.join(options.topics)}: {problem}.", code=MISUSED) from None

    def _on_subscribe(self, _client: Any, _userdata: Any, _number: int, reasons: list[Any], properties: Any) -> None:
        refused = [
            f"{topic} ({str(reason).lower()})"
            for topic, reason in zip(self.options.topics, reasons, strict=False)
            if reason.is_failure
        ]
        # MQTT 5 brokers may say more: where a condition is wrong, for one
        why = getattr(properties, "ReasonString", "")
        said = f"{self.options.target} refused to subscribe to {', '.join(refused)}{': ' if why else ''}{why}."
        if refused and len(refused) == len(reasons):
            self.session.fail(said)
        elif refused and not self.options.is_quiet:
            print(f"tieline: {said}", file=sys.stderr)
        if self.options.is_only_subscribing:
            self.session.ended.set()

    def _on_message(self, client: Any, _userdata: Any, message: MQTTMessage) -> None:
        options = self.options
        if self.session.ended.is_set():
            return
        if message.retain and options.removes_retained:
            client.publish(message.topic, b"", 1, retain=True)
        if (message.retain and options.skips_retained) or (not message.retain and options.only_retained):
            return
        if any(topic_matches_sub(pattern, message.topic) for pattern in options.leave_out):
            return
        try:
            sys.stdout.buffer.write(self.print_message(message) + (b"" if options.is_without_newline else b"\n"))
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            self.is_pipe_closed = True
            self.session.ended.set()
            return
        self.seen += 1
        if self.seen == options.count:
            self.session.ended.set()


def _check(options: SubOptions) -> None:
    if not options.topics and not options.unsubscribe:
        raise Trouble("give at least one topic with -t.", code=MISUSED)
    if options.skips_retained and options.only_retained:
        raise Trouble("-R and --retained-only exclude each other.", code=MISUSED)
    if options.version != 5 and (options.retain_as_published or options.retain_handling != "always"):
        raise Trouble("--retain-as-published and --retain-handling need MQTT 5: add -V 5.", code=MISUSED)


def _spelled(topic: str, condition: str | None, *, is_quiet: bool) -> str:
    """The filter with its condition in the spelling that every client library lets pass, and the one of ``--where``."""
    try:
        asked = split(topic, question_mark=True)
        if condition is not None:
            parse_condition(condition)  # what is in the filter the broker reads: it knows what can be compared there
    except ExpressionError as problem:
        where = f"--where {condition!r}" if condition is not None else topic
        raise Trouble(f"{where}: {problem}.", code=MISUSED) from None
    if asked.expression is None and "?" in asked.filter and not is_quiet:
        print(
            f"tieline: {asked.filter}: nothing is compared behind the question mark, so it is taken for a part of the "
            "topic; a condition reads like pcc?voltage<207.",
            file=sys.stderr,
        )
    conditions = [each for each in (asked.expression, condition) if each is not None]
    if not conditions:
        return topic
    together = conditions[0] if len(conditions) == 1 else " and ".join(f"({each})" for each in conditions)
    return spell(Asked(asked.share, asked.filter, together))
