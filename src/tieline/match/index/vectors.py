"""A hierarchical bitmap searched with numpy alone: the same table as the compiled code, many words in one operation.

One question is a batch of one: the steps below work on all words of all questions that are still of interest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast  # Any: views of one array as another type

import numpy as np
from numpy.typing import NDArray

from tieline.match.index.bitmaps import BitmapIndex
from tieline.match.index.buckets import BUCKETS
from tieline.match.index.slot_table import CHUNK, CHUNK_WORDS, WORD, Counts, Floats, Places, Words

Integers = NDArray[np.intp]


class VectorIndex(BitmapIndex):
    """A hierarchical bitmap, in numpy."""

    def match(self, row: Sequence[float]) -> list[int]:
        self._pack(self._buffer, 0, *row, *[-value for value in row])
        return self._find()

    def _find(self) -> list[int]:
        _, ids = self._search(self._question[None])
        return cast("list[int]", ids.tolist())

    def _find_all(self, questions: Floats) -> tuple[Counts, list[int]]:
        askers, ids = self._search(questions)
        return np.bincount(askers, minlength=len(questions)), ids.tolist()

    def _search(self, questions: Floats) -> tuple[Integers, Places]:
        """All answers: the number of the question, ascending, and the id."""
        table = self._table
        columns = self._columns(questions)
        chunks, width = table.chunks, len(table.summary)
        summary = table.summary[columns[0], :chunks]
        for column in columns[1:]:
            summary &= table.summary[column, :chunks]
        # Chunks are counted again for each question: one number stands for both.
        which, word = _bits(summary)
        asker, chunk = np.divmod(which, chunks)
        start = chunk * (width * CHUNK_WORDS) + word
        flat = table.words.reshape(-1)
        bits = flat.take(start + columns[0].take(asker) * CHUNK_WORDS)
        for column in columns[1:]:
            bits &= flat.take(start + column.take(asker) * CHUNK_WORDS)
        origin, bit = _bits(bits)
        slot = (chunk * CHUNK + word * WORD).take(origin) + bit
        asker = asker.take(origin)
        corners, covers = table.corners.take(slot, axis=0), np.ones(len(slot), np.bool_)
        for corner in range(2 * self.dimensions):
            covers &= corners[:, corner] <= questions[:, corner].take(asker)
        asker, ids = asker[covers], table.ids[slot[covers]]
        if self._repeats:
            # An id that answers by several boxes answers once.
            asker, ids = np.divmod(np.unique(asker << 32 | ids), 1 << 32)
        return asker, ids

    def _columns(self, questions: Floats) -> list[Integers]:
        """The columns whose AND leaves the candidates: by attribute, those of both ends, or the one they agree on."""
        columns = []
        for attribute, bounds in enumerate(self._table.bounds):
            low = bounds.searchsorted(questions[:, attribute], "right")
            high = bounds.searchsorted(-questions[:, self.dimensions + attribute], "right")
            columns.append(low + attribute * BUCKETS)
            if low.tobytes() != high.tobytes():
                columns.append(high + attribute * BUCKETS)
        return columns

    def _enter(self, slot: int) -> None:
        table = self._table
        table.corners[slot] = self._question
        chunk, word, bit = slot // CHUNK, slot // WORD % CHUNK_WORDS, np.uint64(1 << slot % WORD)
        for columns in self._overlapped(self._question):
            table.words[chunk, columns, word] |= bit
            table.summary[columns, chunk] |= np.uint64(1 << word)

    def _leave(self, slot: int) -> None:
        table = self._table
        chunk, word, bit = slot // CHUNK, slot // WORD % CHUNK_WORDS, np.uint64(1 << slot % WORD)
        for columns in self._overlapped(table.corners[slot]):
            words = table.words[chunk, columns, word]
            words &= ~bit
            table.summary[columns, chunk] ^= (words == 0) * np.uint64(1 << word)

    def _overlapped(self, corners: Floats) -> list[slice]:
        """By attribute, the columns that a box overlaps."""
        overlapped = []
        for attribute, bounds in enumerate(self._table.bounds):
            low = int(bounds.searchsorted(corners[attribute], "right"))
            high = int(bounds.searchsorted(-corners[self.dimensions + attribute], "right"))
            overlapped.append(slice(attribute * BUCKETS + low, attribute * BUCKETS + high + 1))
        return overlapped


def _bits(words: Words) -> tuple[Integers, Integers]:
    """All bits that are set: the number of the word, and the place in it."""
    words = words.reshape(-1)
    filled = np.flatnonzero(words)
    octets: NDArray[Any] = words.take(filled).astype("<u8", copy=False).view(np.uint8)
    places = np.flatnonzero(np.unpackbits(octets, bitorder="little").view(np.bool_))
    return filled.take(places >> 6), places & 63
