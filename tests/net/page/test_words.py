"""Numbers as people say them."""

from __future__ import annotations

import pytest

from tieline.net.page import words


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0042, "4.2 ms"), (0.038, "38 ms"), (0.9996, "1000 ms"), (2.2, "2.2 s"), (48, "48 s"), (160, "2 min 40 s"),
        (3700, "1 h 1 min"), (273_600, "3 d 4 h"),
    ],
)  # fmt: skip
def test_durations(seconds: float, said: str) -> None:
    assert words.duration(seconds) == said


@pytest.mark.parametrize(("part", "said"), [(0, "0 %"), (0.004, "0.4 %"), (0.97, "97 %"), (1.0, "100 %")])
def test_shares(part: float, said: str) -> None:
    assert words.share(part) == said


@pytest.mark.parametrize(
    ("octets", "said"), [(0, "0 B"), (640, "640 B"), (3_200_000, "3.2 MB"), (64e6, "64.0 MB"), (5e12, "5000 GB")]
)
def test_sizes(octets: float, said: str) -> None:
    assert words.size(octets) == said


def test_counts() -> None:
    assert words.several(1, "link") == "1 link" and words.several(1204, "link") == "1,204 links"
    assert words.beginning(1, "thing") == "One thing" and words.beginning(412, "client") == "412 clients"
    assert words.shortened("a\x1b[31m\n<b>") == "a\ufffd[31m\ufffd<b>" and len(words.shortened("x" * 999)) == words.MOST
    assert words.argument("-x") == "-- -x" and words.argument("") is None and words.argument("a\nb") is None
