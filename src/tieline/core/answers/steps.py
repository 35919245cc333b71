"""The shape of an answer: steps in the order in which the broker itself takes them, and the step that asks access."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tieline.core.broker import Broker
from tieline.core.ports import Explains, Login, Pending, Refused
from tieline.core.receiver import Receiver


class Outcome(StrEnum):
    """What a step comes to."""

    YES = "yes"  # it goes on
    NO = "no"  # it ends here
    UNKNOWN = "unknown"  # it depends on what the question does not say
    NOTE = "note"  # it changes nothing, but explains something


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
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


def login_of(broker: Broker, client: str) -> Login:
    """Who a client is: as it logged in if it is connected, else as its session remembers it."""
    session = broker.sessions.get(client)
    conn = None if session is None else session.connection
    if conn is not None and conn.login is not None:
        return conn.login
    user = None if session is None else session.user
    return Login(client_id=client, username=user, password=None, listener="", peer="", user=user)


def verdict_on(broker: Broker, login: Login, what: Literal["publish", "subscribe"], subject: str) -> Step:
    """Whether somebody may do something with a topic, and by which rule."""
    ask = broker.access.publish if what == "publish" else broker.access.subscribe
    verdict = ask(login, subject)
    to = "publish to" if what == "publish" else "subscribe to"
    if isinstance(verdict, Pending):
        return unknown("access", f"whether it may {to} {subject} is decided elsewhere, and later")
    if isinstance(verdict, Refused):
        code = f"0x{verdict.reason:02X} {verdict.reason.name.lower()}"
        return no("access", f"it may not {to} {subject}; it is told {code}", verdict.rule)
    return yes("access", f"it may {to} {subject}", verdict.rule)


def may_not_read(broker: Broker, session: Receiver, topic: str) -> str | None:
    """The rule that keeps messages of a topic from a session, whatever it subscribed to; None when none does."""
    judge = broker.routes.judge
    if judge is None or judge.may("read", session.user, session.client_id, topic):
        return None
    if isinstance(judge, Explains):
        return judge.explain("read", session.user, session.client_id, topic).rule
    return "the access control does not say by which rule"
