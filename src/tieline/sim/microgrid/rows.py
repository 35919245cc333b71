"""Blocks of the world as tables of messages: who sends what when, in the order of time, without an object per message.

The payloads of readings are written column by column, with Arrow's own formatting of numbers; the same bytes are
published and written to history.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final  # Any: pyarrow comes without types

import numpy as np
from numpy.typing import NDArray

from tieline.sim.microgrid.extra import need
from tieline.sim.microgrid.messages import Message, topic_of
from tieline.sim.microgrid.world import DEAD_V, Block, World

#: What a reading says beside its time and its node, and with how many decimals.
FIELDS: Final = (("voltage", 2), ("current", 2), ("power", 3), ("reactive", 3))
_FREQUENCY_DECIMALS: Final = 3


def tables(world: World, duration_s: float | None = None) -> Iterator[Any]:
    """The messages of the world as Arrow tables: ``sent_s``, ``kind``, ``topic``, ``payload``, ``client``.

    Each is in the order of time, and so are all of them together: what a meter sends after the end of a block waits
    for the next one.
    """
    pa: Any = need("pyarrow")
    waiting = None
    for block in world.blocks(duration_s):
        parts = [_readings(pa, world, block), _reports(pa, block.messages)]
        table = pa.concat_tables(parts if waiting is None else [waiting, *parts])
        sent = table["sent_s"].to_numpy()
        table = table.take(np.argsort(sent, kind="stable"))
        ready = int((sent < block.times[-1]).sum())
        waiting = table.slice(ready)
        yield table.slice(0, ready)
    if waiting is not None:
        yield waiting


def messages(world: World, duration_s: float | None = None) -> Iterator[list[Message]]:
    """The messages of the world, in batches, in the order of time."""
    for table in tables(world, duration_s):
        yield list(map(Message, *(column.to_pylist() for column in table.columns)))


def _readings(pa: Any, world: World, block: Block) -> Any:
    """All readings of a block, in the order in which the meters send them."""
    order = np.argsort(world.lags_s)
    steps, nodes = len(block.times), len(order)
    which = pa.array(np.tile(order, steps))
    sent = (block.times[:, np.newaxis] + world.lags_s[order]).ravel()
    topics = pa.array([topic_of(world.grid, node, "reading") for node in world.nodes])
    return pa.table(
        {
            "sent_s": sent,
            "kind": pa.array(["reading"]).take(pa.array(np.zeros(steps * nodes, np.int8))),
            "topic": topics.take(which),
            "payload": payloads(world.nodes, block, order),
            "client": pa.array(world.meters).take(which),
        }
    )


def payloads(nodes: Sequence[str], block: Block, order: NDArray[np.int64]) -> Any:
    """JSON for each step and, within a step, for each node in the given order."""
    pa: Any = need("pyarrow")
    compute: Any = need("pyarrow.compute")
    steps = len(block.times)
    times = pa.array([f'{{"time":{time:.3f},"node":"' for time in block.times])
    pieces = [
        times.take(pa.array(np.repeat(np.arange(steps), len(order)))),
        pa.array(nodes).take(pa.array(np.tile(order, steps))),
    ]
    before = '","'
    for name, decimals in FIELDS:
        values = getattr(block, name)[:, order].ravel()
        pieces += [f'{before}{name}":', _decimal(pa, values, decimals)]
        before = ',"'
    hertz = _decimal(pa, block.frequency, _FREQUENCY_DECIMALS)
    dead = pa.array((block.voltage[:, order] < DEAD_V).ravel())
    seen = compute.if_else(dead, "null", hertz.take(pa.array(np.repeat(np.arange(steps), len(order)))))
    joined = compute.binary_join_element_wise(*pieces, ',"frequency":', seen, "}", "")
    return joined.cast(pa.binary())


def _decimal(pa: Any, values: NDArray[np.float64], decimals: int) -> Any:
    # Adding zero turns -0.0 into 0.0, which is what a meter would show.
    return pa.array(np.round(values, decimals) + 0.0).cast(pa.string())


def _reports(pa: Any, said: Sequence[Message]) -> Any:
    """Everything but readings, as a table of the same columns."""
    columns = zip(*said, strict=True) if said else ((), (), (), (), ())
    types = (pa.float64(), pa.string(), pa.string(), pa.binary(), pa.string())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.table(dict(zip(Message._fields, arrays, strict=True)))
