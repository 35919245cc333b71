"""History looks like a broker's log, to the last type, and says what would have been published."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.sim.microgrid.conftest import START_S
from tieline.conf.load import loads
from tieline.log.columns import LOG, SHARD
from tieline.log.record import digest_of
from tieline.match.events import Events
from tieline.sim.microgrid import World
from tieline.sim.microgrid.config import text
from tieline.sim.microgrid.history import Written, write
from tieline.sim.microgrid.messages import LEVELS
from tieline.sim.microgrid.rows import messages
from tieline.wire.properties import user_properties

_DAYS = 1 / 24


@pytest.fixture(name="written", scope="module")
def _written(eventful: World, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Written]:
    folder = tmp_path_factory.mktemp("history")
    seen: list[int] = []
    done = write(eventful, folder, days=_DAYS, rows_per_file=20_000, first_offset=100, progress=seen.append)
    assert seen[-1] == done.rows
    return folder, done


def test_it_has_the_columns_of_the_log(written: tuple[Path, Written]) -> None:
    folder, done = written
    files = sorted(folder.iterdir())
    assert len(files) == done.files and sum(file.stat().st_size for file in files) == done.bytes
    assert all(pq.read_schema(file).equals(LOG.append(SHARD)) for file in files)


def test_offsets_are_dense_and_time_goes_forward(written: tuple[Path, Written]) -> None:
    folder, done = written
    table = pq.read_table(folder)
    assert table["offset"].to_pylist() == list(range(100, 100 + done.rows))
    assert done.next_offset == 100 + done.rows
    received = table["received_ns"].to_numpy()
    assert (received[1:] >= received[:-1]).all()
    assert table["received"].cast("int64").to_numpy().tolist() == (received // 1_000).tolist()


def test_it_says_what_would_have_been_published(eventful: World, written: tuple[Path, Written]) -> None:
    folder, _done = written
    rows = pq.read_table(folder).to_pylist()
    said = [each for batch in messages(eventful, 86_400 * _DAYS) for each in batch]
    assert [(row["topic"], row["payload"]) for row in rows] == [(each.topic, each.payload) for each in said]
    for row, each in zip(rows, said, strict=True):
        assert row["level"] == LEVELS[each.kind] and row["event"] == each.kind
        assert row["publisher"] == f"cigre-lv-{each.client}"
        assert row["qos"] == (1 if row["level"] else 0) and (row["packet_id"] > 0) == (row["qos"] == 1)
    assert all(row["digest"] == digest_of(row["topic"].encode(), row["payload"]) for row in rows[::1_009])


@pytest.mark.parametrize("qos", [0, 1])
def test_messages_with_qos_1_are_numbered_without_gaps(eventful: World, tmp_path: Path, qos: int) -> None:
    write(eventful, tmp_path, days=_DAYS / 4, readings_qos=qos, run="r")
    table = pq.read_table(tmp_path)
    rows = table.filter(pc.equal(table["qos"], 1)).to_pylist()
    assert (len(rows) == table.num_rows) == (qos == 1)
    count: Counter[str] = Counter()
    for row in rows:
        count[row["publisher"]] += 1
        [pair] = row["properties"]
        assert pair == {"key": "seq", "value": f"r/{count[row['publisher']]}"}
        assert user_properties(row["raw_properties"]) == [("seq", pair["value"])]
    others = table.filter(pc.equal(table["qos"], 0))
    assert set(others["raw_properties"].to_pylist()) <= {b""} and not any(others["properties"].to_pylist())


def test_the_configuration_reads_every_message(eventful: World) -> None:
    settings = loads(text(eventful, data="data", readers=["spark"], listen=["tcp://127.0.0.1:0"]))
    assert (settings.log.capture, settings.log.readers) == (("microgrid/#",), ("spark",))
    events = Events(settings)
    seen: set[str] = set()
    for batch in messages(eventful, 2_400):
        for each in batch:
            if each.kind == "reading" and each.sent_s > START_S + 10:
                continue
            event = events.of(each.topic)
            assert event.name == each.kind
            reading = event.read(each.payload, b"", each.topic)
            assert reading is not None and all(reading.get(name) is not None for name in event.position)
            seen.add(each.kind)
    assert seen == set(LEVELS)
    assert [(rule.name, rule.level) for rule in settings.class_] == list(LEVELS.items())
