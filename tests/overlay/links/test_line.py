"""What waits for a link: a bound for each kind of thing, named drops with voids, and pieces of what is long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import TAG_BITS, Data, Notice, Numbered, Topic, lane_of
from tieline.overlay.frames.segments import SEGMENT, Segment
from tieline.overlay.links.line import LOOSE, NOTICES, Line
from tieline.overlay.links.patience import Patience


def line_of(most: int, least: int, counts: Counts | None = None, dropped: list[Data] | None = None) -> Line:
    lost = [] if dropped is None else dropped
    patience = Patience(
        queue_bytes=most, credit_bytes=most, least_bytes=least, dropped=lambda item, why, now: lost.append(item)
    )
    return Line(counts or Counts(), patience)


def data(number: int, *, level: int = 1, assured: bool = False, size: int = 100, origin: int = 1) -> Data:
    places = {2: number << TAG_BITS}
    return Data(lane_of(level, assured, 0), origin, 7, places, (bytes(size),), born=0.0, path=b"\x01")


def emptied(line: Line, room: int = 1 << 20) -> list[Numbered]:
    """Everything in its order, put together again where it went in pieces."""
    found: list[Numbered] = []
    while (item := line.pop(room, 0.0)) is not None:
        line.check()
        if not isinstance(item, Segment):
            found.append(item)
        elif item.is_last:
            found.append(item.item)
    assert line.is_empty
    assert len(line) == 0
    assert not line.is_congested
    line.check()
    return found


def test_of_one_level_what_came_first_goes_first() -> None:
    line = line_of(10_000, 1_000)
    items = [data(number, assured=number % 2 == 0) for number in range(1, 9)]
    for item in items:
        assert line.push(item, 0.0)
    line.settle(0.0)
    assert not line.is_congested
    assert emptied(line) == items


def test_what_is_kept_for_a_link_can_be_looked_at_also_while_a_policy_has_it_and_a_part_was_sent() -> None:
    line = line_of(10_000, 1_000)
    kept = [data(number, assured=True, size=3_000) for number in (1, 3)]
    urgent = data(9, assured=True, level=3)
    for item in (kept[0], data(2), kept[1], urgent):
        line.push(item, 0.0)
    for _ in range(2):
        assert list(line.assured(1)) == kept
        assert list(line.assured(3)) == [urgent]
        assert list(line.assured(0)) == []
        line.settle(0.0)
    assert line.is_congested
    assert line.pop(SEGMENT, 0.0) is urgent
    piece = line.pop(SEGMENT, 0.0)
    assert isinstance(piece, Segment) and not piece.is_last
    assert list(line.assured(1)) == kept and list(line.assured(3)) == []
    emptied(line)
    assert list(line.assured(1)) == []


def test_each_kind_of_thing_has_a_bound_of_its_own() -> None:
    line = line_of(1_000, 1_000)
    taken = [line.push(data(number, assured=True, level=number % 2), 0.0) for number in range(40)]
    assert 14 <= sum(taken) <= 20
    assert all(line.bytes[level] <= 1_200 for level in (0, 1))
    # neither QoS 0 nor another level nor notices are kept out by them
    assert line.push(data(99), 0.0)
    assert line.push(data(99, assured=True, level=2), 0.0)
    notices = [line.push(Notice(Topic.ASK, 1, 2, bytes(92)), 0.0) for _ in range(20)]
    assert 8 <= sum(notices) <= 11
    assert line.bytes[NOTICES] <= 1_200
    emptied(line)


def test_a_thin_link_keeps_what_it_carries_in_a_second_and_a_long_message_is_taken_nevertheless() -> None:
    line = line_of(1 << 20, 1_000)
    line.note_rate(2_000.0)
    assert line.assured_most == 2_000
    assert line.push(data(1, assured=True, size=50_000), 0.0)
    assert not line.push(data(2, assured=True), 0.0)
    line.note_rate(1.0)
    assert line.assured_most == 1_000
    line.note_rate(1e9)
    assert line.assured_most == 1 << 20


def test_without_room_the_lowest_level_gives_up_its_oldest_and_a_void_has_their_numbers() -> None:
    counts, lost = Counts(), list[Data]()
    line = line_of(2_000, 1_000, counts, lost)
    low, high = [data(number, level=0) for number in range(1, 31)], [data(number, level=2) for number in range(1, 6)]
    for item in (*low[:15], *high, *low[15:]):
        assert line.push(item, 0.0)
        line.check()
    assert line.bytes[LOOSE] <= 2_150
    assert lost == low[: len(lost)]
    assert counts.voided == len(lost) > 15
    found = emptied(line)
    assert [item for item in found if item.level == 2] == high
    void, *others = [item for item in found if item.level == 0]
    # voids that follow each other are one, and stand where the first of them stood
    assert isinstance(void, Data)
    assert (void.count, void.destinations) == (len(lost), {2: 1 << TAG_BITS})
    assert others == low[len(lost) :]


def test_a_void_that_has_gone_does_not_grow() -> None:
    line = line_of(500, 500)
    for number in range(1, 8):
        line.push(data(number), 0.0)
    void = line.pop(1_400, 0.0)
    assert isinstance(void, Data)
    assert not void.payloads
    gone = void.count
    for number in range(8, 15):
        line.push(data(number), 0.0)
    assert void.count == gone
    counted = gone + sum(item.count for item in emptied(line) if isinstance(item, Data))
    assert counted == 14


def test_voids_alone_do_not_fill_it() -> None:
    line = line_of(1_000, 1_000)
    for number in range(1, 2_000, 3):
        line.push(data(number).as_void(), 0.0)
        line.check()
    assert line.bytes[LOOSE] < 3_000


def test_one_message_that_is_too_long_for_the_bound_is_carried() -> None:
    line = line_of(1_000, 1_000)
    long = data(1, size=5_000)
    line.push(long, 0.0)
    assert emptied(line) == [long]


def test_between_the_pieces_of_something_long_goes_what_is_urgent() -> None:
    line = line_of(1 << 20, 1_000)
    long, urgent = data(1, level=0, size=20_000), data(1, level=3)
    line.push(long, 0.0)
    first = line.pop(2_000, 0.0)
    assert isinstance(first, Segment)
    line.push(urgent, 0.0)
    assert line.pop(2_000, 0.0) is urgent
    found = emptied(line, 2_000)
    assert found == [long]


def test_a_floor_counts_in_pieces() -> None:
    line = line_of(1 << 20, 1_000)
    line.push(data(1, level=0, size=50_000, assured=True), 0.0)
    for number in range(400):
        line.push(data(number, level=3, size=500, assured=True), 0.0)
    line.settle(0.0)
    levels = []
    for _ in range(200):
        item = line.pop(SEGMENT, 0.0)
        levels.append(item.item.level if isinstance(item, Segment) else item.level if item is not None else -1)
    pieces = levels.count(0)
    # a tenth of the bytes: one piece for about 25 urgent messages
    assert 5 <= pieces <= 10
    assert max(len(run) for run in "".join(map(str, levels)).split("3")) == 1


@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(1, 6_000)), max_size=40),
    st.lists(st.sampled_from([1, 1_400, 5_000, 100_000]), min_size=1, max_size=8),
    st.integers(500, 50_000),
    st.booleans(),
)
def test_whatever_comes_goes_or_is_turned_away_or_dropped_and_each_level_keeps_its_order(
    things: list[tuple[int, bool, int]], rooms: list[int], most: int, lost_once: bool
) -> None:
    dropped: list[Data] = []
    line = line_of(most, 500, Counts(), dropped)
    taken: list[Numbered] = []
    gone: list[Numbered] = []
    for number, (level, assured, size) in enumerate(things, 1):
        item = data(number, level=level, assured=assured, size=size)
        if line.push(item, 0.0):
            taken.append(item)
        line.check()
        if number % 3 == 0:
            some = line.pop(rooms[number % len(rooms)], 0.0)
            if isinstance(some, Segment):
                gone += [some.item] if some.is_last else []
            elif some is not None:
                gone.append(some)
            line.settle(0.0)
        if lost_once and number == len(things) // 2:
            line.take_back([])
            line.check()
    gone += emptied(line, rooms[0])
    carried = [item for item in gone if not (isinstance(item, Data) and not item.payloads)]
    assert sorted(map(id, carried)) == sorted(set(map(id, taken)) - set(map(id, dropped)))
    for level in range(4):
        mine = [item for item in carried if item.level == level]
        assert mine == [item for item in taken if item in mine]
    voids = sum(item.count for item in gone if isinstance(item, Data) and not item.payloads)
    assert voids == len(dropped)
    assert not any(item.lane & 8 for item in dropped)
