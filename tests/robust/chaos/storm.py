"""A graph of brokers with their clients, what befalls them, and whether everybody got what was promised."""

from __future__ import annotations

import heapq
import selectors
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic
from typing import Final

from tests.robust.chaos.brokers import Broker
from tests.robust.chaos.cables import Cables
from tests.robust.chaos.clients import WISHES, Member, Prober, Sink, Source, Wrong
from tests.robust.chaos.trend import trend
from tests.robust.remembering import Flow

#: How long everything may take to come to rest when nothing is wrong any more; the machine may be busy.
SETTLE_S: Final = 120.0
#: Bytes that a broker may hold beyond what it held when everything had come to rest for the first time in its life.
GROWTH: Final = 24 << 20
#: Bytes by which the broker that runs all the time may grow steadily, after its warm-up.
STEADY_GROWTH: Final = 2 << 20
#: How long nothing may come any more before everything counts as settled.
_QUIET_S: Final = 1.0
_CALL_S: Final = 0.2
_STEP_S: Final = 0.02
#: Messages of one publisher in a second, about.
_RATE: Final = 12.0


class Failed(Exception):
    """Something is wrong; the text is its story."""


class Cable:
    """What joins two brokers."""

    def __init__(self, number: int, dialler: Broker, acceptor: Broker) -> None:
        self.number = number
        self.dialler = dialler
        self.acceptor = acceptor

    @property
    def ends(self) -> tuple[str, str]:
        return self.dialler.name, self.acceptor.name

    def __repr__(self) -> str:
        return "-".join(self.ends)


