"""The shape of an answer, steps in the order in which the broker itself takes them, and the steps that answers share.

Each of the shared steps asks whoever decides when a message really comes, and puts the answer into words.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from tieline.conf.schema import Claim
from tieline.core.broker import Broker
from tieline.core.client import Connection
from tieline.core.ports import Explains, Login, Pending, Refused
from tieline.core.receiver import Receiver
from tieline.wire.errors import ProtocolError
from tieline.wire.topics import check_name


class Outcome(StrEnum):
    """What a step comes to."""

    YES = "yes"  # it goes on
    NO = "no"  # it ends here
    UNKNOWN = "unknown"  # it depends on what the question does not say
    NOTE = "note"  # it changes nothing, but explains something


class Step(Struct, frozen=True, kw_only=True):
    """One step: where, with what outcome, and why."""

    stage: str
    outcome: Outcome
    text: str
    #: What decided, in the words of whoever wrote it: a rule with its file and line, a setting, a clause.
    rule: str = ""


def yes(stage: str, text: str, rule: str = "") -> Step:
    """A step after which the message or the request goes on."""
    return Step(stage=stage, outcome=Outcome.YES, text=text, rule=rule)


def no(stage: str, text: str, rule: str = "") -> Step:
    """A step at which it ends: no later one is taken."""
    return Step(stage=stage, outcome=Outcome.NO, text=text, rule=rule)


def unknown(stage: str, text: str, rule: str = "") -> Step:
    """A step whose outcome depends on what the question does not say."""
    return Step(stage=stage, outcome=Outcome.UNKNOWN, text=text, rule=rule)


def note(stage: str, text: str, rule: str = "") -> Step:
    """A step that decides nothing, but explains something."""
    return Step(stage=stage, outcome=Outcome.NOTE, text=text, rule=rule)


# -- what a message is called


def name_step(broker: Broker, conn: Connection | None, topic: str, levels: int | None = None) -> Step:
    """Whether a topic name is one, for a client that may use so many levels, or for anybody who may use these."""
    if levels is None:
        levels = broker.settings.limits.topic_levels if conn is None else conn.allowance.topic_levels
    try:
        check_name(topic, levels)
    except ProtocolError as error:
        return no("name", str(error), error.clause)
    return yes("name", f"{topic} is a topic name of {topic.count('/') + 1} levels")


# -- who may


def access_step(broker: Broker, client: str, what: Literal["publish", "subscribe"], subject: str) -> Step:
    """Whether a client may do something with a topic, and by which rule."""
    verdict = broker.questions.verdict(_login_of(broker, client), what, subject)
    to = "publish to" if what == "publish" else "subscribe to"
    if isinstance(verdict, Pending):
        return unknown("access", f"whether it may {to} {subject} is decided elsewhere, and later")
    if isinstance(verdict, Refused):
        code = f"0x{verdict.reason:02X} {verdict.reason.name.lower()}"
        return no("access", f"it may not {to} {subject}; it is told {code}", verdict.rule)
    return yes("access", f"it may {to} {subject}", verdict.rule)


def _login_of(broker: Broker, client: str) -> Login:
    """Who a client is: as it logged in if it is connected, else as its session remembers it."""
    session = broker.sessions.get(client)
    conn = None if session is None else session.connection
    if conn is not None and conn.login is not None:
        return conn.login
    user = None if session is None else session.user
    return Login(client_id=client, username=user, password=None, listener="", peer="", user=user)


def may_not_read(broker: Broker, receiver: Receiver, topic: str) -> str | None:
    """The rule that keeps messages of a topic from a receiver, whatever it subscribed to; None when none does."""
    routes = broker.routes
    judge = routes.judge
    if judge is None or routes.may_read(receiver, topic):
        return None
    if isinstance(judge, Explains):
        # a topic of the broker's own may name another one, and that may be the one that it may not read
        for subject in (topic, routes.named.get(topic, topic)):
            verdict = judge.explain("read", receiver.user, receiver.client_id, subject)
            if isinstance(verdict, Refused):
                return verdict.rule
    return "the access control does not say by which rule"


# -- how urgent


def named_level(broker: Broker, level: int) -> str:
    """A level, and what it is called."""
    return f"{level}, {broker.priorities.classes.names[level]}"


def own_level(broker: Broker, conn: Connection | None) -> int:
    """The level of a publisher, for messages that nothing else gives one."""
    return broker.priorities.default_level if conn is None else conn.level


def level_rule(broker: Broker, topic: str, conn: Connection | None) -> str:
    """What gives messages of a topic their level that claim none: a topic rule, as it is written, or the publisher."""
    rule = broker.priorities.classes.rule(topic)
    if rule is not None:
        return f'[[class]] name = "{rule.name}", filter = "{rule.filter}"'
    return f"priority.default_level = {own_level(broker, None)}" if conn is None else "the client's own level"


def claim_rule(conn: Connection, claim: Claim | None) -> str:
    """What bounds the levels of a client, as it is written: a claim, else its listener."""
    if claim is None:
        return f"listener {conn.listener}, max_level = {conn.max_level}"
    rule = f'[[claim]] user = "{claim.user}", filter = "{claim.filter}", max_level = {claim.max_level}'
    return rule if claim.per_s == "none" else f"{rule}, per_s = {claim.per_s:g}"
