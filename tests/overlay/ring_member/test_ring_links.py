"""Links between brokers of a ring: in order and once over as many connections as it takes, and bounded."""

from __future__ import annotations

from random import Random

import pytest

from tieline.overlay.frames.fields import put, put_bytes
from tieline.overlay.frames.frame import Kind, frame
from tieline.overlay.ring.events import Event, Sent
from tieline.overlay.ring.identifiers import identifier_of
from tieline.overlay.ring.messages import Behind, Data, Echo, Peer, decode, encode
from tieline.overlay.ring_member import links as module
from tieline.overlay.ring_member.frames import RingHello
from tieline.overlay.ring_member.links import RingLinks

MARK = b"12345678"


def address(name: str) -> str:
    return f"peer://127.0.0.1:{7000 + ord(name)}"


def peer(name: str) -> Peer:
    return Peer(identifier_of(name), address(name))


def data(text: bytes, lane: int = 27) -> bytes:
    sent = (Sent(0, Event("t", text)),)
    return encode(Data(1, 1, lane, 1, 1, 0, 1, 1, (), sent))


class End:
    """One broker with its links; what the ring hears is written down."""

    def __init__(self, name: str, life: int = 1, mark: bytes = MARK) -> None:
        self.name = name
        self.came_: list[bytes] = []
        self.back: list[tuple[Peer, bytes, bool]] = []
        self.renewals: list[Peer] = []
        self.takes = True
        self.is_busy = False
        self.links = RingLinks(name, life, mark, self, patience_s=5.0, longest=1_000, spend=lambda _units: self.is_busy)
        self.links.address = address(name)

    def came(self, peer: Peer, data: bytes, now: float) -> bool:
        self.came_.append(data)
        return self.takes

    def returned(self, peer: Peer, data: bytes, sent: float, now: float, *, may_have_come: bool) -> None:
        self.back.append((peer, data, may_have_come))

    def renewed(self, peer: Peer, now: float) -> None:
        self.renewals.append(peer)

    def met(self, peer: Peer, now: float) -> None:
        pass

    def settle(self) -> list[tuple[Peer, bytes, bool]]:
        self.links.settle(9.0)
        return self.back


def connect(one: End, other: End, handle: int, now: float = 0.0) -> None:
    one.links.opened(handle, now, 1, other.name)
    other.links.opened(handle, now, 1, one.name)


def pump(one: End, other: End, handle: int, now: float = 0.0, pieces: Random | None = None) -> None:
    """Carry what is to be written, until nothing is; perhaps cut to pieces."""
    for _ in range(50):
        moved = False
        for source, target in ((one, other), (other, one)):
            if handle not in source.links.dirty:
                continue
            out = source.links.fill(handle, 1 << 16, now)
            moved = moved or bool(out)
            while out:
                size = len(out) if pieces is None else pieces.randint(1, len(out))
                target.links.receive(handle, out[:size], now)
                out = out[size:]
        if not moved:
            return


def test_messages_wait_for_the_connection_that_they_ask_for() -> None:
    a, b = End("a"), End("b")
    a.links.send(peer("b"), b"\x04", 0.0)
    assert a.links.take_wanted() == [peer("b")]
    assert not a.links.take_wanted(), "it is being dialled"
    connect(a, b, 1)
    pump(a, b, 1, pieces=Random(1))
    assert b.came_ == [b"\x04"]
    assert a.links.far[peer("b").identifier].owes_nothing, "it was acknowledged"


@pytest.mark.parametrize("seed", range(20))
def test_everything_comes_once_and_in_order_over_connections_that_break(seed: int) -> None:
    random = Random(seed)
    a, b = End("a"), End("b")
    given = [encode(Echo(number)) for number in range(60)]
    left = list(given)
    for handle in range(1, 12):
        connect(a, b, handle)
        pump(a, b, handle)
        for _ in range(random.randrange(12)):
            if left:
                a.links.send(peer("b"), left.pop(0), 0.0)
            source, target = random.choice(((a, b), (b, a)))
            target.links.receive(handle, source.links.fill(handle, random.randrange(1, 40), 0.0), 0.0)
        # a connection that breaks takes with it what was under way
        out = a.links.fill(handle, 1 << 16, 0.0)
        b.links.receive(handle, out[: random.randrange(len(out) + 1)], 0.0)
        b.links.fill(handle, 1 << 16, 0.0)
        a.links.closed(handle, 0.0)
        b.links.closed(handle, 0.0)
    connect(a, b, 99)
    for each in left:
        a.links.send(peer("b"), each, 0.0)
    pump(a, b, 99)
    assert b.came_ == given
    assert not a.settle()


