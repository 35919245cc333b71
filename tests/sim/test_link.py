from __future__ import annotations

from random import Random

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tieline.sim.clock import GENESIS, Clock
from tieline.sim.link import VirtualLink, Way

_ways = st.builds(
    Way,
    delay_s=st.sampled_from((0.0, 0.01, 0.5)),
    rate=st.sampled_from((100.0, 16_000.0, float("inf"))),
    buffer=st.integers(1, 3_000),
    window=st.integers(1, 3_000),
    segment=st.integers(1, 1_500),
)
_deeds = st.one_of(
    st.tuples(st.just("write"), st.integers(1, 4_000)),
    st.tuples(st.just("write"), st.integers(1, 4_000)),
    st.tuples(st.just("read"), st.integers(1, 4_000)),
    st.tuples(st.just("pass"), st.sampled_from((0.0, 0.001, 0.02, 1.0, 30.0))),
    st.tuples(st.just("silence"), st.booleans()),
    st.tuples(st.just("speak"), st.booleans()),
    st.tuples(st.just("shorten"), st.sampled_from((0.0, 0.005))),
    st.tuples(st.sampled_from(("close", "break", "refuse")), st.none()),
)


def linked(clock: Clock, there: Way, back: Way, seed: int | None = None) -> tuple[VirtualLink, VirtualLink]:
    random = Random(seed)
    split = None if seed is None else lambda most: random.randint(1, most)
    out, into = VirtualLink(clock, there, split=split), VirtualLink(clock, back, split=split)
    out.back, into.back = into, out
    return out, into


class Story:
    """What was written into a link and what was read from it; every byte says where it was."""

    def __init__(self, there: Way, back: Way, seed: int | None) -> None:
        self.clock = Clock()
        self.link, self.back = linked(self.clock, there, back, seed)
        self.written = self.read = b""
        self.tapped: list[tuple[float, bytes]] = []
        self.link.tap = lambda now, data: self.tapped.append((now, data))
        self.is_over = False

    def do(self, deed: str, much: float) -> None:
        link = self.link
        match deed:
            case "write":
                data = bytes((len(self.written) + at) % 251 for at in range(int(much)))
                held = link.held
                taken = link.write(data)
                assert taken == len(data) or self.is_over or held + taken == max(held, link.way.buffer)
                self.written += data[:taken]
            case "read":
                self.read += link.read(int(much))
            case "pass":
                self.clock.run_for(much)
            case "silence":
                (self.back if much else link).fall_silent()
            case "speak":
                (self.back if much else link).speak()
            case "shorten":
                link.way = Way(delay_s=much, rate=link.way.rate, buffer=link.way.buffer, window=link.way.window)
            case "close":
                link.close()
                self.is_over = True
            case "break":
                link.break_off()
                self.is_over = True
            case "refuse":
                link.refuse()
        self.check()

    def check(self) -> None:
        """Nothing is invented, doubled or forgotten, and the order is that of writing."""
        link = self.link
        assert link.written == len(self.written)
        assert link.read_bytes == len(self.read)
        assert link.written == link.read_bytes + len(link.unread) + link.flying + link.unsent + link.lost
        assert self.written.startswith(self.read + bytes(link.unread))
        assert len(link.unread) <= link.way.window
        arrived = b"".join(data for _, data in self.tapped)
        assert self.written.startswith(arrived)
        assert self.tapped == sorted(self.tapped, key=lambda one: one[0])


