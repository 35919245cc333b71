"""Of several gateways of a region one carries what a publisher sends, whoever asks and whatever else is wanted."""

from __future__ import annotations

from tieline.overlay.interests.entries import Entry, Form, Said, Terms, put_said, read_said
from tieline.overlay.receivers.turns import Turns, gateway_mark, is_gateway, outside_name, region_of


def turns(*names: str, plain: tuple[str, ...] = ()) -> Turns:
    """Those who know some gateways of one region, and other brokers."""
    found = Turns(dict(enumerate((*names, *plain), 1)))
    found.regions |= dict.fromkeys(range(1, len(names) + 1), "west")
    return found


def test_each_publisher_has_one_gateway_and_each_gateway_some_publishers() -> None:
    three = turns("a", "b", "c", plain=("x",))
    chosen = [three.choose([1, 2, 3, 4], f"publisher {number}") for number in range(300)]
    assert all(len(each) == 2 and each[1] == 4 for each in chosen)
    shares = [sum(each[0] == gateway for each in chosen) for gateway in (1, 2, 3)]
    assert min(shares) > 60


def test_when_one_is_gone_only_its_publishers_change_hands() -> None:
    three, two = turns("a", "b", "c"), turns("a", "b")
    for number in range(100):
        publisher = f"publisher {number}"
        before = three.choose([1, 2, 3], publisher)
        if before != [3]:
            assert two.choose([1, 2], publisher) == before


def test_numbers_do_not_matter() -> None:
    one, other = turns("a", "b"), turns("b", "a")
    for number in range(50):
        first, second = one.choose([1, 2], f"p{number}"), other.choose([1, 2], f"p{number}")
        assert one.names[first[0]] == other.names[second[0]]


def test_gateways_of_different_regions_all_get_it() -> None:
    found = turns("a", "b")
    found.regions[2] = "east"
    assert found.choose([1, 2], "p") == [1, 2]


def test_a_mark_is_read_before_anything_that_is_wanted() -> None:
    wanted = {Entry("#", "g"): Terms(1, 1), Entry("!/x"): Terms(1), gateway_mark("west"): Terms(2, 1)}
    first = next(iter(read_said(put_said(Said(1, Form.WHOLE, 5, 0, wanted))).added))
    assert is_gateway(first)


def test_names() -> None:
    assert outside_name("gate.1", "west") == "gate.1@west"
    assert region_of("gate.1@west") == "west"
