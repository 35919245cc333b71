"""A hierarchical bitmap searched by compiled code.

:func:`warm` compiles, which takes seconds the first time and a fraction of one later.  It is called where an index is
built, so that no question has to wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, cast  # Any: numba has no types for what it hands to an instruction

import numpy as np
from numba import types
from numba.extending import intrinsic

from tieline.compiling import compiled
from tieline.match.box import everything
from tieline.match.index.bitmaps import PORTION, BitmapIndex
from tieline.match.index.buckets import BUCKETS
from tieline.match.index.protocol import NO_BOXES, Boxes
from tieline.match.index.slot_table import CHUNK, CHUNK_WORDS, NONE, WORD, Counts, Floats, Places, Words

F = TypeVar("F", bound=Callable[..., Any])

_ONE: Final = np.uint64(1)
#: From so many words of a chunk on it is faster to take all 64, several at a time.
_MANY: Final = 8


def _instruction(function: F) -> F:
    """A function that stands for one instruction of the processor."""
    return cast("F", intrinsic(function))


@_instruction
def _lowest(_context: Any, word: Any = None) -> Any:
    """The place of the lowest bit of a word that is not zero."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, 1))

    return word(word), generate


@_instruction
def _population(_context: Any, word: Any = None) -> Any:
    """The number of bits of a word that are set."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return word(word), generate


@compiled
def _bucket(bounds: Floats, attribute: int, value: float) -> int:
    """``bisect_right`` over the 63 boundaries of an attribute, in six steps."""
    place = 0
    step = BUCKETS // 2
    while step:
        if bounds[attribute, place + step - 1] <= value:
            place += step
        step >>= 1
    return place


@compiled
def _covers(corners: Floats, slot: int, question: Floats) -> bool:
    """Whether no corner of a slot's box is greater than that of the question."""
    for corner in range(question.size):  # noqa: SIM110 - the compiler knows no generators
        if corners[slot, corner] > question[corner]:
            return False
    return True


# Compiled functions take the arrays of a table one by one: numba knows no classes of ours.


@compiled
def _search(  # the arrays of a table, one by one
    question: Floats,
    bounds: Floats,
    summary: Words,
    words: Words,
    corners: Floats,
    ids: Places,
    links: Places,
    chunks: int,
    scratch: Words,
    out: Places,
    count: int,
) -> int:
    """Append the ids of all boxes that cover the one in question; the new length, even where the room ends before."""
    dimensions = bounds.shape[0]
    row, columns = scratch[:CHUNK_WORDS], scratch[CHUNK_WORDS:]
    width = 0
    for attribute in range(dimensions):
        low = _bucket(bounds, attribute, question[attribute])
        high = _bucket(bounds, attribute, -question[dimensions + attribute])
        columns[width] = attribute * BUCKETS + low
        width += 1
        if high != low:
            columns[width] = attribute * BUCKETS + high
            width += 1
    for chunk in range(chunks):
        candidates = summary[columns[0], chunk]
        for column in range(1, width):
            candidates &= summary[columns[column], chunk]
        if candidates == 0:
            continue
        if _population(candidates) > _MANY:
            for word in range(CHUNK_WORDS):
                row[word] = words[chunk, columns[0], word]
            for column in range(1, width):
                for word in range(CHUNK_WORDS):
                    row[word] &= words[chunk, columns[column], word]
        else:
            rest = candidates
            while rest:
                place = _lowest(rest)
                rest &= rest - _ONE
                bits = words[chunk, columns[0], place]
                for column in range(1, width):
                    bits &= words[chunk, columns[column], place]
                row[place] = bits
        while candidates:
            place = _lowest(candidates)
            candidates &= candidates - _ONE
            bits = row[place]
            while bits:
                slot = chunk * CHUNK + int(place) * WORD + int(_lowest(bits))
                bits &= bits - _ONE
                if not _covers(corners, slot, question):
                    continue
                # Of several boxes of one id that do, the last of its chain speaks for it.
                other = links[slot]
                while other != NONE and not _covers(corners, other, question):
                    other = links[other]
                if other == NONE:
                    if count < out.size:
                        out[count] = ids[slot]
                    count += 1
    return count


@compiled
def search_point(  # the arrays of a table, one by one
    question: Floats,
    bounds: Floats,
    summary: Words,
    words: Words,
    corners: Floats,
    ids: Places,
    links: Places,
    chunks: int,
    scratch: Words,
    out: Places,
) -> int:
    """The same for one point, of which only the lower corners are given."""
    dimensions = bounds.shape[0]
    for attribute in range(dimensions):
        question[dimensions + attribute] = -question[attribute]
    return _search(question, bounds, summary, words, corners, ids, links, chunks, scratch, out, 0)


