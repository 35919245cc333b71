"""The spool: nothing is lost that was appended, nothing is numbered twice, one process at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tieline.pipeline.broker import BrokerError
from tieline.pipeline.foreign.options import MQTT_ARROW
from tieline.pipeline.foreign.spool import Arrival, Spool


def arrival(number: int) -> Arrival:
    return Arrival(number, f"t/{number}", b"%d" % number, 1, number % 2 == 0, False, [("n", str(number)), ("n", "ü")])


def offsets(spool: Spool, start: int, end: int) -> list[int]:
    return [row["offset"] for batch in spool.read(start, end, MQTT_ARROW) for row in batch.to_pylist()]


def test_what_was_appended_is_there_after_reopening(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a" / "spool")
    assert spool.bounds() == (0, 0)
    spool.append(arrival(n) for n in range(5))
    identity = spool.id
    spool.close()
    again = Spool(tmp_path / "a" / "spool")
    assert again.id == identity and again.bounds() == (0, 5)
    (batch,) = again.read(3, 5, MQTT_ARROW)
    assert batch.schema == MQTT_ARROW
    assert batch.to_pylist()[1] == {
        "offset": 4, "received": batch.column("received")[1].as_py(), "topic": "t/4", "payload": b"4", "qos": 1,
        "retain": True, "dup": False, "properties": [{"key": "n", "value": "4"}, {"key": "n", "value": "ü"}],
    }  # fmt: skip
    assert batch.column("received")[1].value == 4
    again.close()


@examples(20)
@given(steps=st.lists(st.one_of(st.integers(1, 4), st.floats(0, 1), st.none()), max_size=12))
def test_offsets_are_dense_and_never_used_again(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int | float | None]
) -> None:
    """Appending (a number), trimming (a share of what is there), reopening (none), against two plain numbers."""
    place = tmp_path_factory.mktemp("spool")
    spool = Spool(place)
    first = last = 0
    for step in steps:
        if step is None:
            spool.close()
            spool = Spool(place)
        elif isinstance(step, int):
            spool.append(arrival(last + n) for n in range(step))
            last += step
        else:
            first += int((last - first) * step)
            spool.trim(first)
        assert spool.bounds() == (first, last)
        assert offsets(spool, first, last) == list(range(first, last))
    spool.close()


def test_a_range_with_holes_is_an_error(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append(arrival(n) for n in range(5))
    spool.trim(2)
    with pytest.raises(BrokerError, match="should have offsets 0 to 4 and has 3 of them"):
        spool.read(0, 5, MQTT_ARROW)
    spool.close()


def test_one_process_at_a_time_and_a_dead_one_lets_go(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from tieline.pipeline.foreign.spool import Spool;"
        f"spool = Spool(pathlib.Path({str(tmp_path)!r})); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(BrokerError, match="belongs to another query that is running"):
        Spool(tmp_path)
    holder.kill()
    holder.communicate()
    Spool(tmp_path, patience_s=10).close()


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BrokerError, match="cannot be used"):
        Spool(tmp_path / "file" / "spool")