@given(_ways, _ways, st.none() | st.integers(0, 9), st.lists(_deeds, max_size=40))
def test_what_is_written_arrives_in_order_or_is_on_its_way_or_was_lost_with_the_line(
    there: Way, back: Way, seed: int | None, deeds: list[tuple[str, float]]
) -> None:
    story = Story(there, back, seed)
    for deed, much in deeds:
        story.do(deed, much)
    story.do("speak", False)
    story.do("speak", True)
    for _ in range(len(story.written) // min(there.window, 100) + 2):
        story.do("pass", 60.0)
        story.do("read", 1 << 20)
    names = {deed for deed, _ in deeds}
    if not names & {"close", "break", "refuse"}:
        assert story.read == story.written, "everything arrives in the end"
        assert story.link.held == 0, "and the sender knows it"
        event("nothing ended")
    elif not names & {"break", "refuse"}:
        assert len(story.read) + story.link.lost == len(story.written), "only what came after the end is lost"
        assert story.link.is_over
        event("closed")
    elif "refuse" not in names:
        assert story.link.is_over and story.link.is_readable
        event("broken")


@given(st.integers(0, 99))
def test_the_same_seed_cuts_the_same_pieces_and_another_one_others(seed: int) -> None:
    def pieces(seed: int) -> list[tuple[float, bytes]]:
        story = Story(Way(rate=10_000), Way(), seed)
        story.do("write", 20_000)
        for _ in range(5):
            story.do("pass", 1.0)
            story.do("read", 20_000)
        return story.tapped

    assert pieces(seed) == pieces(seed)
    assert pieces(seed) != pieces(seed + 1)


def test_a_byte_takes_its_share_of_the_rate_and_the_delay() -> None:
    clock = Clock()
    link, _ = linked(clock, Way(delay_s=0.25, rate=16_000, segment=1_000), Way(delay_s=0.5))
    heard: list[tuple[float, int]] = []
    link.on_readable = lambda: heard.append((clock.now - GENESIS, len(link.unread)))
    assert link.write(bytes(2_500)) == 2_500
    clock.run_for(0.4)
    assert heard == [(0.3125, 1_000), (0.375, 2_000)]
    clock.run_for(0.1)
    assert heard[2:] == [(0.40625, 2_500)]
    assert link.held == 2_500, "nobody has told the sender"
    clock.run_until(GENESIS + 0.8125)
    assert link.held == 1_500, "half a second later"
    clock.run_for(1)
    assert link.held == 0


def test_a_line_without_a_rate_takes_only_its_delay() -> None:
    clock = Clock()
    link, _ = linked(clock, Way(delay_s=0.25), Way())
    link.write(bytes(60_000))
    clock.run_for(0.249)
    assert link.flying == 60_000
    clock.run_for(0.001)
    assert len(link.read(60_000)) == 60_000


def test_nothing_overtakes_on_a_way_that_has_become_shorter() -> None:
    clock = Clock()
    link, _ = linked(clock, Way(delay_s=1.0), Way())
    heard: list[tuple[float, bytes]] = []
    link.tap = lambda now, data: heard.append((now - GENESIS, data))
    link.write(b"first")
    link.way = Way(delay_s=0.25)
    link.write(b"second")
    clock.run_for(1.5)
    link.write(b"third")
    clock.run_for(1)
    assert heard == [(1.0, b"first"), (1.0, b"second"), (1.75, b"third")]


def test_a_receiver_that_does_not_read_stops_the_sender_and_one_that_reads_again_lets_it_go_on() -> None:
    clock = Clock()
    link, _ = linked(clock, Way(buffer=5_000, window=3_000), Way(delay_s=0.5))
    told: list[float] = []
    link.on_writable = lambda: told.append(clock.now - GENESIS)
    assert link.write(bytes(10_000)) == 5_000
    clock.run_for(10)
    assert told == [0.5], "what has arrived makes room"
    assert link.write(bytes(10_000)) == 3_000
    clock.run_for(10)
    assert len(link.unread) == 3_000 and link.unsent == 5_000
    assert told == [0.5]
    assert len(link.read(1_000)) == 1_000
    clock.run_for(10)
    assert told == [0.5, 21.0], "the news of the room, and then that of the bytes which came into it"
    assert len(link.unread) == 3_000


def test_a_line_that_was_silent_sends_again_what_was_on_it() -> None:
    clock = Clock()
    link, _ = linked(clock, Way(delay_s=1.0), Way())
    link.write(b"before")
    clock.run_for(0.5)
    link.fall_silent()
    link.write(b" and meanwhile")
    clock.run_for(100)
    assert not link.unread
    link.speak()
    clock.run_for(1.0)
    assert link.read(100) == b"before and meanwhile"


def test_news_do_not_come_over_a_silent_line() -> None:
    clock = Clock()
    link, back = linked(clock, Way(), Way())
    back.fall_silent()
    link.write(b"x")
    clock.run_for(10)
    assert link.read(1) == b"x"
    assert link.held == 1
    back.speak()
    assert link.held == 0


def test_a_broken_line_loses_what_has_not_arrived() -> None:
    clock = Clock()
    link, _ = linked(clock, Way(delay_s=1.0), Way())
    link.write(b"first")
    clock.run_for(1.0)
    link.write(b"second")
    clock.run_for(0.5)
    link.break_off()
    assert link.lost == 6
    assert link.write(b"third") == 5, "it goes nowhere"
    seen = []
    for seconds in (0.99, 0.01):
        clock.run_for(seconds)
        seen.append((link.is_over, link.is_readable))
    assert seen == [(False, True), (True, True)]
    assert link.is_broken
    assert link.read(100) == b"first", "what has arrived can be read"
    assert link.lost == 11


@pytest.mark.parametrize(
    "wrong", [{"rate": 0}, {"rate": -1}, {"delay_s": -1}, {"buffer": 0}, {"window": 0}, {"segment": 0}]
)
def test_a_way_on_which_nothing_arrives_is_none(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="nothing would ever arrive"):
        Way(**wrong)
