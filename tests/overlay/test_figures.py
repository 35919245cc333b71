"""What one broker says of the network: who is there, by which links, and what waits."""

from __future__ import annotations

from itertools import pairwise

from tests.overlay.test_node import _joined
from tieline.overlay.figures import MOST_LINKS, OTHERS, brokers, by_link, counted, links, lost, own_links, totals
from tieline.overlay.links.links import Link
from tieline.overlay.links.patience import Patience


def test_of_two_brokers_one_is_here_and_one_behind_the_link() -> None:
    pair = _joined()
    here, there = brokers(pair.nodes[1])
    assert (here["name"], here["is_here"], here["via"], here["wants"]) == ("b1", True, [], 0)
    assert (there["name"], there["is_reachable"], there["via"], there["wants"]) == ("b2", True, ["b2"], 1)
    assert links(pair.nodes[1]) == [{"ends": ["b1", "b2"], "costs": [1, 1], "is_up": True, "is_own": True}]
    assert links(pair.nodes[2]) == links(pair.nodes[1])


def test_what_is_owed_to_a_broker_that_is_away_is_told() -> None:
    pair = _joined()
    for node in pair.nodes.values():
        node.closed(pair.handle, pair.now)
    pair.publish(b"one", b"two")
    pair.settle()
    _, there = brokers(pair.nodes[1])
    assert (there["is_reachable"], there["via"], there["owed"]) == (False, [], 2)
    found = totals(pair.nodes[1], 7)
    assert (found["links/up"], found["links/down"], found["owed/parcels"], found["useless"]) == (0, 1, 2, 7)
    assert found["brokers/known"] == 2 and found["brokers/reachable"] == 1
    # each says of itself that the link is gone, and of the other it has heard last that it is there
    assert links(pair.nodes[1]) == [{"ends": ["b1", "b2"], "costs": [None, 1], "is_up": False, "is_own": True}]
    (own,) = own_links(pair.nodes[1], pair.now + 2)
    assert (own["peer"], own["is_up"], own["since_s"]) == ("b2", False, 2.0)


def test_what_waits_for_a_link_and_for_its_next_broker_is_told_apart() -> None:
    pair = _joined(Patience(custody_bytes=1))
    pair.publish(b"a", assured=False)
    pair.publish(b"b", assured=False)
    pair.nodes[1].fill(pair.handle, 1 << 20, pair.now)
    (own,) = own_links(pair.nodes[1], pair.now)
    normal = next(one for one in own["classes"] if one["level"] == 1)
    assert (normal["sent"], normal["waiting"], own["unacknowledged"]) == (1, 1, 1)
    assert totals(pair.nodes[1], 0)["waiting/frames"] == 1


def test_there_are_never_many_names_of_links() -> None:
    pair = _joined()
    node = pair.nodes[1]
    for number in range(3, MOST_LINKS + 10):
        node.directory.add(f"x{number:03}")
        link = node.links[number] = Link(number, Patience(), node.counts)
        link.meter.sent_bytes[2] = 1
        link.meter.ended("silent", "nothing was heard of it for too long")
    found = by_link(node)
    assert len(found) == MOST_LINKS + 1 and found[0].peer == "b2" and found[0].up == 1
    assert found[-1].peer == OTHERS and found[-1].sent_bytes[2] == MOST_LINKS + 8 - MOST_LINKS
    assert lost(node) == {"silent": MOST_LINKS + 7}
    names = [link.peer for link in found[:-1]]
    assert all(one < other for one, other in pairwise(names))


def test_only_what_has_happened_is_counted() -> None:
    pair = _joined()
    assert "looped" not in counted(pair.nodes[1])
    pair.publish(b"one")
    pair.run(0.2)
    assert counted(pair.nodes[2])["taken"] == 1
