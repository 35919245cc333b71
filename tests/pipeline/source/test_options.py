"""Options of format("tieline"): each that makes no sense has its sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieline.pipeline.options import OptionError
from tieline.pipeline.source.client import LogError
from tieline.pipeline.source.options import read_options

URL = {"url": "http://127.0.0.1:9884"}


def test_what_is_not_said() -> None:
    found = read_options(URL)
    assert (found.stream, found.topics, found.where, found.max_rows) == ("log", (), None, None)
    assert (found.starting, found.ending, found.fail_on_data_loss, found.reader) == ("earliest", "latest", True, None)
    assert found.columns[0] == "offset" and found.columns[-1] == "shard"


def test_what_is_said(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    found = read_options(
        {
            "URL": "http://a:1, https://b:2", "startingoffsets": '{"a": 5}', "MaxRowsPerTrigger": "10",
            "topics": "a,b/#", "user": "anna", "passwordFile": str(tmp_path / "password"), "failOnDataLoss": "False",
        }
    )  # fmt: skip
    assert found.urls == ("http://a:1", "https://b:2")
    assert found.starting == {"a": 5} and found.max_rows == 10 and not found.fail_on_data_loss
    assert found.topics == ("a", "b/#") and found.password == "secret"
    assert "secret" not in repr(found)


def test_topics_with_commas_stand_on_lines() -> None:
    assert read_options({**URL, "topics": "a,b\nc"}).topics == ("a,b", "c")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "option url is missing"),
        ({"url": "http://a:1,http://a:1"}, "names a log server twice"),
        ({**URL, "topic": "a"}, 'no option "topic"; it has url'),
        ({**URL, "stream": "all"}, 'stream = "all" is refused: it is log or events'),
        ({**URL, "startingOffsets": "first"}, 'startingOffsets = "first" is refused'),
        ({**URL, "startingOffsets": '{"a": -1}'}, "startingOffsets"),
        ({**URL, "startingOffsets": '{"a": true}'}, "startingOffsets"),
        ({**URL, "endingOffsets": "[1]"}, "endingOffsets"),
        ({**URL, "maxRowsPerTrigger": "0"}, 'maxRowsPerTrigger = "0" is refused'),
        ({**URL, "maxRowsPerTrigger": "1e6"}, "maxRowsPerTrigger"),
        ({**URL, "partitionRows": "-1"}, "partitionRows"),
        ({**URL, "failOnDataLoss": "no"}, 'failOnDataLoss = "no" is refused: it is true or false'),
        ({**URL, "columns": "offset,colour"}, 'log has no column "colour"; it has offset'),
        ({**URL, "columns": "offset,offset"}, "each of them once"),
        ({**URL, "patience": "long"}, 'patience = "long" is refused'),
        ({**URL, "password": "x"}, "there is a password and no user"),
        ({**URL, "user": "a", "password": "x", "passwordFile": "/x"}, "both given"),
        ({**URL, "user": "a", "passwordFile": "/nowhere"}, "passwordFile = /nowhere cannot be read: no such file"),
        ({**URL, "ca": "/nowhere"}, "ca = /nowhere cannot be read"),
    ],
)
def test_what_cannot_be_meant(options: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError, match=text.replace("[", r"\[")):
        read_options(options)


def test_addresses_are_looked_at_before_anything_is_asked() -> None:
    with pytest.raises(LogError, match="is not the address of a log server"):
        read_options({"url": "127.0.0.1:9884"})
