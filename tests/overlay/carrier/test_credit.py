"""A full link turns messages away at their origins, which send them when there is room: nobody else waits for them."""

from __future__ import annotations

from tieline.core.timers import Timers
from tieline.overlay.carrier.credit import FREE, WAIT, Allowance, Credit, Crediting
from tieline.overlay.carrier.durable import Ends
from tieline.overlay.carrier.incarnations import Incarnations
from tieline.overlay.counts import Counts
from tieline.overlay.frames.fields import Reader, put, put_bytes
from tieline.overlay.frames.frame import TAG_BITS, Data, Notice, Numbered, Topic, lane_of
from tieline.overlay.links.links import Link
from tieline.overlay.links.patience import Patience

LANE = lane_of(1, True, 0)


def data(number: int, *, origin: int = 1, to: int = 3, size: int = 100, lane: int = LANE) -> Data:
    return Data(lane, origin, 7, {to: number << TAG_BITS}, (bytes(size),), born=0.0, path=b"\x01")


def link(most: int = 1_000, counts: Counts | None = None) -> Link:
    return Link(2, Patience(queue_bytes=most, credit_bytes=most, least_bytes=100), counts or Counts())


def sent(link: Link, most: int = 1 << 20) -> int:
    """Have the link write and the peer acknowledge; how many frames went."""
    parts: list[bytes] = []
    link.fill(parts, most, 0.0)
    count = link._number
    link.acknowledged(count)
    return count


def full(most: int = 1_000) -> tuple[Link, Credit, Data]:
    """A link on which no more fits, and the first message that was turned away."""
    thin, credit, number = link(most), Credit(), 1
    while thin.offer(data(number), 0.0):
        number += 1
    return thin, credit, data(number)


def place(number: int) -> int:
    return number << TAG_BITS


def test_who_is_turned_away_waits_and_comes_again_from_there_when_half_is_free() -> None:
    thin, credit, first = full()
    key, number = (1, 3, LANE), first.destinations[3]
    assert credit.refuse(first, 0.0) == [Allowance(key, number, WAIT)]
    # while it waits nothing of it is taken, so that nothing comes twice; and it is not told with every message
    assert credit.admit(data((number >> TAG_BITS) + 1), 0.1) == ({}, [])
    assert credit.admit(data((number >> TAG_BITS) + 2), 0.3) == ({}, [Allowance(key, number, WAIT)])
    assert credit.grant(thin, 0.4) == []
    assert sent(thin, 200) == 2
    assert credit.grant(thin, 0.5) == []
    sent(thin)
    (told,) = credit.grant(thin, 0.6)
    assert (told.key, told.place) == (key, number)
    assert told.room >= 1_000
    assert credit.grant(thin, 0.7) == []


def test_credit_is_used_up_and_given_again_and_who_does_not_use_it_is_free() -> None:
    thin, credit, first = full(4_000)
    credit.refuse(first, 0.0)
    number = first.destinations[3] >> TAG_BITS
    sent(thin)
    (told,) = credit.grant(thin, 1.0)
    came = 0
    while credit.admit(data(number + came), 1.1)[0]:
        came += 1
    assert told.room <= came * data(1).size < told.room + 200
    (again,) = credit.grant(thin, 1.2)
    # the one that was turned away is the first to come again
    assert (again.key, again.place) == ((1, 3, LANE), place(number + came))
    assert again.room > FREE
    assert credit.release(1.5) == []
    (free,) = credit.release(2.3)
    assert free.room == FREE
    assert len(credit) == 0
    assert credit.admit(data(5), 2.4) == ({3: place(5)}, [])


def test_room_is_shared_among_all_who_wait_and_levels_have_their_own() -> None:
    thin, credit, _ = full(100_000)
    for origin in (1, 4, 5, 6):
        credit.refuse(data(9, origin=origin), 0.0)
    other = lane_of(2, True, 0)
    assert credit.admit(data(1, lane=other), 0.0) == ({3: place(1)}, [])
    sent(thin)
    told = credit.grant(thin, 0.0)
    assert [each.key[0] for each in told] == [1, 4, 5, 6]
    assert sum(each.room for each in told) <= 101_000
    assert len({each.room for each in told}) == 1


