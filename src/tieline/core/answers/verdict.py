"""The verdict of the access rules on a client, whether it is here, away or not known at all, as a step of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tieline.core.answers.steps import Step, no, unknown, yes
from tieline.core.ports import Explains, Login, Pending, Refused

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.session import Session


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


def may_not_read(broker: Broker, session: Session, topic: str) -> str | None:
    """The rule that keeps messages of a topic from a session, whatever it subscribed to; None when none does."""
    judge = broker.routes.judge
    if judge is None or judge.may("read", session.user, session.client_id, topic):
        return None
    if isinstance(judge, Explains):
        return judge.explain("read", session.user, session.client_id, topic).rule
    return "the access control does not say by which rule"
