"""Random stories about a fleet: long sequences of plain actions that can be told again, and cut down when one fails.

Hypothesis spends most of its time on short stories in which little happens; a broker's faults lie behind hundreds of
steps.  So the steps are drawn by a seeded generator with weights, and since every action means something in any
state, a failing story is shortened by leaving actions out as long as it still fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from random import Random
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from tests.core.coherence import check_routes
from tests.core.device import EXPIRY_S, Device, Fleet
from tests.core.oracle import Message
from tests.kits.check_store import PromptStore
from tests.kits.world import World
from tieline.core import work
from tieline.core.routing import route
from tieline.match import trees
from tieline.wire.packets import Publish, Subscription

_DEVICES: Final = 4
_TOPICS: Final = ("a", "a/b", "b/c", "/", "$d/a")
_FILTERS: Final = ("a", "a/b", "a/#", "+/b", "+", "#", "b/+", "/#", "$d/#")
#: Nobody sees these but the members of groups: leading wildcards do not match them.
_SHARED_TOPICS: Final = ("$q/a", "$q/b")
_SHARED_FILTERS: Final = ("$share/g/$q/a", "$share/h/$q/b")
_WINDOWS: Final = (1, 2, 100)


class Setting(NamedTuple):
    """The kind of world a story happens in."""

    split: bool
    route_cache: int
    inflight: int
    #: The store keeps everything, so every fact is described.
    is_permanent: bool
    #: Every piece of work is cut into the smallest portions.
    is_impatient: bool


class Action(NamedTuple):
    """One step: a method of :class:`Play` and its arguments."""

    name: str
    values: dict[str, Any]

    def __repr__(self) -> str:
        return f"play.{self.name}({', '.join(f'{name}={value!r}' for name, value in self.values.items())})"


class Play:
    """Carries actions out, with the oracle watching."""

    def __init__(self, setting: Setting) -> None:
        world = World(
            store=PromptStore() if setting.is_permanent else None,
            split=setting.split,
            route_cache=setting.route_cache,
            inflight=setting.inflight,
        )
        self.fleet = Fleet(world, _DEVICES)
        self.sent = 0
        for device in self.fleet.devices:
            device.connect(5, is_clean=True, is_durable=True, window=100)

    def online(self, number: int) -> Device | None:
        """A connected device: the one asked for or the next one that is."""
        around = self.fleet.devices[number:] + self.fleet.devices[:number]
        return next((device for device in around if device.client is not None), None)

    def connect(self, number: int, version: int, is_clean: bool, is_durable: bool, window: int) -> None:
        device = self.fleet.devices[number]
        if device.client is not None and device.expiry_s == 0:
            # the take-over ends the old session first: the new one begins afresh
            self.fleet.oracle.end(device.client_id)
        device.connect(version, is_clean=is_clean, is_durable=is_durable, window=window)

    def resume(self, number: int, window: int) -> None:
        device = self.fleet.devices[number]
        if device.client is None:
            device.connect(5, is_clean=False, is_durable=True, window=window)

    def lose(self, number: int, says_goodbye: bool) -> None:
        self.fleet.devices[number].lose(says_goodbye=says_goodbye)

    def subscribe(self, number: int, filter_: str, qos: int, no_local: bool, handling: int, identifier: int) -> None:
        device = self.online(number)
        if device is None or device.client is None:
            return
        wish = Subscription(filter=filter_, qos=qos)
        if device.client.version == 4:
            identifier = 0
        elif not filter_.startswith("$share"):
            wish.no_local, wish.retain_handling = no_local, handling
        self.fleet.oracle.subscribe(device.client_id, wish, identifier)
        device.subscribe(wish, identifier)

    def share(self, number: int, filter_: str) -> None:
        self.subscribe(number, filter_, qos=2, no_local=False, handling=0, identifier=0)

    def unsubscribe(self, number: int, filter_: str) -> None:
        device = self.online(number)
        if device is not None:
            self.fleet.oracle.unsubscribe(device.client_id, filter_)
            device.unsubscribe(filter_)

    def publish(self, number: int, topic: str, qos: int, retain: bool, count: int) -> None:
        device = self.online(number)
        if device is None:
            return
        for _ in range(count):
            self.sent += 1
            message = Message(device.client_id, topic, b"%d" % self.sent, qos, retain)
            owed = self.fleet.accept(message)
            device.publish(message)
            self._look_for(message.payload, [client_id for client_id, level in owed.items() if level == 0])

    def _look_for(self, payload: bytes, receivers: list[str]) -> None:
        """A QoS 0 message is with every connected receiver that reads, however full its window is."""
        for device in self.fleet.devices:
            if device.client_id in receivers and device.client is not None and device.client.is_reading:
                inbox = [packet.payload for packet in device.client.inbox if isinstance(packet, Publish)]
                assert payload in inbox, f"{device} did not get {payload!r} at once"

    def process(self, number: int, count: int, answers: bool) -> None:
        device = self.online(number)
        if device is not None:
            device.process(count)
            if answers:
                device.acknowledge()

    def stall(self, number: int) -> None:
        client = self.fleet.devices[number].client
        if client is not None:
            client.stall()

    def read(self, number: int) -> None:
        client = self.fleet.devices[number].client
        if client is not None:
            client.resume()

    def advance(self, seconds: int) -> None:
        self.fleet.advance(seconds)

    def finish(self) -> None:
        """Everybody reads everything and leaves; nothing is owed and nothing is left."""
        self.fleet.finish()
        broker = self.fleet.world.broker
        assert broker.queued_bytes == 0
        assert not any(session.inflight or session.inbound for session in broker.sessions.values())
        for device in self.fleet.devices:
            device.lose(says_goodbye=True)
        self.fleet.advance(EXPIRY_S)
        assert all(session.expiry_s > EXPIRY_S for session in broker.sessions.values())
        assert broker.account.closed.keys() <= {"disconnect", "connection_lost", "taken_over"}
        assert broker.account.drops.keys() <= {"offline", "session_ended", "no_member", "unconfirmed"}


def invent(random: Random, length: int) -> tuple[Setting, list[Action]]:
    """A story: mostly messages, with trouble in between."""
    one_of = random.choice

    def flag(chance: float = 0.5) -> bool:
        return random.random() < chance

    setting = Setting(
        split=flag(0.25),
        route_cache=one_of((0, 1, 1_000)),
        inflight=one_of(_WINDOWS),
        is_permanent=flag(0.3),
        is_impatient=flag(0.3),
    )

    makers: dict[str, tuple[int, Callable[[], dict[str, Any]]]] = {
        "publish": (
            30,
            lambda: {
                "topic": one_of(_TOPICS if flag(0.7) else _SHARED_TOPICS),
                "qos": one_of((0, 1, 1, 2, 2)),
                "retain": flag(0.2),
                "count": random.randint(1, 4),
            },
        ),
        "process": (20, lambda: {"count": random.randint(1, 12), "answers": flag(0.8)}),
        "subscribe": (
            8,
            lambda: {
                "filter_": one_of(_FILTERS),
                "qos": random.randint(0, 2),
                "no_local": flag(0.2),
                "handling": random.randint(0, 2),
                "identifier": random.randint(0, 3),
            },
        ),
        "share": (3, lambda: {"filter_": one_of(_SHARED_FILTERS)}),
        "unsubscribe": (3, lambda: {"filter_": one_of(_FILTERS + _SHARED_FILTERS)}),
        "lose": (8, lambda: {"says_goodbye": flag(0.3)}),
        "resume": (8, lambda: {"window": one_of(_WINDOWS)}),
        "connect": (
            3,
            lambda: {
                "version": one_of((4, 5)),
                "is_clean": flag(0.3),
                "is_durable": flag(0.8),
                "window": one_of(_WINDOWS),
            },
        ),
        "stall": (3, dict),
        "read": (4, dict),
        "advance": (1, lambda: {"seconds": one_of((1, EXPIRY_S - 1, EXPIRY_S))}),
    }
    weights = [weight for weight, _ in makers.values()]
    actions: list[Action] = []
    for name in random.choices(list(makers), weights, k=length):
        values = makers[name][1]()
        if name != "advance":
            values = {"number": random.randrange(_DEVICES), **values}
        actions.append(Action(name, values))
    return setting, actions


def tell(setting: Setting, actions: list[Action]) -> Exception | None:
    """Carry a story out to its end; what went wrong, if anything did."""
    with impatience() if setting.is_impatient else nullcontext():
        return _tell(setting, actions)


@contextmanager
def impatience() -> Iterator[None]:
    """A broker that stops after every packet that caused work, every node of a search and every receiver."""
    with (
        patch.object(work, "WORK_PER_TURN", 0),
        patch.object(trees, "PAUSE", 1),
        patch.object(route, "MANY_AWAY", 0),
    ):
        yield


def _tell(setting: Setting, actions: list[Action]) -> Exception | None:
    try:
        play = Play(setting)
        for action in actions:
            getattr(play, action.name)(**action.values)
            check_routes(play.fleet.world.broker)
            assert play.fleet.world.broker.sessions.keys() == play.fleet.oracle.sessions.keys()
        play.finish()
    except Exception as error:  # noqa: BLE001 - whatever it is, the story is what matters
        return error
    return None


def shorten(setting: Setting, actions: list[Action]) -> list[Action]:
    """A part of a failing story that still fails, and none of whose actions can be left out."""
    size = len(actions) // 2
    while size:
        for shorter in _without(actions, size):
            if tell(setting, shorter) is not None:
                actions = shorter
                break
        else:
            size //= 2
    return actions


def _without(actions: list[Action], size: int) -> Iterator[list[Action]]:
    for start in range(0, len(actions), size):
        yield actions[:start] + actions[start + size :]