def test_what_is_put_off_comes_before_what_comes_later() -> None:
    a, b = End("a"), End("b")
    connect(a, b, 1)
    pump(a, b, 1)
    given = [encode(Echo(number)) for number in range(6)]
    b.is_busy = True
    for half in (given[:3], given[3:]):
        for each in half:
            a.links.send(peer("b"), each, 0.0)
        assert b.links.receive(1, a.links.fill(1, 1 << 16, 0.0), 0.0)
    while b.links.go_on(1, 0.0):
        pass
    assert b.came_ == given


def test_what_was_meant_for_an_earlier_life_comes_back() -> None:
    a, b = End("a"), End("b")
    connect(a, b, 1)
    pump(a, b, 1)
    a.links.send(peer("b"), b"\x04", 1.0)
    a.links.fill(1, 1 << 16, 1.0)
    a.links.send(peer("b"), encode(Behind()), 1.0)
    a.links.closed(1, 1.0)
    later = End("b", life=2)
    connect(a, later, 2)
    pump(a, later, 2)
    assert a.settle() == [(peer("b"), b"\x04", True), (peer("b"), encode(Behind()), False)]
    assert a.renewals == [peer("b")]
    assert not later.came_


def test_what_nobody_takes_comes_back_and_of_what_was_written_it_is_said() -> None:
    a, b = End("a"), End("b")
    connect(a, b, 1)
    pump(a, b, 1)
    a.links.send(peer("b"), data(b"1"), 1.0)
    a.links.fill(1, 1 << 16, 1.0)
    a.links.send(peer("b"), data(b"2"), 1.0)
    a.links.look(5.5)
    assert not a.settle()
    a.links.look(6.5)
    assert [(text, written) for _, text, written in a.settle()] == [(data(b"1"), True), (data(b"2"), False)]
    assert a.links.why(1) == "silent"


def test_where_nobody_listens_it_comes_back_at_once() -> None:
    a = End("a")
    a.links.send(peer("b"), b"\x04", 0.0)
    a.links.take_wanted()
    a.links.unreachable(peer("b"), 0.1, is_certain=False)
    assert not a.settle()
    a.links.unreachable(peer("b"), 0.2, is_certain=True)
    assert a.settle() == [(peer("b"), b"\x04", False)]
    assert not a.links.far


def test_what_is_urgent_goes_first_and_nothing_waits_for_ever() -> None:
    a, b = End("a"), End("b")
    connect(a, b, 1)
    pump(a, b, 1)
    low, high = 0 << 4 | 8, 3 << 4 | 8
    for number in range(30):
        a.links.send(peer("b"), data(b"low %d" % number, low), 0.0)
        a.links.send(peer("b"), data(b"high %d" % number, high), 0.0)
    a.links.send(peer("b"), encode(Behind()), 0.0)
    pump(a, b, 1)
    assert isinstance(decode(b.came_[0]), Behind)
    lanes = [found.lane for each in b.came_[1:] if isinstance(found := decode(each), Data)]
    assert lanes.index(low) < 12, "one of ten is of the least urgent"
    assert sum(lane == high for lane in lanes[:30]) >= 25
    assert len(lanes) == 60


def test_of_publications_that_need_not_be_brought_only_so_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAITING_BYTES", 500)
    a = End("a")
    for _ in range(100):
        a.links.send(peer("b"), data(b"x" * 50, 0), 0.0)
    assert a.links.far[peer("b").identifier].waiting.bytes <= 500
    assert a.links.counts.voided > 90
    a.links.send(peer("b"), encode(Behind()), 0.0)
    assert len(a.links.far[peer("b").identifier].waiting.clear()) > 1


@pytest.mark.parametrize(
    "link",
    ["tcp://127.0.0.1:1883", "peer+tls://127.0.0.1:1", "peer://127.0.0.1:0", "nonsense", "peer://h:" + "1" * 300],
)
def test_nobody_has_this_broker_dial_what_is_no_address_of_a_broker(link: str) -> None:
    a = End("a")
    a.links.send(Peer(5, link), b"\x04", 0.0)
    assert not a.links.take_wanted()
    assert a.links.counts.bad_addresses
    assert a.settle()


def test_whoever_names_thousands_of_addresses_has_a_few_dialled_at_a_time() -> None:
    a = End("a")
    for number in range(10_000):
        a.links.send(Peer(number, f"peer://10.0.0.1:{1 + number % 60_000}"), b"\x04", 0.0)
    assert len(a.links.far) == 2_048
    assert len(a.links.take_wanted()) == 64
    assert not a.links.take_wanted()
    assert len(a.settle()) == 10_000 - 2_048


