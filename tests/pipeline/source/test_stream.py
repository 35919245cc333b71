"""The stream reader as a plain object: what Spark asks it, in the order in which Spark asks."""

from __future__ import annotations

import json
import logging
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from tests.net.logserver.writing import record
from tests.pipeline.source.conftest import Serve, options
from tests.pipeline.source.served import Served
from tieline.conf.schema import Log, Settings
from tieline.net.store.schema import path_of
from tieline.pipeline.options import OptionError
from tieline.pipeline.source.client import Gap, LogError
from tieline.pipeline.source.offsets import shards
from tieline.pipeline.source.options import read_options
from tieline.pipeline.source.stream import StreamReader

ALL = ReadAllAvailable()


def reader(*served: Served, **more: Any) -> StreamReader:
    return StreamReader(read_options(options(*served, **more)))


def rows(source: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[str, int]]:
    """What tasks read, each with its own copy of the reader."""
    found = []
    for part in source.partitions(start, end):
        copy, part = pickle.loads(pickle.dumps((source, part)))
        for batch in copy.read(part):
            found += list(zip(batch.column("shard").to_pylist(), batch.column("offset").to_pylist(), strict=True))
    return found


def kept(offset: dict[str, Any]) -> dict[str, Any]:
    """Through a checkpoint."""
    found: dict[str, Any] = json.loads(json.dumps(offset))
    return found


def test_nothing_is_asked_before_spark_asks() -> None:
    source = StreamReader(read_options({"url": "http://127.0.0.1:1"}))
    pickle.dumps(source)
    assert isinstance(source.getDefaultReadLimit(), ReadAllAvailable)


def test_two_brokers_batch_by_batch(serve: Serve) -> None:
    north, south = serve("north", records=30), serve("south", records=100)
    source = reader(south, north, maxRowsPerTrigger=40, partitionRows=15)
    limit = source.getDefaultReadLimit()
    assert limit == ReadMaxRows(40)
    place, found, sizes = kept(source.initialOffset()), [], []
    while (end := kept(source.latestOffset(place, limit))) != place:
        batch = rows(source, place, end)
        sizes.append(len(batch))
        found += batch
        place = end
    assert sizes == [40, 40, 40, 10]
    assert sorted(found) == [("north", n) for n in range(30)] + [("south", n) for n in range(100)]
    assert shards(place) == {"north": 30, "south": 100} == shards(source.reportLatestOffset())


def test_the_first_batch_is_shared_fairly(serve: Serve) -> None:
    north, south = serve("north", records=30), serve("south", records=100)
    source = reader(south, north)
    assert shards(source.latestOffset(source.initialOffset(), ReadMaxRows(40))) == {"north": 20, "south": 20}
    assert shards(source.latestOffset(source.initialOffset(), ReadMaxRows(90))) == {"north": 30, "south": 60}


def test_filters_thin_out_rows_and_not_offsets(serve: Serve) -> None:
    source = reader(serve(records=100), topics="grid/3/+\ngrid/4/+", where="number >= 50", maxRowsPerTrigger=60)
    place = source.initialOffset()
    end = source.latestOffset(place, source.getDefaultReadLimit())
    assert shards(end) == {"edge": 60}
    assert rows(source, place, end) == [("edge", n) for n in range(50, 60) if n % 7 in {3, 4}]


def test_available_now_does_not_see_what_comes_later(serve: Serve) -> None:
    served = serve(records=10)
    source = reader(served)
    place = source.initialOffset()
    source.prepareForTriggerAvailableNow()
    served.writer.append([record(10)])
    end = source.latestOffset(place, ALL)
    assert shards(end) == {"edge": 10}
    assert source.latestOffset(end, ALL) == end


def test_after_a_crash_the_planned_range_is_asked_for_first(serve: Serve) -> None:
    served = serve(records=50)
    before = reader(served)
    start = before.initialOffset()
    end = kept(before.latestOffset(start, ReadMaxRows(20)))
    served.writer.append([record(50)])
    assert rows(reader(served), kept(start), end) == [("edge", n) for n in range(20)]


@pytest.mark.parametrize(("starting", "first"), [("earliest", 20), ("latest", 50), ('{"edge": 33}', 33)])
def test_where_a_query_begins(serve: Serve, starting: str, first: int) -> None:
    served = serve(records=50)
    served.writer.forget(20)
    assert shards(reader(served, startingOffsets=starting).initialOffset()) == {"edge": first}


def test_offsets_that_name_other_brokers_are_refused(serve: Serve) -> None:
    served = serve(records=50)
    with pytest.raises(OptionError, match="startingOffsets names north, and the brokers are edge"):
        reader(served, startingOffsets='{"north": 1}').initialOffset()
    with pytest.raises(OptionError, match="beyond the end of edge: its next record will get 50"):
        reader(served, startingOffsets='{"edge": 51}').initialOffset()


