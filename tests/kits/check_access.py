"""A conformance kit for access: whatever implements ``tieline.core.ports.Access`` is done when ``check_access`` passes.

The implementation under test is told, in its own way, to let ``alice`` in, to let her publish to and subscribe below
``open/``, and to refuse everything else, each refusal carrying a rule.  Its verdicts may be pending: ``decide`` brings
those that are due to the broker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.kits.world import Client, World
from tieline.core.account import Drop
from tieline.core.broker import Broker
from tieline.core.ports import Access, Allowed, Login, Pending, Refused, Verdict
from tieline.wire.packets import Connack, Puback, Publish, Suback, Subscribe, Subscription
from tieline.wire.reason import Reason

#: Tells the broker every verdict that has become known, and the time.
Decide = Callable[[Broker, float], None]
Make = Callable[[], tuple[Access, Decide]]

ALICE = "alice"


class Question(NamedTuple):
    """What was asked of an access port."""

    what: str
    client_id: str
    subject: str


class LateAccess:
    """An access port that answers when the test says so."""

    is_open = False

    def __init__(self, *, late: frozenset[str] = frozenset({"connect", "publish", "subscribe"})) -> None:
        #: Which kinds of questions are answered later; the others are allowed at once.
        self.late = late
        #: Every question that was not answered at once.
        self.asked: list[Question] = []
        #: By token: what is not answered yet.
        self.pending: dict[int, Question] = {}

    def _ask(self, question: Question) -> Verdict:
        if question.what not in self.late:
            return Allowed("at once")
        self.asked.append(question)
        token = len(self.asked)
        self.pending[token] = question
        return Pending(token)

    def connect(self, login: Login) -> Verdict:
        """May this client connect?"""
        return self._ask(Question("connect", login.client_id, ""))

    def publish(self, login: Login, topic: str) -> Verdict:
        """May this client publish?"""
        return self._ask(Question("publish", login.client_id, topic))

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        """May this client subscribe?"""
        return self._ask(Question("subscribe", login.client_id, filter_))

    def answer(self, world: World, verdict: Allowed | Refused | None = None) -> Question:
        """Answer the oldest question, and let what it causes happen."""
        token, question = next(iter(self.pending.items()))
        del self.pending[token]
        world.broker.decided(token, verdict or Allowed("answered"), world.now)
        world.settle()
        return question


class Rules:
    """The reference implementation of the kit's rules, at once or later."""

    is_open = False

    def __init__(self, *, is_late: bool = False) -> None:
        self._is_late = is_late
        self._due: dict[int, Allowed | Refused] = {}
        self._token = 0

    def _answer(self, is_allowed: bool, rule: str) -> Verdict:
        verdict = Allowed(rule) if is_allowed else Refused(f"not by {rule}")
        if not self._is_late:
            return verdict
        self._token += 1
        self._due[self._token] = verdict
        return Pending(self._token)

    def connect(self, login: Login) -> Verdict:
        """Only alice."""
        return self._answer(login.username == ALICE, "alice may connect")

    def publish(self, login: Login, topic: str) -> Verdict:
        """Only below open/."""
        return self._answer(topic.startswith("open/"), "open/ may be written")

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        """Only below open/."""
        return self._answer(filter_.startswith("open/"), "open/ may be read")

    def decide(self, broker: Broker, now: float) -> None:
        """Answer everything that is due."""
        while self._due:
            token, verdict = self._due.popitem()
            broker.decided(token, verdict, now)


def check_access(make: Make) -> None:
    """Assert everything that the core relies on."""
    check_verdicts(make)
    check_effects(make)


def check_verdicts(make: Make) -> None:
    """Every verdict that is known at once carries the rule that decided."""
    access, _ = make()
    login = Login(client_id="a", username=ALICE, password=b"secret", listener="tcp", peer="1.2.3.4:5")
    stranger = Login(client_id="b", username=None, password=None, listener="tcp", peer="1.2.3.4:5")
    for verdict, is_allowed in (
        (access.connect(login), True),
        (access.connect(stranger), False),
        (access.publish(login, "open/a"), True),
        (access.publish(login, "closed/a"), False),
        (access.subscribe(login, "open/#"), True),
        (access.subscribe(login, "#"), False),
    ):
        if isinstance(verdict, Pending):
            continue
        assert verdict.rule, "a verdict says by which rule"
        assert isinstance(verdict, Allowed) == is_allowed, verdict
        if isinstance(verdict, Refused):
            assert verdict.reason >= Reason.UNSPECIFIED_ERROR


def check_effects(make: Make) -> None:
    """A broker lets in, accepts and delivers exactly what the rules allow."""
    access, decide = make()
    world = World(access=access)

    def settle() -> None:
        decide(world.broker, world.now)
        world.settle()

    alice = _connect(world, settle, "a", ALICE, Reason.SUCCESS)
    stranger = _connect(world, settle, "b", None, Reason.NOT_AUTHORIZED)
    assert stranger.closed

    wishes = tuple(Subscription(filter=filter_, qos=1) for filter_ in ("open/#", "#", "open/+", "closed"))
    alice.send(Subscribe(packet_id=1, subscriptions=wishes))
    settle()
    refused = Reason.NOT_AUTHORIZED
    alice.expect(Suback, packet_id=1, reasons=(1, refused, 1, refused))

    alice.send(
        Publish(topic="open/a", payload=b"yes", qos=1, packet_id=2),
        Publish(topic="closed/a", payload=b"no", qos=1, packet_id=3),
        Publish(topic="open/a", payload=b"yes", qos=1, packet_id=4),
    )
    settle()
    assert alice.find(Puback, packet_id=2).reason is Reason.SUCCESS
    assert alice.find(Puback, packet_id=3).reason is Reason.NOT_AUTHORIZED
    assert alice.find(Puback, packet_id=4).reason is Reason.SUCCESS
    assert [message.payload for message in alice.messages()] == [b"yes", b"yes"]
    assert world.broker.account.drops[Drop.DENIED] == 1


def _connect(world: World, settle: Callable[[], None], client_id: str, username: str | None, reason: Reason) -> Client:
    client = world.open()
    client.connect(client_id, username=username, password=b"secret" if username else None)
    settle()
    # a CONNACK that was pending is still in the inbox
    connack = client.expect(Connack) if client.inbox else client.connack
    assert connack.reason is reason
    return client
