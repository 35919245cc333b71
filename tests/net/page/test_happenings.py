"""What has happened lately: told once, bounded, and forgotten after an hour."""

from __future__ import annotations

from tieline.net.page.happenings import MOST, Happenings


def texts(kept: Happenings, time: float) -> list[str]:
    return [each["text"] for each in kept.last(time)]


def test_links_and_plans_that_change_are_told_once() -> None:
    kept = Happenings()
    kept.notice({"a": True}, 0, 100.0)
    kept.notice({"a": True, "b\n": True}, 0, 101.0)
    kept.notice({"a": False, "b\n": True}, 12, 102.0)
    kept.notice({"a": False, "b\n": True}, 12, 103.0)
    kept.notice({"a": True, "b\n": True}, 0, 104.0)
    assert texts(kept, 105.0) == [
        "started", "link to b\ufffd up", "link to a down", "plan 12 in force", "link to a up", "no plan any more",
    ]  # fmt: skip
    assert [each["t"] for each in kept.last(105.0)] == [100.0, 101.0, 102.0, 102.0, 104.0, 104.0]


def test_only_the_last_hour_and_a_bounded_number() -> None:
    kept = Happenings()
    for number in range(200):
        kept.notice({"a": bool(number % 2)}, 0, float(number))
    assert len(kept.last(200.0)) == MOST and kept.last(200.0 + 3_600.0) == []