def test_brokers_that_have_declared_something_else_refuse_each_other_in_a_sentence() -> None:
    a, b = End("a"), End("b", mark=b"87654321")
    connect(a, b, 1)
    pump(a, b, 1)
    assert any("other event types" in text for _, _, text in (*a.links.refusals, *b.links.refusals))
    assert 1 in a.links.doomed | b.links.doomed
    assert not a.links.is_up(1)


def _hello(**changed: object) -> bytes:
    return RingHello(1, 1_000, address("b"), MARK, 0, 0)._replace(**changed).encode()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bytes_", "why"),
    [
        (frame(Kind.RING, b"\x04"), "bad_frames"),
        (_hello() + frame(Kind.RING, b"\x04"), "bad_frames"),
        (_hello() + frame(Kind.RESUME, put(1)) * 2, "bad_frames"),
        (_hello() + frame(Kind.RESUME, put(0)), "bad_frames"),
        (_hello() + frame(Kind.HOP_ACK, put(3)), "bad_frames"),
        (_hello(heard_life=1, heard=9), "bad_frames"),
        (_hello(life=0), "bad_frames"),
        (_hello(address="x" * 300), "bad_frames"),
        (frame(Kind.HELLO, b"\x01"), "bad_frames"),
        (_hello() + frame(Kind.LINK_STATE), "bad_frames"),
        (b"\xff\x01", "bad_frames"),
        (frame(Kind.HELLO, put(9, 9)), "refused"),
        (_hello() + frame(Kind.RESUME, put(1)) + frame(Kind.RING, bytes(1_001)), "refused"),
        (frame(Kind.REFUSED, b"you are not wanted"), "refused"),
    ],
)
def test_what_is_no_word_of_a_broker_ends_its_connection(bytes_: bytes, why: str) -> None:
    a = End("a")
    a.links.opened(1, 0.0, 1, "b")
    a.links.receive(1, bytes_, 0.0)
    while 1 in a.links.dirty and a.links.fill(1, 1 << 16, 0.0):
        pass
    assert 1 in a.links.doomed
    assert a.links.why(1) == why
    assert why != "refused" or a.links.refusals


def test_whoever_sends_what_is_no_message_is_refused_in_a_sentence() -> None:
    a, b = End("a"), End("b")
    a.takes = False
    connect(a, b, 1)
    b.links.send(peer("a"), b"\x99", 0.0)
    pump(a, b, 1)
    assert [text for _, _, text in a.links.refusals] == ["it sent what is no message between brokers of a ring"]


def test_a_link_that_nobody_uses_is_closed_and_forgotten() -> None:
    a, b = End("a"), End("b")
    connect(a, b, 1)
    pump(a, b, 1)
    a.links.look(module.IDLE_S)
    assert not a.links.doomed
    a.links.look(module.IDLE_S + 1)
    assert a.links.why(1) == "idle"
    assert not a.links.far
    assert not a.links.wanted


def test_a_newer_connection_takes_the_place_of_another() -> None:
    a, b = End("a"), End("b")
    connect(a, b, 1)
    pump(a, b, 1)
    connect(a, b, 2)
    pump(a, b, 2)
    assert a.links.why(1) == b.links.why(1) == "replaced"
    a.links.send(peer("b"), b"\x04", 0.0)
    pump(a, b, 2)
    assert b.came_ == [b"\x04"]


def test_an_address_that_changes_is_another_broker() -> None:
    a = End("a")
    a.links.opened(1, 0.0, 1, "b")
    a.links.receive(1, _hello(), 0.0)
    a.links.send(peer("b"), b"\x04", 0.0)
    a.links.closed(1, 0.0)
    a.links.opened(2, 0.0, 1, "b")
    a.links.receive(2, _hello(address="peer://127.0.0.1:9"), 0.0)
    assert a.renewals == [peer("b")]
    a.links.send(peer("b"), b"\x05", 0.0)
    assert [text for _, text, _ in a.settle()] == [b"\x04", b"\x05"]


def test_texts_in_frames_are_texts() -> None:
    body = put(1, 1, 1, 1_000) + put_bytes(b"\xff") + MARK + put(0, 0)
    a = End("a")
    a.links.opened(1, 0.0, 1, "b")
    a.links.receive(1, frame(Kind.HELLO, body), 0.0)
    assert a.links.why(1) == "bad_frames"
