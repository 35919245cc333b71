"""The instrument behind ``make chaos``: what it takes for wrong, what its cables do to bytes, and that it runs."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from tests.kits.patience import PATIENCE_S, until
from tests.robust.chaos.brokers import Broker, Disk
from tests.robust.chaos.cables import Cables
from tests.robust.chaos.clients import TOPICS, Sink, Source, Wrong, value_of
from tests.robust.chaos.faults import attempt, fill
from tests.robust.chaos.rounds import run
from tests.robust.chaos.storm import STEADY_GROWTH, Storm
from tests.robust.chaos.trend import trend
from tieline.wire.packets import Connack, Publish

TOPIC = TOPICS[0]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path, "b", 1, 2)
    yield broker
    broker.close()


def _message(flow: tuple[str, str, int], number: int, *, dup: bool = False, qos: int | None = None) -> Publish:
    said = {"by": flow[0], "qos": flow[2], "n": number, "v": value_of(flow, number), "pad": ""}
    return Publish(
        topic=flow[1], payload=json.dumps(said).encode(), qos=flow[2] if qos is None else qos, packet_id=1, dup=dup
    )


def _pair(broker: Broker, qos: int) -> tuple[Sink, Source, list[int]]:
    """A sink for what is above the median, a source, and the first numbers that are wanted."""
    source = Source(broker, "source", 5, qos, Random(1))
    flow = source.flow(TOPIC)
    sink = Sink(broker, "sink", 5, (("plant/#", 50.0),), {"source": source})
    return sink, source, [n for n in range(50) if value_of(flow, n) > 50.0]


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_comes_in_order_and_once_is_right(broker: Broker, qos: int) -> None:
    sink, source, numbers = _pair(broker, qos)
    flow = source.flow(TOPIC)
    sink.promise(flow, 0)
    for number in numbers:
        sink.take(_message(flow, number))
    assert sink.missing(flow, 50) == []


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_is_twice_late_unwanted_or_missing_is_wrong(broker: Broker, qos: int) -> None:
    sink, source, numbers = _pair(broker, qos)
    flow = source.flow(TOPIC)
    sink.promise(flow, numbers[1])
    sink.take(_message(flow, numbers[2]))
    for number, words in [
        (numbers[2], "came twice"),
        (numbers[0], f"came behind number {numbers[2]}"),
        (next(n for n in range(50) if n not in numbers), "is not wanted"),
    ]:
        with pytest.raises(Wrong, match=words):
            sink.take(_message(flow, number))
    with pytest.raises(Wrong, match="came with QoS"):
        sink.take(_message(flow, numbers[3], qos=(qos + 1) % 3))
    assert sink.missing(flow, numbers[3]) == [numbers[1]]
    assert sink.missing(("somebody", TOPIC, qos), 50) == [], "nothing was promised of it"


def test_who_has_moved_may_get_things_late_and_nothing_twice(broker: Broker, tmp_path: Path) -> None:
    sink, source, (one, two, three, *_) = _pair(broker, 2)
    flow, elsewhere = source.flow(TOPIC), Broker(tmp_path, "c", 3, 4)
    try:
        sink.is_known = True
        with pytest.raises(AssertionError, match="the session of sink was lost"):
            sink.session_lost()
        sink.move(elsewhere)
        assert sink.starts == broker.starts + elsewhere.starts
        sink.take(_message(flow, two))
        sink.take(_message(flow, one))
        with pytest.raises(Wrong, match="came twice"):
            sink.take(_message(flow, one))
        sink.session_lost()  # nobody could reach its old home
        sink.take(_message(flow, one))
        sink.forget()
        sink.forget()
        sink.take(_message(flow, three))
        with pytest.raises(Wrong, match="came behind"):
            sink.take(_message(flow, two))
        source.doubtful.add((TOPIC, two))  # sent to a new session once more
        sink.take(_message(flow, two))
    finally:
        elsewhere.close()


def test_who_was_not_told_of_a_new_session_subscribes_once_more(broker: Broker, tmp_path: Path) -> None:
    sink, source, _ = _pair(broker, 1)
    elsewhere = Broker(tmp_path, "c", 3, 4)
    welcome = Connack(session_present=True)
    try:
        sink.is_known = sink.is_subscribed = True
        assert not sink.is_anew_by(welcome)
        sink.move(elsewhere)
        for ends, is_anew in ((sink.refused, False), (sink.hang_up, True)):
            near, far = socket.socketpair()
            sink.sock = near
            ends()
            far.close()
            assert sink.is_anew_by(welcome) is is_anew
            assert not sink.is_anew_by(welcome), "it knows now"
        sink.promise(source.flow(TOPIC), 0)
        sink.session_lost()
        assert not sink.is_subscribed and sink.missing(source.flow(TOPIC), 50) == []
    finally:
        elsewhere.close()


def test_qos_1_may_come_again_where_the_protocol_says_so(broker: Broker) -> None:
    sink, source, (one, two, three, *_) = _pair(broker, 1)
    flow = source.flow(TOPIC)
    for number in (one, two, three):
        sink.take(_message(flow, number))
    sink.take(_message(flow, one, dup=True))
    source.again.add((TOPIC, two))
    sink.take(_message(flow, two))
    with pytest.raises(Wrong, match="came twice"):
        sink.take(_message(flow, three))
    broker.starts += 1
    sink.take(_message(flow, three))


def test_a_cable_is_cut_silenced_and_mended() -> None:
    cables = Cables()
    with socket.create_server(("127.0.0.1", 0)) as target, socket.create_server(("127.0.0.1", 0)) as probe:
        target.settimeout(PATIENCE_S)
        port = int(probe.getsockname()[1])
        probe.close()
        try:
            cables.open(1, port, int(target.getsockname()[1]))
            with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as one:
                other, _ = target.accept()
                other.settimeout(PATIENCE_S)
                cables.silence(1, is_forth=False)
                one.sendall(b"forth")
                other.sendall(b"back")
                assert other.recv(100) == b"forth"
                one.settimeout(0.1)
                with pytest.raises(TimeoutError):
                    one.recv(100)
                one.settimeout(PATIENCE_S)
                cables.mend(1)
                assert one.recv(100) == b"back"
                cables.cut(1, "dialler")
                with pytest.raises(ConnectionResetError):
                    one.recv(100)
                other.settimeout(0.1)
                with pytest.raises(TimeoutError):
                    other.recv(100)
                other.close()
            cables.mend(1)

            def crosses() -> bool:
                with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as again:
                    again.sendall(b"again")
                    with target.accept()[0] as far:
                        return far.recv(100) == b"again"

            until(crosses, "bytes cross again")
        finally:
            cables.close()


def _weighings(grown: Callable[[float], float], *, seconds: int = 600) -> list[tuple[float, int]]:
    """What a made-up broker holds, as it is weighed in a storm: uneven, and sometimes far too much."""
    random = Random(7)
    found = []
    for at in range(5, seconds, 25):
        uneven = random.gauss(0.0, 150_000.0) + (3_000_000 if random.random() < 0.1 else 0)
        found.append((at + random.uniform(0.0, 5.0), int(80e6 + grown(at) + uneven)))
    return found


def test_a_broker_that_grows_is_found_and_one_that_warms_up_is_not() -> None:
    leaking = trend(_weighings(lambda at: 6_000.0 * at))
    assert leaking is not None and leaking.grown > STEADY_GROWTH
    assert 5_000 < leaking.slope < 7_000
    for innocent in (
        lambda at: 0.0,
        lambda at: min(at, 120.0) * 100_000.0,  # caches that fill
        lambda at: 5e6 if at > 400.0 else 0.0,  # a table that doubles
        lambda at: -6_000.0 * at,
    ):
        found = trend(_weighings(innocent))
        assert found is not None and found.grown < STEADY_GROWTH, found
    assert trend(_weighings(lambda at: 6_000.0 * at, seconds=200)) is None, "too few to say anything"
    assert trend([]) is None


def test_a_fault_counts_if_it_happened_and_is_named_if_it_was_not_possible(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steady = Broker(tmp_path, "steady", 3, 4)
    later: list[float] = []
    storm = cast(
        "Storm",
        SimpleNamespace(
            random=Random(1), present=[steady, broker], steady=steady, faults=Counter(), not_possible=Counter(),
            tell=lambda text: None, later=lambda after_s, do: later.append(after_s),
        ),
    )  # fmt: skip
    try:
        attempt(storm, fill)
        monkeypatch.setattr(Broker, "is_running", True)
        for is_small in (False, True):
            monkeypatch.setattr(Disk, "is_small", is_small)
            monkeypatch.setattr(Disk, "fill", lambda disk: None)
            for _ in range(10):
                attempt(storm, fill)
    finally:
        monkeypatch.undo()
        steady.close()
    assert storm.faults == {"fill": 10} and len(later) == 10
    assert storm.not_possible == {
        "fill (no broker runs that it could befall)": 1,
        "fill (no file system of its own may be mounted for a broker)": 10,
    }
    assert broker.is_doomed and not steady.is_doomed


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2))
def test_joined_brokers_in_a_storm(tmp_path: Path, seed: int) -> None:
    assert "nothing wrong" in run(tmp_path, seed, seconds=60.0, brokers=4, tell=print)
