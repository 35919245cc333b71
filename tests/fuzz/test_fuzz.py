from __future__ import annotations

import pytest

from fuzz import fuzz_broker, fuzz_wire
from tieline.core.inbound import chunk as ingress


def test_the_wire_survives_a_short_hunt() -> None:
    assert fuzz_wire.run(1.5, seed=0) == 0


def test_the_broker_survives_a_short_hunt() -> None:
    assert fuzz_broker.run(2.5, seed=0) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
def test_the_wire_survives_a_long_hunt(seed: int) -> None:
    assert fuzz_wire.run(15, seed) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
def test_the_broker_survives_a_long_hunt(seed: int) -> None:
    assert fuzz_broker.run(15, seed) == 0


def test_a_decoder_that_reads_past_the_end_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(data: bytes, pos: int, end: int) -> tuple[str, int]:
        stop = pos + 2 + (data[pos] << 8 | data[pos + 1])
        return data[pos + 2 : stop].decode(errors="replace"), stop

    monkeypatch.setattr("tieline.wire.decode.decode_utf8", careless)
    assert fuzz_wire.run(10, seed=0) == 1


def test_a_broker_that_waits_for_a_byte_too_many_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = ingress._needed
    monkeypatch.setattr(ingress, "_needed", lambda *args: needed(*args) + 1)
    assert fuzz_broker.run(10, seed=0) == 1
