"""What befalls brokers, the cables between them and their clients: a function for each kind, which heals by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from tests.robust.chaos.brokers import Broker
from tests.robust.chaos.clients import Sink, Source
from tests.robust.chaos.storm import Cable, Storm
from tieline.overlay.strategies import STRATEGIES


class NotPossible(Exception):
    """A fault cannot happen here and now; the text says why."""


def kill(storm: Storm) -> None:
    """A broker, its writer or both die, or it is asked to stop; it is started again."""
    broker = _mortal(storm)
    how = storm.random.choices(["broker", "both", "writer", "stop"], [5, 5, 2, 2])[0]
    storm.tell(f"{broker.name} is ended: {how}")
    broker.kill(how)


def stop(storm: Storm) -> None:
    """A broker stands still, for less or more than others wait for it."""
    broker = _somebody(storm)
    for_s = storm.random.choice((storm.random.uniform(0.1, 2.0), storm.random.uniform(3.0, 8.0)))
    storm.tell(f"{broker.name} stands still for {for_s:.1f}")
    broker.stand_still()
    storm.later(for_s, broker.go_on)


def cut(storm: Storm) -> None:
    """A cable is cut; one end may not notice."""
    _cut(storm, storm.random.choice(storm.links), storm.random.uniform(0.05, 4.0))


def partition(storm: Storm) -> None:
    """Some brokers become an island."""
    names = [broker.name for broker in storm.present]
    island = set(storm.random.sample(names, storm.random.randint(1, len(names) - 1)))
    for_s = storm.random.uniform(0.5, 6.0)
    storm.tell(f"{', '.join(sorted(island))} are an island for {for_s:.1f}")
    for cable in storm.links:
        if len(island.intersection(cable.ends)) == 1:
            _cut(storm, cable, for_s)


def silence(storm: Storm) -> None:
    """Nothing passes in one direction, for less or more than it takes to notice."""
    cable, is_forth = storm.random.choice(storm.links), storm.random.random() < 0.5
    for_s = storm.random.choice((storm.random.uniform(0.1, 2.0), storm.random.uniform(3.0, 7.0)))
    storm.tell(f"{cable} is silent {'forth' if is_forth else 'back'} for {for_s:.1f}")
    storm.cables.silence(cable.number, is_forth=is_forth)
    _mend(storm, cable, for_s)


def slow(storm: Storm) -> None:
    """A cable carries little."""
    cable, rate = storm.random.choice(storm.links), storm.random.choice((2_000.0, 8_000.0, 30_000.0))
    for_s = storm.random.uniform(1.0, 6.0)
    storm.tell(f"{cable} carries {rate:.0f} B/s for {for_s:.1f}")
    storm.cables.slow(cable.number, rate)
    _mend(storm, cable, for_s)


def fill(storm: Storm) -> None:
    """A disk is full for a while."""
    broker, for_s = _mortal(storm), storm.random.uniform(1.0, 5.0)
    if not broker.disk.is_small:
        raise NotPossible("no file system of its own may be mounted for a broker")
    storm.tell(f"the disk of {broker.name} is full for {for_s:.1f}")
    broker.disk.fill()
    broker.is_doomed = True
    storm.later(for_s, partial(_empty, storm, broker))


def hang_up(storm: Storm) -> None:
    """A client's connection ends, and it comes back."""
    clients = [client for client in storm.clients() if client.is_connected]
    if not clients:
        raise NotPossible("no client is connected")
    client = storm.random.choice(clients)
    for_s = storm.random.choice((0.0, storm.random.uniform(0.1, 3.0)))
    storm.tell(f"{client.client_id} hangs up for {for_s:.1f}")
    client.hang_up()
    client.rest(for_s)


def move(storm: Storm) -> None:
    """A client comes back to another broker, where its session is to follow it."""
    clients = [client for client in storm.clients() if isinstance(client, Source | Sink)]
    if not _move(storm, storm.random.choice(clients)):
        raise NotPossible("there is no other broker of which all have heard")


def drain(storm: Storm) -> None:
    """A broker is emptied for a while: its clients go elsewhere, and the sessions of those that are away as well."""
    broker, for_s = _somebody(storm), storm.random.uniform(1.0, 5.0)
    storm.tell(f"{broker.name} is drained for {for_s:.1f}")
    broker.ask("drain", "--within", "0")
    for client in [client for client in storm.clients() if client.broker is broker]:
        if isinstance(client, Source | Sink):
            _move(storm, client)
    storm.later(for_s, partial(broker.ask, "drain", "--stop"))


def _move(storm: Storm, client: Source | Sink) -> bool:
    settled = [broker for broker in storm.present if broker.is_settled and not broker.is_leaving]
    others = [broker for broker in settled if broker is not client.broker]
    if others:
        target = storm.random.choice(others)
        storm.tell(f"{client.client_id} moves from {client.broker.name} to {target.name}")
        client.move(target)
    return bool(others)


def change_strategy(storm: Storm) -> None:
    """A broker chooses links in another way."""
    broker = _somebody(storm)
    broker.strategy = storm.random.choice(list(STRATEGIES))
    storm.tell(f"{broker.name} goes by {broker.strategy}")
    broker.is_doomed |= broker is not storm.steady  # before it is ready, the signal ends it
    broker.reload()


#: How often each happens, by comparison.
KINDS: Final[dict[Callable[[Storm], None], int]] = {
    kill: 6,
    stop: 3,
    cut: 6,
    partition: 2,
    silence: 4,
    slow: 2,
    fill: 1,
    hang_up: 5,
    move: 5,
    drain: 1,
    change_strategy: 2,
}


def befall(storm: Storm, seconds: float) -> None:
    """Faults for a while."""
    left = seconds
    kinds = list(KINDS)
    while left > 0:
        (do,) = storm.random.choices(kinds, [KINDS[kind] for kind in kinds])
        attempt(storm, do)
        wait_s = storm.random.choice((0.1, 0.5, 1.0, 2.0))
        storm.run_for(wait_s)
        left -= wait_s


def attempt(storm: Storm, do: Callable[[Storm], None]) -> None:
    """One fault, counted by what became of it."""
    name = do.__name__.replace("_", " ")
    try:
        do(storm)
    except NotPossible as reason:
        storm.not_possible[f"{name} ({reason})"] += 1
    else:
        storm.faults[name] += 1


def _somebody(storm: Storm, *spared: Broker) -> Broker:
    running = [broker for broker in storm.present if broker.is_running and not broker.is_stopped]
    if not (able := [broker for broker in running if broker not in spared]):
        raise NotPossible("no broker runs that it could befall")
    return storm.random.choice(able)


def _mortal(storm: Storm) -> Broker:
    """Somebody whose end is no matter: what the steady one holds is followed to the end."""
    return _somebody(storm, storm.steady)


def _cut(storm: Storm, cable: Cable, for_s: float) -> None:
    how = storm.random.choice(("both", "both", "dialler", "acceptor"))
    storm.tell(f"{cable} is cut for {for_s:.1f}, and noticed by {how}")
    storm.cables.cut(cable.number, how)
    _mend(storm, cable, for_s)


def _mend(storm: Storm, cable: Cable, for_s: float) -> None:
    storm.later(for_s, partial(storm.cables.mend, cable.number))


def _empty(storm: Storm, broker: Broker) -> None:
    broker.disk.empty()
    storm.tell(f"the disk of {broker.name} has room again")
