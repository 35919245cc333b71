"""Heaps in arrays: one of pairs (key, item), and one of nodes whose keys may become smaller while they wait."""

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


@compiled
def push_node(heap: Ints, place: Ints, size: int, key: Floats, node: int) -> int:
    """Put a node into the heap, or move it up when its key has become smaller; the new size of the heap."""
    hole = place[node]
    if hole < 0:
        hole = size
        size += 1
    while hole > 0:
        above = (hole - 1) >> 2
        other = heap[above]
        if key[other] <= key[node]:
            break
        heap[hole] = other
        place[other] = hole
        hole = above
    heap[hole] = node
    place[node] = hole
    return size


@compiled
def pop_node(heap: Ints, place: Ints, size: int, key: Floats) -> int:
    """Take the node with the smallest key; the caller knows that the heap is one smaller now."""
    top = heap[0]
    place[top] = -1
    size -= 1
    if size == 0:
        return int(top)
    node = heap[size]
    hole = 0
    while True:
        first = 4 * hole + 1
        if first >= size:
            break
        best = first
        for child in range(first + 1, min(first + 4, size)):
            if key[heap[child]] < key[heap[best]]:
                best = child
        other = heap[best]
        if key[other] >= key[node]:
            break
        heap[hole] = other
        place[other] = hole
        hole = best
    heap[hole] = node
    place[node] = hole
    return int(top)