@compiled
def search_all(  # the arrays of a table, one by one
    questions: Floats,
    counts: Counts,
    bounds: Floats,
    summary: Words,
    words: Words,
    corners: Floats,
    ids: Places,
    links: Places,
    chunks: int,
    scratch: Words,
    out: Places,
) -> int:
    """The same for several questions, one after the other; how many ids each has."""
    count = 0
    for number in range(len(questions)):
        before = count
        question = questions[number]
        count = _search(question, bounds, summary, words, corners, ids, links, chunks, scratch, out, count)
        counts[number] = count - before
    return count


@compiled
def set_slot(slot: int, question: Floats, bounds: Floats, summary: Words, words: Words, corners: Floats) -> None:
    """Store the box in question in a slot, and set its bits."""
    dimensions = bounds.shape[0]
    chunk, word, bit = slot // CHUNK, slot // WORD % CHUNK_WORDS, _ONE << np.uint64(slot % WORD)
    for corner in range(question.size):
        corners[slot, corner] = question[corner]
    for attribute in range(dimensions):
        low = _bucket(bounds, attribute, question[attribute])
        high = _bucket(bounds, attribute, -question[dimensions + attribute])
        for column in range(attribute * BUCKETS + low, attribute * BUCKETS + high + 1):
            words[chunk, column, word] |= bit
            summary[column, chunk] |= _ONE << np.uint64(word)


@compiled
def clear_slot(slot: int, bounds: Floats, summary: Words, words: Words, corners: Floats) -> None:
    """Clear the bits of a slot."""
    dimensions = bounds.shape[0]
    chunk, word, bit = slot // CHUNK, slot // WORD % CHUNK_WORDS, _ONE << np.uint64(slot % WORD)
    for attribute in range(dimensions):
        low = _bucket(bounds, attribute, corners[slot, attribute])
        high = _bucket(bounds, attribute, -corners[slot, dimensions + attribute])
        for column in range(attribute * BUCKETS + low, attribute * BUCKETS + high + 1):
            words[chunk, column, word] &= ~bit
            if words[chunk, column, word] == 0:
                summary[column, chunk] &= ~(_ONE << np.uint64(word))


class CompiledIndex(BitmapIndex):
    """A hierarchical bitmap, compiled."""

    def __init__(self, dimensions: int, boxes: Boxes = NO_BOXES) -> None:
        super().__init__(dimensions, boxes)
        #: Where a search notes the columns of its question, and the words that they leave in a chunk.
        self._scratch: Words = np.zeros(CHUNK_WORDS + 2 * dimensions, np.uint64)
        #: Where answers are written; grows with them.
        self._out: Places = np.zeros(1024, np.int32)
        self._counts = np.zeros(PORTION, np.int64)

    def match(self, row: Sequence[float]) -> list[int]:
        self._pack_point(self._buffer, 0, *row)
        table, out = self._table, self._out
        count = search_point(
            self._question,
            table.bounds,
            table.summary,
            table.words,
            table.corners,
            table.ids,
            table.links,
            table.chunks,
            self._scratch,
            out,
        )
        if count > out.size:
            self._make_room(count)
            return self._find()
        return cast("list[int]", out[:count].tolist())

    def _find(self) -> list[int]:
        return self._find_all(self._question[None])[1]

    def _find_all(self, questions: Floats) -> tuple[Counts, list[int]]:
        table, counts = self._table, self._counts[: len(questions)]
        while True:
            count = search_all(
                questions,
                counts,
                table.bounds,
                table.summary,
                table.words,
                table.corners,
                table.ids,
                table.links,
                table.chunks,
                self._scratch,
                self._out,
            )
            if count <= self._out.size:
                return counts, cast("list[int]", self._out[:count].tolist())
            self._make_room(count)

    def _make_room(self, count: int) -> None:
        self._out = np.zeros(count + count // 4, np.int32)

    def _enter(self, slot: int) -> None:
        table = self._table
        set_slot(slot, self._question, table.bounds, table.summary, table.words, table.corners)

    def _leave(self, slot: int) -> None:
        table = self._table
        clear_slot(slot, table.bounds, table.summary, table.words, table.corners)


def warm() -> None:
    """Compile everything, or load what was compiled before."""
    index = CompiledIndex(1)
    index.add(0, everything(1))
    index.match((0.0,))
    index.match_batch(((0.0,),))
    index.coverers(everything(1))
    index.remove(0)