def test_of_a_frame_for_several_those_go_who_need_not_wait() -> None:
    credit = Credit()
    credit.refuse(data(4), 0.0)
    both = Data(LANE, 1, 7, {3: place(5), 8: place(2)}, (b"x",), born=0.0, path=b"\x01")
    assert credit.admit(both, 0.0)[0] == {8: place(2)}


def test_streams_that_wait_are_not_remembered_without_end() -> None:
    credit = Credit()
    told = [len(credit.refuse(data(1, origin=origin, to=to), 0.0)) for origin in range(1, 101) for to in range(50)]
    assert sum(told) == len(credit) == 4_096


# -- a broker


class House:
    """One broker with one thin link, and what it tells others."""

    def __init__(self, most: int = 1_000) -> None:
        ends = Ends()
        ends.incarnations = {1: (77,), 4: (88,)}
        self.timers, self.counts = Timers(), Counts()
        self.link = link(most, self.counts)
        self.notices: list[Notice] = []
        self.limits: list[tuple[int, int, int, int]] = []
        self.crediting = Crediting(
            9,
            {1: "one", 3: "three", 4: "four"},
            links={2: self.link},
            incarnations=Incarnations(99, 1, ends),
            timers=self.timers,
            counts=self.counts,
            limit=lambda to, lane, where, room, now: self.limits.append((to, lane, where, room)),
            find={"three": 3}.get,
            pass_notice=lambda notice, now: self.notices.append(notice),
        )

    def offer(self, item: Numbered, *, is_single: bool = True) -> None:
        self.crediting.offer(self.link, item, 0.0, is_single=is_single)


def read(notice: Notice) -> list[tuple[str, int, int, int]]:
    reader, found = Reader(notice.body), []
    reader.integer()
    while not reader.is_over:
        found.append((reader.text(), reader.integer(), reader.integer(), reader.integer()))
    return found


def test_origins_hear_of_it_by_name_and_our_own_messages_wait_here() -> None:
    house = House(8_000)
    for number in range(1, 130):
        house.offer(data(number))
    house.offer(data(1, origin=9))
    (notice,) = house.notices
    assert (notice.topic, notice.source, notice.target) == (Topic.CREDIT, 9, 1)
    ((name, lane, where, room),) = read(notice)
    assert (name, lane, room) == ("three", LANE, WAIT)
    assert len(house.link) == (where >> TAG_BITS) - 1
    assert house.limits == [(3, LANE, place(1), WAIT)]
    assert house.counts.turned_away == 129 - (where >> TAG_BITS)
    sent(house.link)
    house.crediting.filled(house.link, 0.1)
    assert read(house.notices[-1])[0][3] > FREE
    assert house.limits[-1][3] > FREE
    # whoever does not come is free, and there is nothing left to look after
    while (due := house.timers.next()) is not None:
        house.timers.fire(due)
    assert read(house.notices[-1])[0][3] == FREE
    assert house.limits[-1][3] == FREE
    assert not house.crediting._credits


def test_a_full_link_tells_nobody_to_wait_where_others_carry_copies_nor_for_qos_0() -> None:
    house = House()
    for number in range(1, 30):
        house.offer(data(number), is_single=False)
        house.offer(data(number, lane=lane_of(0, False, 0)))
        house.offer(Notice(Topic.ASK, 1, 2, bytes(50)))
    assert not house.notices
    assert not house.limits
    assert house.counts.voided
    assert house.counts.link_full


def test_who_waits_for_a_link_that_is_lost_is_forgotten() -> None:
    house = House()
    for number in range(1, 30):
        house.offer(data(number))
    house.crediting.lost(2)
    sent(house.link)
    house.crediting.filled(house.link, 0.1)
    assert len(house.notices) == 1


def test_what_a_broker_on_the_way_tells_is_for_this_incarnation_and_brokers_that_are_known() -> None:
    house = House()
    tag = house.crediting._incarnations.tag

    def said(tag: int, name: str) -> Notice:
        return Notice(Topic.CREDIT, 1, 9, put(tag) + put_bytes(name.encode()) + put(LANE, place(4), 500))

    house.crediting.heard(said(tag, "three"), 0.0)
    assert house.limits == [(3, LANE, place(4), 500)]
    house.crediting.heard(said(tag, "nobody"), 0.0)
    house.crediting.heard(said(tag ^ 1, "three"), 0.0)
    assert len(house.limits) == 1
    assert house.counts.foreign_notices == 1
