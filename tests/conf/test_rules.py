from __future__ import annotations

import pytest

from tieline.conf.error import ConfError
from tieline.conf.load import loads


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ('data = "d"\n[log]\ncapture = ["a/#/b"]', 3, "#"),
        ('[log]\ncapture = ["#"]', 2, "there is no data directory"),
        ('[log]\nevents = "on"', 2, "there is no data directory"),
        ('data = "d"\n[store]\nengine = "memory"\n[log]\ncapture = ["#"]', 5, "keeps nothing"),
        ("[log]\nretention_bytes = 10\nhard_bytes = 9", 3, "hard_bytes is below retention_bytes"),
        ('[log]\nreaders = ["ok", "../x"]', 2, '"../x" is no name for a reader'),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, line: int, sentence: str) -> None:
    with pytest.raises(ConfError) as refused:
        loads(text, "broker.toml")
    assert sentence in str(refused.value)
    assert f":{line}" in str(refused.value)


def test_what_makes_sense_is_accepted() -> None:
    settings = loads('data = "d"\n[log]\ncapture = ["#"]\nretention_age = "none"\nreaders = ["spark"]', "broker.toml")
    assert settings.log.capture == ("#",)
