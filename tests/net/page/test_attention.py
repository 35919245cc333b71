"""What needs attention, as a table: what is known, and what is said of it."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tieline.core.answers.why import MEANING
from tieline.net.page.attention import RULES, attention
from tieline.net.page.seen import BrokerSeen, ClassSeen, ClientSeen, LinkSeen, PlanFigures, PlanSeen, Seen
from tieline.net.page.verdicts import verdicts
from tieline.net.page.words import MOST

URGENT = ClassSeen(level=3, name="urgent", limit_s=0.1)
LOW = ClassSeen(level=0, name="low", limit_s=10.0)
HERE, SOUTH = BrokerSeen(name="here", is_here=True), BrokerSeen(name="south")


def late(of: ClassSeen, **more: Any) -> ClassSeen:
    return ClassSeen(**{**{name: getattr(of, name) for name in ("level", "name", "limit_s")}, **more})


def link(**more: Any) -> Seen:
    return Seen(brokers=(HERE, SOUTH), links=(LinkSeen(ends=("here", "south"), **more),))


#: What is known; the state, the beginning of the title, a part of the text, the command and the view of what is found.
TABLE: list[tuple[str, Seen, list[tuple[str, str, str, str, str]]]] = [
    ("nothing", Seen(), []),
    ("all is well", Seen(classes=(URGENT, LOW), connected=400, brokers=(HERE, SOUTH)), []),
    (
        "the store is full",
        Seen(store_trouble="no space left on device"),
        [("bad", "The store takes nothing", "no space left on device. Publishers", "tieline top", "messages")],
    ),
    (
        "one urgent message was lost",
        Seen(dropped_urgent_hour=1),
        [("bad", "1 urgent message was dropped", "last hour", "tieline why '*' dropped --class 3", "messages")],
    ),
    (
        "urgent messages are late by their p99",
        Seen(classes=(late(URGENT, p99_s=0.2), LOW)),
        [
            (
                "bad",
                "Messages of class urgent wait too long",
                "One of 100 waits for 200 ms",
                "tieline top --once",
                "messages",
            )
        ],
    ),
    (
        "a low class is late by its oldest",
        Seen(classes=(URGENT, late(LOW, oldest_s=12.0, p99_s=1.0, waiting=7))),
        [
            (
                "warn",
                "Messages of class low wait too long",
                "waited for 12 s, and 10 s",
                "tieline top --once",
                "messages",
            )
        ],
    ),
    ("exactly at the limit is in time", Seen(classes=(late(URGENT, p99_s=0.1),)), []),
    ("memory is half full", Seen(waiting_bytes=50, waiting_limit=100), []),
    (
        "memory is nearly full",
        Seen(waiting_bytes=80_000_000, waiting_limit=100_000_000),
        [
            (
                "warn",
                "Memory for waiting messages is nearly",
                "80.0 MB of 100 MB",
                "tieline clients --state slow",
                "clients",
            )
        ],
    ),
    (
        "memory is full",
        Seen(waiting_bytes=100, waiting_limit=100),
        [("bad", "Memory for waiting messages is full", "100 B of 100 B", "tieline clients --state slow", "clients")],
    ),
    ("no bound, no attention", Seen(waiting_bytes=1 << 40, waiting_limit=None), []),
    (
        "a slow client that has lost something",
        Seen(name="here", slow=(ClientSeen(client="archive", at="here", waiting=5840, oldest_s=0.2, dropped=1187),)),
        [("warn", "archive is too slow", "own socket (`busy`). 5,840 messages wait", "tieline why archive", "clients")],
    ),
    (
        "a client that acknowledges nothing, elsewhere",
        Seen(name="here", slow=(ClientSeen(client="t 2", at="mill", why="inflight_full", waiting=1, oldest_s=2.0),)),
        [("warn", "t 2 is too slow", "It is at broker mill.", "tieline why 't 2'", "clients")],
    ),
    ("a moment's wait is nothing", Seen(slow=(ClientSeen(client="c", waiting=3, oldest_s=0.4),)), []),
    ("who is away collects", Seen(slow=(ClientSeen(client="c", why="away", waiting=9, oldest_s=900, dropped=1),)), []),
    ("who has caught up lost it long ago", Seen(slow=(ClientSeen(client="c", why="caught_up", dropped=5),)), []),
    (
        "somebody sends too much",
        Seen(held=(ClientSeen(client="meters", why="rate"),)),
        [("warn", "meters is held", "sends faster than it may (`rate`)", "tieline why meters", "clients")],
    ),
    (
        "somebody waits for a full queue",
        Seen(held=(ClientSeen(client="p", why="queue_full", waits_for="archive"),)),
        [("warn", "p is held", "Its place is behind archive.", "tieline why p", "clients")],
    ),
    ("a loop that is 50 ms late", Seen(lag_s=0.05), []),
    (
        "a loop that is late",
        Seen(lag_s=0.2),
        [("warn", "The broker is late itself", "200 ms late", "tieline top", "messages")],
    ),
    (
        "a loop that is very late",
        Seen(lag_s=0.9),
        [("bad", "The broker is late itself", "900 ms late", "tieline top", "messages")],
    ),
    ("an accident", Seen(read_per_s=1000, unreadable_per_s=0.1), []),
    ("less than one in a hundred", Seen(read_per_s=1000, unreadable_per_s=9), []),
    (
        "payloads of another kind",
        Seen(read_per_s=1000, unreadable_per_s=250),
        [("warn", "Payloads cannot be read", "25 % of the", "tieline subscriptions --conditions", "clients")],
    ),
    ("a forgotten password", Seen(refused_logins=4), []),
    (
        "somebody tries passwords",
        Seen(refused_logins=1200),
        [("warn", "Logins are refused", "1,200 logins", "tieline top --once", "clients")],
    ),
    (
        "a broker that no link leads to",
        Seen(brokers=(HERE, BrokerSeen(name="mill", is_reachable=False, age_s=None))),
        [("bad", "Broker mill cannot be reached", "No link leads there", "tieline net", "network")],
    ),
    (
        "a broker that says nothing",
        Seen(brokers=(HERE, BrokerSeen(name="mill", age_s=20.0, is_silent=True))),
        [("warn", "Broker mill does not answer", "its last word is 20 s old", "tieline net", "network")],
    ),
    (
        "a link that is down, and a way around it",
        link(is_up=False, since_s=48.0, why="nothing was heard of it for too long"),
        [("bad", "Link here – south is down for 48 s", "Nothing was heard of it", "tieline net", "network")],
    ),
    (
        "a link that is down and was the only way",
        Seen(
            brokers=(HERE, BrokerSeen(name="south", is_reachable=False)),
            links=(LinkSeen(ends=("here", "south"), is_up=False),),
        ),
        [
            ("bad", "Broker south cannot be reached", "No link", "tieline net", "network"),
            ("bad", "Link here – south is down", "It was the only way there.", "tieline net", "network"),
        ],
    ),
    ("a link with room", link(bits_per_s=79.0, capacity=100.0), []),
    ("a link of which nothing is known", link(bits_per_s=1e9), []),
    (
        "a link that is nearly full",
        link(bits_per_s=88.0, capacity=100.0, waiting=1),
        [("warn", "Link here – south is 88 % full", "1 message waits for it.", "tieline net", "network")],
    ),
    (
        "a planner that only proposes",
        Seen(plan=PlanSeen(planner="proposed", planner_said="plan 13 could be applied")),
        [("warn", "A plan that would help waits", "Plan 13 could be applied.", "tieline plan status", "plan")],
    ),
    ("a planner that is content", Seen(plan=PlanSeen(planner="stays", planner_said="plan 12 stays")), []),
    (
        "a full link",
        link(bits_per_s=97.0, capacity=100.0, waiting=214),
        [("bad", "Link here – south is 97 % full", "214 messages wait for it.", "tieline net", "network")],
    ),
]


@pytest.mark.parametrize(("seen", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_table(seen: Seen, expected: list[tuple[str, str, str, str, str]]) -> None:
    found = attention(seen)
    assert len(found) == len(expected), found
    for finding, (state, title, text, command, view) in zip(found, expected, strict=True):
        assert (finding.state, finding.command, finding.view) == (state, command, view)
        assert finding.title.startswith(title) and text in finding.text, finding
        assert finding.text.endswith(".") and not finding.title.endswith("."), "sentences below a heading"


def test_every_rule_has_found_something() -> None:
    for rule in RULES:
        assert any([*rule(seen)] for _, seen, _ in TABLE), rule.__name__


def test_what_is_bad_comes_first_and_then_what_weighs_more() -> None:
    everything = Seen(
        classes=(late(URGENT, p99_s=0.3, oldest_s=0.2), late(LOW, oldest_s=60.0)),
        slow=(
            ClientSeen(client="light", waiting=1, waiting_bytes=10, oldest_s=2.0),
            ClientSeen(client="heavy", waiting=1, waiting_bytes=10_000_000, oldest_s=2.0),
        ),
        store_trouble="it is full",
        refused_logins=9,
    )
    found = attention(everything)
    states = [finding.state for finding in found]
    assert states == sorted(states) and found[0].title == "The store takes nothing"
    titles = [finding.title for finding in found]
    assert titles.index("heavy is too slow for what it asked for") < titles.index(
        "light is too slow for what it asked for"
    )


def test_the_sentence_of_each_view_when_all_is_well() -> None:
    seen = Seen(name="here", uptime_s=12.0, classes=(URGENT, LOW), sessions=3, connected=3, floor=0.1)
    views, findings = verdicts(seen)
    assert not findings and {view.state for view in views.values()} == {"ok"}
    assert {name: view.text for name, view in views.items()} == {
        "overview": "Everything is in order.",
        "messages": "Urgent first: nothing urgent waits or was dropped.",
        "clients": "Every client keeps up.",
        "network": "This broker stands alone.",
        "plan": "There is nothing to plan: this broker stands alone.",
    }
    assert views["overview"].detail == "1 broker · 3 clients · up 12 s"
    assert views["clients"].detail == "3 of 3 are caught up"


def test_the_sentences_when_something_is_wrong() -> None:
    slow = tuple(ClientSeen(client=f"c{number}", waiting=2, oldest_s=3.0) for number in range(3))
    views, findings = verdicts(Seen(classes=(URGENT,), slow=slow, sessions=412, connected=412, waiting=3, held_count=1))
    assert len(findings) == 3
    assert views["overview"].text == "Urgent messages arrive in time. Three things need attention."
    assert (views["overview"].state, views["overview"].badge) == ("warn", 3)
    assert views["clients"].text == "Three clients are slower than what they asked for."
    assert views["clients"].detail == "408 of 412 are caught up · 1 is held"
    one, _ = verdicts(Seen(slow=slow[:1]))
    assert one["clients"].text == "One client is slower than what it asked for."
    assert one["overview"].text.endswith("One thing needs attention.")
    urgent, _ = verdicts(Seen(classes=(late(URGENT, oldest_s=5.0),)))
    assert urgent["overview"].text.startswith("Urgent messages are late.") and urgent["messages"].state == "bad"
    lost, _ = verdicts(Seen(dropped_urgent_hour=2))
    assert lost["overview"].text.startswith("Urgent messages were lost.")
    assert lost["messages"].text == "Two urgent messages were dropped within the last hour."


def test_the_sentences_about_the_network_and_its_plan() -> None:
    down, _ = verdicts(link(is_up=False, since_s=3.0))
    assert down["network"].text == "One link of 1 is down; its traffic found another way."
    well, _ = verdicts(link())
    assert well["network"].text == "All 2 brokers can be reached, and the link is up."
    gone, _ = verdicts(Seen(brokers=(HERE, BrokerSeen(name="x", is_reachable=False))))
    assert gone["network"].text == "One broker cannot be reached."
    none, _ = verdicts(Seen(plan=PlanSeen()))
    assert none["plan"].text == "No plan is in force: messages take the shortest ways."
    some, _ = verdicts(Seen(plan=PlanSeen(epoch=12, name="net", topics=3, planned=99, astray=1)))
    assert some["plan"].text == "Plan 12 (net) is in force."
    assert some["plan"].detail == "3 topics of this broker · 99 % of what was published here went by it"
    good = PlanFigures(is_applied=True, requests=214, unmet=0, gap=0.004, waited=7_000.0, waits=0.0)
    applied, _ = verdicts(Seen(plan=PlanSeen(epoch=13, topics=3, figures=good)))
    assert applied["plan"].text == "Plan 13 serves all 214 requests, and no plan can be cheaper by more than 0.4 %."
    assert applied["plan"].detail.startswith("Before it 7.0 kB waited for links, and 0 B now · ")
    waits, _ = verdicts(Seen(plan=PlanSeen(figures=replace(good, is_applied=False, unmet=4, gap=0.0))))
    assert waits["plan"].text == "A plan waits that would serve 210 of 214 requests, and no plan is cheaper."
    blind, _ = verdicts(Seen(plan=PlanSeen(epoch=1, figures=replace(good, gap=None))))
    assert blind["plan"].text == "Plan 1 serves all 214 requests."
    assert verdicts(Seen(grid="microgrid/+/+/reading"))[0]["grid"].detail == "`microgrid/+/+/reading`"


@given(st.text(min_size=1, max_size=2 * MOST))
def test_whatever_a_client_calls_itself_its_command_is_one_harmless_line(name: str) -> None:
    (finding,) = attention(Seen(slow=(ClientSeen(client=name, waiting=1, oldest_s=9.0),)))
    words = shlex.split(finding.command)
    if words[:2] == ["tieline", "why"]:
        assert words[-1] == name and words[2:-1] in ([], ["--"])
    else:
        assert finding.command == "tieline clients --state slow"
        assert not name.isprintable() or len(name) > MOST
    shown = finding.title + finding.text + finding.subject
    assert shown.isprintable() and len(finding.subject) <= MOST


def test_every_reason_has_its_words() -> None:
    for why in MEANING:
        views, findings = verdicts(Seen(held=(ClientSeen(client="c", why=why),)))
        assert f"`{why}`" in findings[0].text and views["clients"].text == "c is held."
