"""The windowed flow counts exactly, and names what goes wrong, with a thread in place of the broker."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import closing

import pytest

from tieline.bench.load import flow as flow_module
from tieline.bench.load.flow import LoadFlow, Volume
from tieline.bench.load.job import Failure, Garbled, Lost, TurnedDown
from tieline.bench.load.packets import encode

Forward = Callable[[bytes], bytes | None]


class Relay:
    """A QoS 0 broker of one publisher and one subscriber; ``forward`` may tamper with a chunk or hang up (None)."""

    def __init__(self, forward: Forward) -> None:
        self.publisher, self._from = socket.socketpair()
        self.subscriber, self._to = socket.socketpair()
        self.publisher.setblocking(False)
        self.subscriber.setblocking(False)
        self._forward = forward
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with self._from, self._to:
            while chunk := self._from.recv(65_536):
                onward = self._forward(chunk)
                if onward is None:
                    return
                try:
                    self._to.sendall(onward)
                except OSError:  # the test has seen enough
                    return

    def close(self) -> None:
        self.publisher.close()
        self.subscriber.close()
        self._thread.join()


@pytest.fixture(autouse=True)
def short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_module, "_SILENCE_S", 0.3)


def spell(forward: Forward, *, payload: int = 50) -> tuple[Volume, int]:
    stream = encode(0, ["t/1", "t/2"], payload=payload, qos=0, version=4, count=500)
    with closing(Relay(forward)) as relay:
        flow = LoadFlow(publishers=[(relay.publisher, stream)], subscribers=[(relay.subscriber, "t/#")], fan=1, qos=0)
        with closing(flow):
            volume = flow.spell(0.05)
            return volume, flow.check()


def test_everything_sent_is_counted_and_compared() -> None:
    volume, checked = spell(lambda chunk: chunk)
    assert volume.published == volume.delivered > 0
    assert checked > 0


def test_a_lost_message_ends_the_flow_with_its_number() -> None:
    dropped: list[int] = []

    def forward(chunk: bytes) -> bytes:
        if dropped:
            return chunk
        dropped.append(1)
        size = encode(0, ["t/1"], payload=50, qos=0, version=4, count=1).layout.packet
        return chunk[size:]

    with pytest.raises(Lost, match=r"^1 of \d+ messages"):
        spell(forward)


def test_bytes_that_belong_to_no_message_are_noticed() -> None:
    with pytest.raises(Failure) as caught:
        spell(lambda chunk: b"\xd0\x00" + chunk)
    assert isinstance(caught.value, Garbled)


def test_a_closed_connection_is_named() -> None:
    with pytest.raises(TurnedDown, match="closed a connection"):
        spell(lambda _chunk: None)


@pytest.mark.parametrize("payload", [1_024, 5_000])
def test_long_messages_are_counted_although_hardly_read(payload: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_module, "_KEPT_PACKETS", 3)
    volume, checked = spell(lambda chunk: chunk, payload=payload)
    assert volume.published == volume.delivered > 100
    assert 3 <= checked < volume.delivered


def test_bytes_between_long_messages_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_module, "_KEPT_PACKETS", 3)
    chunks: list[int] = []

    def forward(chunk: bytes) -> bytes:
        chunks.append(1)
        return chunk if len(chunks) < 10 else b"\xd0\x00" + chunk

    with pytest.raises(Garbled, match="expected a PUBLISH"):
        spell(forward, payload=5_000)
