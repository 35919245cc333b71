"""What other brokers say of themselves: understood as a brief, or not at all."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.net.page.neighbours import STANDS_S, Neighbours, links
from tieline.net.page.seen import BrokerSeen

HERE = BrokerSeen(name="a", is_here=True)
CLIENT = {
    "client": "slow", "why": "busy", "waiting": 3, "waiting_bytes": 9, "oldest_s": 1.5, "behind": [1, 0], "dropped": 0,
}  # fmt: skip


def class_(level: int, sent: float, received: float) -> dict[str, Any]:
    return {"level": level, "sent_bytes_per_s": sent, "received_bytes_per_s": received, "waiting": 1}


def link(peer: str, **more: Any) -> dict[str, Any]:
    told = {"peer": peer, "is_up": True, "since_s": 5.0, "capacity": 1000.0, "round_trip_s": 0.01, "why": ""}
    return {**told, "classes": [class_(3, 100.0, 25.0)], **more}


def brief(**more: Any) -> dict[str, Any]:
    return {"state": "ok", "per_s": 5.0, "clients": 2, "lag_s": 0.001, "slowest": [CLIENT], "links": [], **more}


def net(*pairs: tuple[str, str, bool], own: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    names = sorted({name for one, other, _ in pairs for name in (one, other)} | {"a"})
    return {
        "name": "a",
        "own": [*own],
        "links": [{"ends": [one, other], "is_up": is_up} for one, other, is_up in pairs],
        "brokers": [{"name": name, "is_here": name == "a", "is_reachable": True} for name in names],
    }


def test_a_brief_stands_with_its_age_and_is_forgotten_in_the_end() -> None:
    known = Neighbours()
    known.heard({"b": brief()}, ["c"], 100.0)
    known.heard({}, ["b", "c"], 130.0)
    (_, b) = known.brokers(net(("a", "b", True)), HERE, 140.0)
    assert (b.per_s, b.clients, b.age_s) == (5.0, 2, 40.0) and known.silent == ["b", "c"]
    assert [(each.client, each.at) for each in known.slow()] == [("slow", "b")]
    known.heard({}, [], 100.0 + STANDS_S)
    (_, b) = known.brokers(net(("a", "b", True)), HERE, 800.0)
    assert b.age_s is None and b.per_s is None and known.slow() == []


def test_a_broker_is_silent_that_was_asked_and_owes_its_answer() -> None:
    known, joined = Neighbours(), net(("a", "b", True), ("a", "c", True))

    def silent(now: float) -> list[str]:
        return [each.name for each in known.brokers(joined, HERE, now) if each.is_silent]

    assert silent(0.0) == [], "nobody was asked"
    known.heard({"b": brief()}, ["c"], 100.0)
    assert silent(101.0) == ["c"]
    known.heard({}, ["b", "c"], 110.0)
    assert silent(111.0) == ["c"], "one answer that is late is no silence"
    known.heard({}, ["b", "c"], 116.0)
    assert silent(117.0) == ["b", "c"]
    assert silent(140.0) == [], "nobody has looked since, and so nobody has asked"


@pytest.mark.parametrize(
    "said",
    [
        {"error": "it may not read $SYS/#"}, {}, None, 7, brief(clients=-1), brief(per_s="many"), brief(state="great"),
        brief(slowest=[CLIENT] * 11), brief(slowest=[{**CLIENT, "behind": [9]}]), brief(lag_s=float("nan")),
        brief(slowest=[{**CLIENT, "client": "x" * 5_000}]), brief(links=[{"peer": "b"}]),
        brief(links=[link("b", classes=[class_(3, -1.0, 0.0)])]), brief(links=[link("b")] * 201),
    ],
)  # fmt: skip
def test_what_is_no_brief_counts_as_silence(said: object) -> None:
    known = Neighbours()
    known.heard({"b": said}, [], 1.0)
    assert known.silent == ["b"] and known.briefs() == {}


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda each: st.lists(each) | st.dictionaries(st.sampled_from(sorted(brief())), each),
    )
)
def test_nothing_that_others_say_raises(said: object) -> None:
    known = Neighbours()
    known.heard({"b": said}, [], 1.0)
    links(net(("a", "b", True)), known.briefs())
    known.brokers(net(("a", "b", True)), HERE, 2.0)


def test_a_link_has_the_numbers_of_the_end_that_told_them_and_its_own_first() -> None:
    known = Neighbours()
    known.heard({"b": brief(links=[link("a", why="theirs"), link("c", capacity=None)])}, [], 1.0)
    found = links(net(("a", "b", True), ("b", "c", True), ("c", "d", True), own=(link("b"),)), known.briefs())
    shown = {tuple(told["ends"]): told for _, told in found}
    assert shown["a", "b"]["told_by"] == "a" and shown["a", "b"]["to_bps"] == [200.0, 800.0]
    assert shown["a", "b"]["used"] == 0.8 and shown["a", "b"]["bps"] == 1000.0
    assert shown["b", "c"]["told_by"] == "b" and shown["b", "c"]["used"] is None
    assert shown["c", "d"]["bps"] is None and shown["c", "d"]["classes"] == []
    assert next(seen.ends for seen, _ in found) == ("a", "b"), "the fullest first"
    assert msgspec.json.encode([told for _, told in found])


def test_what_is_down_comes_first_also_where_nobody_names_it_any_more() -> None:
    found = links(net(("a", "c", False), own=(link("b", is_up=False, since_s=48.0, why="gone"), link("c"))), {})
    assert [(seen.name, seen.is_up) for seen, _ in found] == [("a – c", False), ("a – b", False)]
    assert found[1][1]["down_s"] == 48.0 and found[1][1]["why"] == "gone"
