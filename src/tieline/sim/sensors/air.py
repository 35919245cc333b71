"""The state of the medium as arrays: batteries, queues, routes, and what has been received.

Sensors have the numbers 0 to N - 1 and sinks follow them.  A frame is a row of whole numbers in its node's queue, and a
mask of the sinks that it is for.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tieline.sim.sensors.parameters import Parameters
from tieline.sim.sensors.world import Floats, Ints, Longs

Bytes = NDArray[np.uint8]


# --- the numbers of a frame
KIND, EVENT, DESTINATION, TAG, REFERENCE, RANK, BORN, TRIES, FLAGS, SOURCE, SCOPE = range(11)
FIELDS: Final = 11
#: Kinds.
DATA: Final = 0
CONTROL: Final = 1
#: Destinations that are no node: the sinks of the mask; everybody, each of whom repeats it once.
TO_SINKS: Final = -1
TO_ALL: Final = -2
#: Flags: a head that sends as far as it must in one hop; a frame that has passed the place where its sink was before.
BOOSTED: Final = 1
PAST_HOME: Final = 2
#: Sinks in one word of a mask; fewer than 63, so that no word is negative.
WORD: Final = 62

# --- what energy is spent for
SEND_DATA, SEND_CONTROL, RECEIVE_DATA, RECEIVE_CONTROL, MATCH, IDLE = range(6)
ACCOUNTS: Final = ("send_data", "send_control", "receive_data", "receive_control", "match", "idle")

# --- what is counted
SENT_DATA, SENT_CONTROL, FULL, REPLACED, GAVE_UP, NO_ROUTE, EXPIRED, DIED, SINK_GONE, TWICE = range(10)
COUNTERS: Final = (
    "sent_data",  # frames on the air, repetitions included
    "sent_control",
    "dropped_full",  # the queue was full, and the frame was not better than those in it
    "dropped_replaced",  # it gave its place in a full queue to a better one
    "dropped_gave_up",  # all repetitions were lost, or the receiver is dead
    "dropped_no_route",  # no living way leads there
    "dropped_expired",
    "dropped_died",  # it was in the queue of a node that died
    "dropped_sink_gone",  # the sink is not where the network believes it to be
    "received_twice",  # and noticed by the sink
)


class Rules(NamedTuple):
    """What does not change during a run."""

    sensors: int
    sinks: int
    electronics: float
    amplifier: float
    multipath: float
    crossover2: float
    range2: float
    interference2: float
    loss: float
    data_bits: float
    control_bits: float
    retries: int
    expiry: int
    #: Whether a full queue gives up the frame with the longest way, as PSM does.
    ranks_by_way: bool


class Air(NamedTuple):
    """What changes, all of it arrays that the compiled loop and Python share."""

    position: Floats
    alive: Bytes
    left: Floats
    spent: Floats
    died: Ints
    #: The sensors in reach of sensor n: ``neighbour[neighbour_start[n]:neighbour_start[n + 1]]``.
    neighbour_start: Ints
    neighbour: Ints
    #: The row of a destination in the next two, -1 if it has none; which hop a sensor takes, and how many are left.
    row: Ints
    next_hop: Ints
    hops: Ints
    #: Per row, the slot in which it was last asked.
    row_used: Ints
    queue: Ints
    mask: Longs
    length: Ints
    #: Where frames for a sink are sent; where they go on to from there; and over which sensor the sink itself sends.
    home: Ints
    pointer: Ints
    access: Ints
    #: The version of a flood with that tag that a sensor has heard last.
    heard: Ints
    #: Floods that a node has repeated, by number modulo the width.
    seen: Ints
    #: The slot in which a sink first received an event, -1 if never.
    received: Ints
    #: What protocols have sent and is not yet in a queue: the node, the frame, and its mask.
    outbox_node: Ints
    outbox: Ints
    outbox_mask: Longs
    #: The mask without a sink.
    no_sinks: Longs
    #: What reached the node that it was for: node, tag, event, reference, source.
    arrivals: Ints
    counters: Longs
    dice: Longs
    #: How many nodes are sending, and which; the slot in which the frame of each ends, 0 if it does not send.
    sending: Ints
    ends: Ints
    scratch: Ints
    #: The cluster of each sensor: a flood can be kept inside one.
    scope: Ints


def make_rules(parameters: Parameters, *, ranks_by_way: bool) -> Rules:
    """The numbers of the loop in joules, square metres and slots."""
    return Rules(
        sensors=parameters.nodes,
        sinks=parameters.sinks,
        electronics=parameters.electronics_nj * 1e-9,
        amplifier=parameters.amplifier_pj * 1e-12,
        multipath=parameters.multipath_pj * 1e-12,
        crossover2=parameters.crossover_m**2,
        range2=parameters.range_m**2,
        interference2=parameters.interference_m**2,
        loss=parameters.loss,
        data_bits=float(parameters.data_bits),
        control_bits=float(parameters.control_bits),
        retries=parameters.retries,
        expiry=parameters.slots(parameters.expiry_s),
        ranks_by_way=ranks_by_way,
    )


def make_air(
    parameters: Parameters, positions: Floats, neighbours: tuple[Ints, Ints], *, events: int, seed: int, rows: int
) -> Air:
    """Everybody alive, nothing sent."""
    sensors, sinks = parameters.nodes, parameters.sinks
    everybody = sensors + sinks
    words = -(-sinks // WORD)
    outgoing = max(4096, 4 * everybody)
    return Air(
        position=np.vstack((positions, np.zeros((sinks, 2)))),
        alive=np.ones(everybody, np.uint8),
        left=np.concatenate((np.full(sensors, parameters.battery_j), np.full(sinks, np.inf))),
        spent=np.zeros((everybody, len(ACCOUNTS))),
        died=np.full(everybody, -1, np.int32),
        neighbour_start=neighbours[0],
        neighbour=neighbours[1],
        row=np.full(everybody, -1, np.int32),
        next_hop=np.full((rows, sensors), -1, np.int32),
        hops=np.zeros((rows, sensors), np.int32),
        row_used=np.zeros(rows, np.int32),
        queue=np.zeros((everybody, parameters.queue, FIELDS), np.int32),
        mask=np.zeros((everybody, parameters.queue, words), np.int64),
        length=np.zeros(everybody, np.int32),
        home=np.zeros(sinks, np.int32),
        pointer=np.zeros(sinks, np.int32),
        access=np.zeros(sinks, np.int32),
        heard=np.full((sinks, everybody), -1, np.int32),
        seen=np.full((everybody, 1024), -1, np.int32),
        received=np.full((events, sinks), -1, np.int32),
        outbox_node=np.zeros(outgoing, np.int32),
        outbox=np.zeros((outgoing, FIELDS), np.int32),
        outbox_mask=np.zeros((outgoing, words), np.int64),
        no_sinks=np.zeros(words, np.int64),
        arrivals=np.zeros((8 * everybody, 5), np.int32),
        counters=np.zeros(len(COUNTERS), np.int64),
        dice=np.array([seed % 2147483562 + 1, (seed * 48271 + 11) % 2147483398 + 1], np.int64),
        sending=np.zeros(everybody + 1, np.int32),
        ends=np.zeros(everybody, np.int32),
        scratch=np.zeros(everybody, np.int32),
        scope=np.full(everybody, -1, np.int32),
    )
