"""Which small files ingest merges: little is written again, and few files stay."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tieline.pipeline.lake.merging import FILE_ROWS, alike, groups


def named(*rows: int) -> list[tuple[int, int]]:
    return list(enumerate(rows))


def test_files_that_are_much_larger_than_the_rest_stay_as_they_are() -> None:
    assert alike(named(10, 10, 10)) == named(10, 10, 10)
    assert alike(named(10, 10, 1_000)) == [(0, 10), (1, 10)]
    assert alike(named(1_000, 10)) == []
    assert alike(named(FILE_ROWS, FILE_ROWS)) == []
    assert list(groups(named(10, 10, 1_000), small_only=True)) == [[0, 1]]


@given(st.lists(st.integers(1, 60_000), min_size=1, max_size=400), st.integers(1, 20))
def test_a_row_is_written_again_as_often_as_its_file_can_double(batches: list[int], every: int) -> None:
    """Against a history of each file: how often the rows that have been merged most were."""
    files: list[tuple[int, int]] = []  # how often its rows were written, rows
    for number, rows in enumerate(batches, 1):
        files.append((1, rows))
        if number % every:
            continue
        merged = alike([(place, size) for place, (_often, size) in enumerate(files)])
        if len(merged) > 1:
            places = {place for place, _rows in merged}
            assert sum(size for _place, size in merged) <= FILE_ROWS
            files = [
                *(each for place, each in enumerate(files) if place not in places),
                (1 + max(files[place][0] for place in places), sum(size for _place, size in merged)),
            ]
    assert sum(size for _often, size in files) == sum(batches)
    # below a full file, the tiniest rows may double so often; sizes that do not merge double from one to the next
    assert all(often <= 2 * FILE_ROWS.bit_length() for often, _size in files)
    assert len(files) <= every + FILE_ROWS.bit_length() + 2 * sum(batches) // (FILE_ROWS // 2) + 1