def test_lost_data_stops_a_query_and_says_what_is_missing(serve: Serve) -> None:
    served = serve(records=50)
    source = reader(served)
    start, end = source.initialOffset(), source.latestOffset(source.initialOffset(), ALL)
    served.writer.forget(20)
    sentence = "offsets 0 to 19 of the broker edge are not there any more.*20 records are missing.*failOnDataLoss"
    with pytest.raises(Gap, match=sentence):
        source.latestOffset(start, ALL)
    with pytest.raises(Gap, match=sentence):
        source.partitions(start, end)


def test_lost_data_may_be_passed_over_and_is_counted(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    served = serve(records=50)
    source = reader(served, failOnDataLoss="false")
    start = source.initialOffset()
    served.writer.forget(20)
    end = source.latestOffset(start, ReadMaxRows(10))
    assert shards(end) == {"edge": 30}
    with caplog.at_level(logging.WARNING):
        assert rows(source, start, end) == [("edge", n) for n in range(20, 30)]
    assert source.lost == 20
    assert "20 records of edge are lost: offsets 0 to 19" in caplog.text
    assert "20 records were lost since reading was started" in caplog.text
    # everything up to the planned end is gone
    served.writer.forget(50)
    assert rows(source, start, end) == []
    assert source.lost == 50


@pytest.mark.parametrize("fails", ["true", "false"])
def test_retention_that_overtakes_a_task(serve: Serve, fails: str, caplog: pytest.LogCaptureFixture) -> None:
    served = serve(records=50)
    source = reader(served, failOnDataLoss=fails)
    start = source.initialOffset()
    (part,) = source.partitions(start, source.latestOffset(start, ALL))
    served.writer.forget(20)
    if fails == "true":
        with pytest.raises(Gap, match=r"offsets 0 to 19.*failOnDataLoss"):
            list(source.read(part))
    else:
        (batch,) = source.read(part)
        assert batch.column("offset").to_pylist() == list(range(20, 50))
        assert "20 records of edge are lost" in caplog.text


def test_another_store_under_a_checkpoint_is_refused(serve: Serve, tmp_path: Path) -> None:
    served = serve(records=50)
    source = reader(served, failOnDataLoss="false")
    place = source.latestOffset(source.initialOffset(), ALL)
    with sqlite3.connect(path_of(tmp_path / "edge")) as db:
        db.execute("UPDATE migration SET applied = 17.5")
    db.close()
    for ask in (lambda: source.latestOffset(place, ALL), lambda: source.partitions(place, place)):
        with pytest.raises(LogError, match="not the one that was read before"):
            ask()


def test_an_older_copy_of_the_store_is_refused(serve: Serve) -> None:
    served = serve(records=50)
    source = reader(served)
    place = source.latestOffset(source.initialOffset(), ALL)
    served.writer._db.execute("UPDATE stream SET next = 30 WHERE name = 'log'")
    with pytest.raises(LogError, match=r"stands at offset 50.*ends at 30"):
        source.latestOffset(place, ALL)


def test_a_broker_that_joins_enters_with_an_empty_range(serve: Serve) -> None:
    north, south = serve("north", records=10), serve("south", records=10)
    place = reader(north).latestOffset(reader(north).initialOffset(), ALL)
    source = reader(north, south)
    entered = source.latestOffset(place, ALL)
    assert shards(entered) == {"north": 10, "south": 0}
    assert rows(source, place, entered) == []
    end = source.latestOffset(entered, ALL)
    assert rows(source, entered, end) == [("south", n) for n in range(10)]


def test_a_broker_that_leaves(serve: Serve) -> None:
    north, south = serve("north", records=10), serve("south", records=10)
    start = reader(north, south).initialOffset()
    with pytest.raises(LogError, match='the broker "south" was read before, and none of the urls serves it'):
        reader(north).latestOffset(start, ALL)
    assert shards(reader(north, failOnDataLoss="false").latestOffset(start, ALL)) == {"north": 10}


def test_two_brokers_of_one_name_are_refused(serve: Serve) -> None:
    one, other = serve("one", settings=Settings(name="edge")), serve("other", settings=Settings(name="edge"))
    with pytest.raises(LogError, match='both say that they serve the broker "edge"'):
        reader(one, other).initialOffset()


def test_a_named_reader_follows_commits(serve: Serve, tmp_path: Path) -> None:
    served = serve(settings=Settings(name="edge", log=Log(readers=("spark",))), records=50)
    source = reader(served, reader="spark")
    end = source.latestOffset(source.initialOffset(), ReadMaxRows(20))
    source.commit(end)
    assert (tmp_path / "edge" / "readers" / "spark").read_text().strip() == "20"
    source.commit(source.initialOffset())  # a batch that is committed again, after a restart
    assert (tmp_path / "edge" / "readers" / "spark").read_text().strip() == "20"
    reader(served).commit(end)
    with pytest.raises(LogError, match='no reader is called "typo"'):
        reader(served, reader="typo").commit(end)


def test_fewer_columns(serve: Serve) -> None:
    source = reader(serve(records=5), columns="topic,shard")
    start = source.initialOffset()
    (part,) = source.partitions(start, source.latestOffset(start, ALL))
    (batch,) = source.read(part)
    assert batch.schema.names == ["topic", "shard"]
    assert batch.column("shard").to_pylist() == ["edge"] * 5
