"""Honest clients of joined brokers: publishers of numbered measurements, and subscribers that judge what they get."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from random import Random
from time import monotonic
from typing import Final
from zlib import crc32

from tests.robust.chaos.brokers import Broker
from tests.robust.remembering import WINDOW, Client, Flow, Publisher, Subscriber
from tieline.wire.packets import Connack, Disconnect, Publish, Subscription
from tieline.wire.topics import matches

TOPICS: Final = tuple(f"plant/{area}/{what}" for area in "abc" for what in ("power", "volts"))
#: A filter, and the value above which its messages are wanted; None takes everything.
Wish = tuple[str, float | None]
WISHES: Final[Sequence[Wish]] = (
    ("plant/#", None),
    ("plant/+/power", None),
    ("plant/a/+", None),
    ("plant/b/volts", None),
    ("plant/+/power", 50.0),
    ("plant/c/volts", 80.0),
    ("+/b/power", 20.0),
)


class Wrong(Exception):
    """Somebody got what it should not have got, or in a wrong order; the flow and the number are of the message."""

    def __init__(self, text: str, flow: Flow, number: int) -> None:
        super().__init__(text)
        self.flow = flow
        self.number = number


def value_of(flow: Flow, number: int) -> float:
    """What a message measures."""
    return float(crc32(f"{flow} {number}".encode()) % 100)


class Member(Client):
    """What publishers and subscribers have in common: a broker, and a time at which they come back to it."""

    broker: Broker
    rests_until = 0.0
    #: Since everything was last settled it has moved from one broker to another: what was on its way from one that is
    #: out of reach may come late.
    has_moved = False
    #: And its session could not be fetched, since nobody could reach it: nothing is promised until all is settled, and
    #: what its old home had for it may come once more after that.
    is_anew = was_anew = False

    #: It has moved, and then a connection ended before CONNACK: a new session may have begun, of which it was not told.
    is_untold = False

    def hang_up(self) -> None:
        """The connection is gone."""
        self.is_untold |= self.is_connected and not self.is_welcome and self.has_moved
        super().hang_up()

    def refused(self) -> None:
        """It was not let in, so no session has begun."""
        super().hang_up()

    def is_anew_by(self, connack: Connack) -> bool:
        """Also a session that is there may be another one."""
        is_anew = not connack.session_present or self.is_untold
        self.is_untold = False
        return is_anew

    def move(self, broker: Broker) -> None:
        """Come back to another broker."""
        self.hang_up()
        self.visited = {**self.visited, self.broker.name: self.broker}
        self.broker = broker
        self.has_moved = True

    #: By name, the brokers where it was; each of their restarts may repeat what has QoS 1.
    visited: Mapping[str, Broker] = {}

    @property
    def starts(self) -> int:
        """How often brokers were started where it was."""
        return sum(broker.starts for broker in {**self.visited, self.broker.name: self.broker}.values())

    def session_lost(self) -> None:
        """Only one that has moved may have to begin anew."""
        if not self.has_moved:
            super().session_lost()
        self.is_anew = True

    def rest(self, for_s: float) -> None:
        """Come back later."""
        self.rests_until = monotonic() + for_s

    def settled(self) -> None:
        """Everything has arrived."""
        self.was_anew, self.has_moved, self.is_anew = self.is_anew, False, False

    def end_session(self) -> None:
        """Nothing is to be kept for it any more."""
        self.hang_up()
        self.is_kept = self.is_known = False
        self.connect(self.broker.port)
        self.send(Disconnect())


class Source(Member, Publisher):
    """A publisher at one broker, whose messages say by JSON which they are."""

    def __init__(self, broker: Broker, client_id: str, version: int, qos: int, random: Random) -> None:
        super().__init__(client_id, version, qos, tuple(random.sample(TOPICS, 2)))
        self.broker = broker
        self._random = random
        #: Messages that it has sent to a new session, not knowing what had become of them in the old one.
        self.doubtful: set[tuple[str, int]] = set()
        #: Messages that were sent more than once, since everything was last settled.
        self.again: set[tuple[str, int]] = set()
        #: When each message was first sent, since everything was last settled.
        self.sent_at: dict[tuple[str, int], float] = {}

    def flow(self, topic: str) -> Flow:
        """Which messages are in an order."""
        return self.client_id, topic, self.qos

    def write(self, topic: str, number: int) -> bytes:
        self.sent_at[topic, number] = monotonic()
        pad = "x" * self._random.choice((0, 0, 0, 40, 400, 4_000))
        said = {"by": self.client_id, "qos": self.qos, "n": number, "v": value_of(self.flow(topic), number), "pad": pad}
        return json.dumps(said).encode()

    def number_of(self, message: Publish) -> int:
        return int(json.loads(message.payload)["n"])

    def session_lost(self) -> None:
        super().session_lost()
        self.doubtful |= {(message.topic, self.number_of(message)) for message in self._open.values() if message}

    def welcomed(self) -> None:
        self.again |= {(message.topic, self.number_of(message)) for message in self._open.values() if message}
        super().welcomed()

    def publish(self, count: int) -> None:
        if self.qos:
            super().publish(count)
        elif self.is_welcome:
            for _ in range(count):
                topic = self._random.choice(self.topics)
                number = self.sent[topic]
                self.sent[topic] += 1
                self.send(Publish(topic=topic, payload=self.write(topic, number), qos=0))

    @property
    def assured(self) -> int:
        """How many messages were acknowledged to it."""
        return sum(number + 1 for number in self.acknowledged.values())

    @property
    def has_room(self) -> bool:
        """It may publish more."""
        return len(self._open) < WINDOW

    def forget(self) -> None:
        """Everything is settled: nobody will ask for it again."""
        self.again.clear()
        self.sent_at.clear()
        self.settled()


class Sink(Member, Subscriber):
    """A subscriber at one broker, with some filters and conditions; it says at once what is wrong."""

    def __init__(  # what it wants, and whose messages it gets
        self, broker: Broker, client_id: str, version: int, wishes: Sequence[Wish], sources: dict[str, Source]
    ) -> None:
        super().__init__(client_id, version, 2, "")
        self.broker = broker
        self._sources = sources
        self._wishes = wishes
        #: By flow, the first number that it must get; what came before may come.
        self.promised: dict[Flow, int] = {}
        #: By flow, the numbers that came since everything was last settled, and in which start of the broker.
        self.since: dict[Flow, dict[int, int]] = defaultdict(dict)
        #: What came last, with the time, for the story.
        self.recent: deque[tuple[float, Flow, int]] = deque(maxlen=200)
        self._last: dict[Flow, int] = {}
        self.taken = 0
        #: Those among them that came once more, where the protocol allows it.
        self.taken_again = 0

    def session_lost(self) -> None:
        super().session_lost()
        # a new session: it subscribes again, and gets what comes from then on
        self.is_subscribed = False
        self._received.clear()
        self.promised.clear()

    def wishes(self) -> tuple[Subscription, ...]:
        return tuple(
            Subscription(filter=filter_ if least is None else f"{filter_}?v>{least:g}", qos=self.qos)
            for filter_, least in self._wishes
        )

    def wants(self, flow: Flow, number: int) -> bool:
        """Whether a message is among what it has subscribed to."""
        value = value_of(flow, number)
        return any(matches(filter_, flow[1]) and (least is None or value > least) for filter_, least in self._wishes)

    def take(self, message: Publish) -> None:
        said = json.loads(message.payload)
        flow, number = (said["by"], message.topic, said["qos"]), said["n"]
        self.taken += 1
        if not self.wants(flow, number):
            raise Wrong("is not wanted", flow, number)
        if message.qos != flow[2]:
            raise Wrong(f"came with QoS {message.qos}", flow, number)
        self.recent.append((monotonic(), flow, number))
        seen, source = self.since[flow], self._sources[flow[0]]
        is_doubtful = self.is_anew or self.was_anew or (flow[1], number) in source.doubtful
        if number in seen:
            # a client gets a message with QoS 1 before the commit without which it is delivered once more
            is_new = self.starts > seen[number]
            is_again = message.dup or is_new or (flow[1], number) in source.again
            if not (flow[2] == 1 and is_again) and not is_doubtful:
                raise Wrong("came twice", flow, number)
            self.taken_again += 1
        elif number <= self._last.get(flow, -1) and not (self.has_moved or source.has_moved or is_doubtful):
            raise Wrong(f"came behind number {self._last[flow]}", flow, number)
        else:
            self._last[flow] = max(number, self._last.get(flow, -1))
        seen[number] = self.starts

    def missing(self, flow: Flow, count: int) -> list[int]:
        """The numbers below ``count`` that it must get, and has not got."""
        seen = self.since[flow]
        first = self.promised.get(flow, count)
        return [number for number in range(first, count) if number not in seen and self.wants(flow, number)]

    def promise(self, flow: Flow, number: int) -> None:
        """From now on it gets everything from this number on."""
        self.promised[flow] = number

    def forget(self) -> None:
        """Everything is settled: what comes now is new."""
        self.since.clear()
        self.settled()


class Prober(Member, Subscriber):
    """Tells others that its broker is there, and hears of theirs."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(f"{broker.name}-probe", 5, 0, "probe/+")
        self.broker = broker
        self.heard: set[str] = set()

    def call(self) -> None:
        """Have the others hear of the broker."""
        if self.is_welcome:
            self.send(Publish(topic=f"probe/{self.broker.name}", payload=b""))

    def take(self, message: Publish) -> None:
        self.heard.add(message.topic.rpartition("/")[2])
