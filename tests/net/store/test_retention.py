"""What retention removes by age, also where the clock has leapt between rows."""

from __future__ import annotations

from pathlib import Path

from tieline.net.store.database import open_to_write
from tieline.net.store.frames import Keep
from tieline.net.store.retention import Retention

AGE_S = 100.0


def left(folder: Path, times: list[float], now: float) -> list[float]:
    """The times of the rows that stay."""
    folder.mkdir(mode=0o700, exist_ok=True)
    db = open_to_write(folder)
    try:
        db.execute("DELETE FROM log")
        for offset, when in enumerate(times):
            db.execute("INSERT INTO log VALUES (?, 1, ?, 10, 0, x'')", (offset, when))
        retention = Retention(db, folder, Keep(age_s=AGE_S))
        while retention.apply(now)[0]:
            pass
        return [float(when) for (when,) in db.execute("SELECT time FROM log ORDER BY first_offset")]
    finally:
        db.close()


def test_what_is_old_goes(tmp_path: Path) -> None:
    assert left(tmp_path / "d", [1.0, 50.0, 150.0, 151.0], 200.0) == [150.0, 151.0]


def test_rows_of_the_future_go_with_the_first_one_behind_them(tmp_path: Path) -> None:
    future = [9_000.0 + number for number in range(200)]
    assert left(tmp_path / "d", [*future, 50.0, 60.0], 120.0) == [*future, 50.0, 60.0]
    assert left(tmp_path / "d", [*future, 50.0, 60.0], 155.0) == [60.0]
    assert left(tmp_path / "d", future, 155.0) == future
