"""What was discarded: every name has its help, and the most comes first."""

from __future__ import annotations

from tieline.core.account import Account, Drop
from tieline.net.page.drops import HELPS, MOST_DROPS, drops

NAMES = ("low", "normal", "important", "urgent")


def test_every_name_has_its_help() -> None:
    assert set(HELPS) == set(Drop) and all(text and not text.endswith(".") for text in HELPS.values())


def test_the_most_first_with_who_lost_it_last() -> None:
    account = Account()
    account.drop(1.0, Drop.QUEUE_FULL, "archive", b"t", 7, level=0)
    account.drop(2.0, Drop.QUEUE_FULL, "tablet\n", b"t", 1, level=0)
    account.drop(3.0, Drop.EXPIRED, "van", b"t", 2, level=3)
    account.drop(4.0, Drop.DENIED, "guest", b"t")
    told = drops(account, NAMES)
    assert [(each["why"], each["class"], each["level"], each["messages"], each["of"]) for each in told] == [
        ("queue_full", "low", 0, 8, "tablet\ufffd"),
        ("expired", "urgent", 3, 2, "van"),
        ("denied", "", None, 1, "guest"),
    ]


def test_no_more_than_fit() -> None:
    account = Account()
    for why in Drop:
        for level in range(4):
            account.drop(1.0, why, "c", b"t", 1 + level, level=level)
    told = drops(account, NAMES)
    assert len(told) == MOST_DROPS and {each["level"] for each in told} == {3}
