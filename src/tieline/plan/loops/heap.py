"""A heap of pairs (key, item) in two arrays; equal items may lie in it several times."""

from __future__ import annotations

from tieline.compiling import compiled
from tieline.plan.arrays import Floats, Ints


@compiled
def push(keys: Floats, items: Ints, size: int, key: float, item: int) -> int:
    """Put a pair in; the new size of the heap."""
    hole = size
    while hole > 0:
        above = (hole - 1) >> 1
        if keys[above] <= key:
            break
        keys[hole] = keys[above]
        items[hole] = items[above]
        hole = above
    keys[hole] = key
    items[hole] = item
    return size + 1


@compiled
def pop(keys: Floats, items: Ints, size: int) -> int:
    """Take the item with the smallest key, which the caller has read; the heap is one smaller then."""
    top = items[0]
    size -= 1
    key = keys[size]
    item = items[size]
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[hole] = keys[child]
        items[hole] = items[child]
        hole = child
    keys[hole] = key
    items[hole] = item
    return int(top)
