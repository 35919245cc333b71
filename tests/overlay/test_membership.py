"""Link state by itself: what is news, which links count, and by whom a destination is reached."""

from __future__ import annotations

from tests.kits.calls import count_calls
from tieline.overlay.counts import Counts
from tieline.overlay.membership import MOST_ENDS, LinkState, Membership
from tieline.overlay.strategies.flood import Flood
from tieline.overlay.strategies.path import Path


def _square() -> Membership:
    """1 joined with 2 and 4, both joined with 3; the way by 4 is longer."""
    membership = Membership(1, 1, 0)
    membership.connect(2, 1)
    membership.connect(4, 1)
    for state in (
        LinkState(2, 1, 1, 0, {1: 1, 3: 1}),
        LinkState(3, 1, 1, 0, {2: 1, 4: 5}),
        LinkState(4, 1, 1, 0, {1: 1, 3: 5}),
    ):
        assert membership.heard(state)
    return membership


def test_only_a_newer_state_is_news() -> None:
    membership = _square()
    assert not membership.heard(LinkState(2, 1, 1, 0, {}))
    assert not membership.heard(LinkState(1, 9, 9, 0, {}))
    assert membership.heard(LinkState(2, 2, 0, 0, {}))
    assert membership.reachable == {2, 3, 4}


def test_whoever_hears_that_it_lived_later_goes_on_behind_that() -> None:
    membership = _square()
    assert not membership.is_outlived(LinkState(1, 1, 2, 0, {}))
    assert membership.is_outlived(LinkState(1, 3, 0, 7, {}))
    state = membership.outlive(4)
    assert (state.life, set(state.neighbours)) == (4, {2, 4})
    assert not membership.is_outlived(LinkState(1, 3, 99, 7, {}))


def test_a_link_counts_once_both_ends_name_it() -> None:
    membership = _square()
    membership.heard(LinkState(3, 1, 2, 0, {2: 1, 4: 5, 5: 1}))
    assert membership.reachable == {2, 3, 4}
    membership.heard(LinkState(5, 1, 1, 0, {3: 1}))
    assert membership.reachable == {2, 3, 4, 5}


def test_the_shortest_path_avoids_the_path_so_far_and_links_that_are_down() -> None:
    membership = _square()
    path = Path(membership, Counts())
    assert path.next_brokers(3, b"") == (2,)
    assert path.next_brokers(3, b"\x02") == (4,)
    assert path.next_brokers(3, b"\x02\x04") == ()
    membership.disconnect(2)
    assert path.next_brokers(3, b"") == (4,)
    assert path.next_brokers(9, b"") == ()


def test_a_flood_goes_everywhere_but_back() -> None:
    assert Flood(_square(), Counts()).next_brokers(3, b"\x02") == [4]


def test_links_are_looked_at_up_to_a_number_and_what_is_replaced_makes_room() -> None:
    membership = Membership(1, 1, 0)
    crowd = dict.fromkeys(range(1, 256), 1)
    told = [LinkState(broker, 1, 1, 0, crowd) for broker in range(2, 256)]
    for state in told:
        if membership.has_room(state):
            assert membership.heard(state)
    assert MOST_ENDS - 255 < membership.ends <= MOST_ENDS
    assert not membership.has_room(told[-1])
    assert membership.has_room(told[0]._replace(sequence=2)), "as many as before"
    assert membership.heard(told[0]._replace(sequence=2, neighbours={}))
    assert membership.has_room(told[-1])


def test_a_way_among_as_many_links_as_there_may_be_is_found_quickly() -> None:
    membership = Membership(1, 1, 0)
    brokers = range(2, 92)
    membership.connect(2, 1)
    for broker in brokers:
        others = {other: 1 + (broker * other) % 7 for other in brokers if other != broker}
        membership.heard(LinkState(broker, 1, 1, 0, others | ({1: 1} if broker == 2 else {})))
    assert membership.ends > 8_000
    path = Path(membership, Counts())
    assert path.next_brokers(50, b"") == (2,)
    membership.heard(LinkState(91, 1, 2, 0, {}))
    # each link is seen from both ends once, and no broker is looked at for each link that leads to it
    assert count_calls(lambda: path.next_brokers(50, b"")) < 40_000
    assert count_calls(lambda: path.next_brokers(51, b"")) < 25_000