class Storm:
    """Everything that runs."""

    def __init__(self, folder: Path, seed: int, brokers: int) -> None:
        self.random = Random(seed)
        self._folder = folder
        self._began = monotonic()
        self.story: list[str] = []
        self.cables = Cables()
        self.brokers: dict[str, Broker] = {}
        self.links: list[Cable] = []
        self.sources: dict[str, Source] = {}
        self.sinks: dict[str, Sink] = {}
        self.probers: dict[str, Prober] = {}
        #: What comes back to its senses later.
        self._agenda: list[tuple[float, int, Callable[[], object]]] = []
        self._order = count()
        self._names = count(1)
        self._numbers = count(1)
        self._published_at = monotonic()
        #: How many faults there were, by their names; and how many were not possible, by their names and reasons.
        self.faults: Counter[str] = Counter()
        self.not_possible: Counter[str] = Counter()
        #: Brokers that have left, and what asks the others to forget them.
        self._to_be_forgotten: dict[str, subprocess.Popen[bytes] | None] = {}
        #: What the steady broker held whenever everything had come to rest.
        self.weighed: list[tuple[float, int]] = []
        for _ in range(brokers):
            self.add()
        more = self.random.randint(1, brokers - 1)
        for _ in range(more):
            one, other = self.random.sample(list(self.brokers.values()), 2)
            if not any({one.name, other.name} == set(link.ends) for link in self.links):
                self._join(one, other)
        for broker in self.brokers.values():
            broker.start()

    # -- brokers and clients

    def tell(self, text: str) -> None:
        """Add to the story."""
        self.story.append(f"{monotonic() - self._began:8.3f}  {text}")

    def add(self) -> Broker:
        """One more broker, joined with one that was there before, and its clients."""
        name = f"b{next(self._names)}"
        port, peer_port = _free_ports(2)
        broker = Broker(self._folder, name, port, peer_port)
        others = [other for other in self.brokers.values() if not other.has_left]
        self.brokers[name] = broker
        if others:
            self._join(broker, self.random.choice(others))
        for qos in (0, 1, 2):
            source = Source(broker, f"{name}-from-{qos}", self.random.choice((4, 5)), qos, self.random)
            self.sources[source.client_id] = source
        self.probers[name] = Prober(broker)
        for number in (1, 2):
            wishes = self.random.sample(WISHES, self.random.randint(1, 3))
            sink = Sink(broker, f"{name}-to-{number}", self.random.choice((4, 5)), wishes, self.sources)
            self.sinks[sink.client_id] = sink
            self.tell(f"{sink.client_id} wants {', '.join(wish.filter for wish in sink.wishes())}")
        return broker

    def _join(self, dialler: Broker, acceptor: Broker) -> None:
        cable = Cable(next(self._numbers), dialler, acceptor)
        self.links.append(cable)
        (port,) = _free_ports(1)
        self.cables.open(cable.number, port, acceptor.peer_port)
        dialler.dials.append(port)
        self.tell(f"{dialler.name} dials {acceptor.name}")

    @property
    def steady(self) -> Broker:
        """The first one: nothing ends it, so that what it holds can be followed from the beginning to the end."""
        return next(iter(self.brokers.values()))

    @property
    def present(self) -> list[Broker]:
        """The brokers that have not left."""
        return [broker for broker in self.brokers.values() if not broker.has_left]

    def clients(self) -> Iterator[Member]:
        """Those of brokers that have not left, and are not about to."""
        for client in (*self.sources.values(), *self.sinks.values(), *self.probers.values()):
            if not client.broker.is_leaving:
                yield client

    def join(self) -> None:
        """A new broker comes, in the middle of everything; it is promised something when all has settled."""
        self.add().start()

    def leave(self) -> Broker | None:
        """A broker that nobody needs leaves for ever: its clients have ended their sessions, and others forget it."""
        able = [broker for broker in self.present if broker is not self.steady and self._holds_without(broker)]
        if not able or len(self.present) <= 3:
            return None
        broker = self.random.choice(able)
        self.tell(f"{broker.name} is going to leave")
        clients = [client for client in self.clients() if client.broker is broker]
        broker.is_leaving = True
        for client in clients:
            client.end_session()
        return broker

    def remove(self, broker: Broker) -> None:
        """It has left."""
        self.tell(f"{broker.name} leaves")
        broker.has_left = True
        broker.kill("stop")
        broker.wait()
        self.links = [link for link in self.links if broker.name not in link.ends]
        for client in (*self.sources.values(), *self.sinks.values(), *self.probers.values()):
            if client.broker is broker:
                client.hang_up()

    def forget(self, broker: Broker) -> None:
        """Somebody says that it does not come back, and says so again once all is well: one may not have heard it."""
        able = [other for other in self.present if other.is_running and not other.is_stopped]
        if able:
            self.random.choice(able).ask("net", "forget", broker.name)
        self._to_be_forgotten[broker.name] = None

    def _all_forgotten(self) -> bool:
        """Ask all for it until they have forgotten those that have left; whether they have."""
        for name, verb in list(self._to_be_forgotten.items()):
            if verb is None or verb.poll():
                self._to_be_forgotten[name] = self.steady.ask("net", "forget", name)
            elif verb.poll() == 0:
                del self._to_be_forgotten[name]
        return not self._to_be_forgotten

    def _holds_without(self, broker: Broker) -> bool:
        """Whether all others are joined without it."""
        names = {other.name for other in self.present} - {broker.name}
        found: set[str] = set()
        front = [min(names)]
        while front:
            name = front.pop()
            if name not in found:
                found.add(name)
                front += [end for link in self.links if name in link.ends for end in link.ends if end in names]
        return found == names

    def later(self, after_s: float, do: Callable[[], object]) -> None:
        """Do something in a while."""
        heapq.heappush(self._agenda, (monotonic() + after_s, next(self._order), do))

    # -- running

    def run_for(self, seconds: float) -> None:
        """Let clients publish and take for a while."""
        until = monotonic() + seconds
        while monotonic() < until:
            self._step(publishes=True)

    def _step(self, *, publishes: bool) -> None:
        now = monotonic()
        while self._agenda and self._agenda[0][0] <= now:
            heapq.heappop(self._agenda)[2]()
        self._supervise()
        connected = [client for client in self.clients() if client.is_connected or self._reconnect(client)]
        due = (now - self._published_at) * _RATE
        self._published_at = now
        for client in connected:
            if publishes and isinstance(client, Source) and client.has_room:
                client.publish(int(due) + (self.random.random() < due % 1))
            client.send()
        self._read(connected)

    def _read(self, connected: list[Member]) -> None:
        with selectors.DefaultSelector() as selector:
            for client in connected:
                if client.sock is not None:
                    selector.register(client.sock, selectors.EVENT_READ, client)
            if not selector.get_map():
                selector.select(_STEP_S)
            for key, _ in selector.select(_STEP_S):
                client = key.data
                try:
                    client.read()
                except Wrong as wrong:
                    self.fail(
                        f"{_name(wrong.flow, wrong.number)} {wrong} at {client.client_id}", wrong.flow, wrong.number
                    )
                except AssertionError as error:
                    self.fail(str(error))

    def _reconnect(self, client: Member) -> bool:
        now = monotonic()
        if now < client.rests_until or client.broker.is_down or client.broker.is_stopped:
            return False
        client.rests_until = now + 0.2
        try:
            client.connect(client.broker.port)
        except OSError:
            client.hang_up()
            return False
        return True

    def _supervise(self) -> None:
        """A broker that has ended is started again; whoever ends without a reason has a fault."""
        for broker in self.present:
            code = broker.ended
            if code is None or broker.is_down:
                continue
            if not broker.is_doomed:
                self.fail(f"{broker.name} has ended by itself with {code}")
            broker.wait()
            back_s = self.random.choice((0.0, 0.5, 1.0, 5.0))
            self.tell(f"{broker.name} is no more ({code}), back in {back_s}")
            self.later(back_s, broker.start)

    # -- judging

    def settle(self) -> None:
        """With nothing wrong any more, see everything arrive, and everybody be promised everything from now on."""
        deadline = monotonic() + SETTLE_S
        quiet_since, taken, called_at = monotonic(), -1, 0.0
        for prober in self.probers.values():
            prober.heard.clear()
        while True:
            self._step(publishes=False)
            now = monotonic()
            if now - called_at > _CALL_S:
                called_at = now
                for prober in self.probers.values():
                    prober.call()
            found = sum(sink.taken for sink in self.sinks.values())
            is_forgotten = bool(self._agenda) or self._all_forgotten()
            if found != taken or not is_forgotten:
                quiet_since, taken = now, found
            lost = self._lost()
            waits = [client.client_id for client in self.clients() if not self._is_settled(client)]
            if not lost and not waits and not self._agenda and now - quiet_since > _QUIET_S:
                break
            if now > deadline:
                if lost:
                    sink, flow, number, all_ = lost[0]
                    others = f"{all_ - 1} others, and {len(lost) - 1} other flows somewhere"
                    self.fail(f"{_name(flow, number)} is missing at {sink}, with {others}", flow, number)
                waits += [f"{name}, which is to be forgotten" for name in self._to_be_forgotten]
                self.fail(f"everything has to come to rest, and these do not: {waits}")
        self.tell("everything has arrived")
        self.weighed.append((now - self._began, self.steady.own_bytes))
        for source in self.sources.values():
            for topic, number in source.sent.items():
                for each in self.sinks.values():
                    each.promise(source.flow(topic), number)
            source.forget()
        for each in self.sinks.values():
            each.forget()
        for broker in self.brokers.values():
            broker.is_settled = True
            for trouble in broker.troubles():
                self.fail(trouble)
            if not broker.has_left and (grown := broker.weigh()) > GROWTH:
                self.fail(
                    f"{broker.name} has grown by {grown >> 20} MiB since everything was settled for the first time"
                )

    def judge_memory(self) -> str:
        """Whether the steady broker has grown from the warm-up to the end, in words."""
        found = trend(self.weighed)
        if self.steady.starts != 1:
            self.fail(f"{self.steady.name} was to run all the time, and was started {self.steady.starts} times")
        if found is None:
            return f"the memory of {self.steady.name} was weighed too few times to be judged"
        if found.grown > STEADY_GROWTH:
            series = ", ".join(f"{held / 1e6:.2f} at {at:.0f} s" for at, held in self.weighed)
            self.fail(f"{self.steady.name} grows: {found}; in MB: {series}")
        return f"{self.steady.name}, which ran all the time, held {found}"

    def _is_settled(self, client: Member) -> bool:
        if isinstance(client, Prober):
            return client.heard >= {broker.name for broker in self.present}
        if isinstance(client, Source):
            return client.is_settled and client.is_welcome
        return isinstance(client, Sink) and client.is_subscribed and client.is_welcome

    def _lost(self) -> list[tuple[str, Flow, int, int]]:
        """What somebody should have got: the first of each flow at each sink, and how many there are in all."""
        lost = []
        for source in self.sources.values():
            if not source.qos:
                continue
            for topic, sent in source.sent.items():
                for sink in self.sinks.values():
                    if not sink.broker.has_left:
                        missing = sink.missing(source.flow(topic), sent)
                        if missing:
                            lost.append((sink.client_id, source.flow(topic), missing[0], len(missing)))
        return lost

    def fail(self, text: str, flow: Flow | None = None, number: int = 0) -> None:
        """Something is wrong: its story."""
        story = [*self.story]
        if flow is not None and (source := self.sources.get(flow[0])) is not None:
            at = source.sent_at.get((flow[1], number))
            when = "before everything was last settled" if at is None else f"at {at - self._began:.3f}"
            again = "and again" if (flow[1], number) in source.again else "once"
            story.append(f"{_name(flow, number)} was sent {again}, first {when}")
            for sink in self.sinks.values():
                if sink.client_id in text:
                    story += [
                        f"{at - self._began:8.3f}  {sink.client_id} gets number {other}"
                        for at, this, other in sink.recent
                        if this == flow
                    ]
        concerned = [client for client in self.clients() if client.client_id in text]
        for client in concerned:
            state = ["not connected", "not let in", "let in"][client.is_connected + client.is_welcome]
            story.append(f"{client.client_id} is at {client.broker.name}, after {', '.join(client.visited)}: {state}")
        homes = {name for client in concerned for name in (client.broker.name, *client.visited)}
        for broker in [broker for broker in self.brokers.values() if flow is None or broker.name in homes]:
            if broker.log.exists():
                story += [
                    f"{broker.name}: {line}" for line in broker.log.read_text(errors="replace").splitlines()[-15:]
                ]
        raise Failed("\n".join([*story, f"{monotonic() - self._began:8.3f}  WRONG: {text}"]))

    def close(self) -> None:
        """Leave nothing behind."""
        for client in (*self.sources.values(), *self.sinks.values(), *self.probers.values()):
            client.hang_up()
        for broker in self.brokers.values():
            broker.close()
        self.cables.close()


def _name(flow: Flow, number: int) -> str:
    publisher, topic, qos = flow
    return f"{topic} number {number} of {publisher} with QoS {qos}"


def _free_ports(number: int) -> list[int]:
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports
