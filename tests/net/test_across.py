"""Questions over real links: every broker answers within the rights of whoever asks, in time, or it is named."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from contextlib import ExitStack
from functools import partial
from time import monotonic
from typing import Any

import msgspec

from tests.kits.dial import dial
from tests.kits.patience import PATIENCE_S, until
from tests.net.test_peers import line, node_of, reaches, settings, subscribe
from tieline.conf.overlay import Peer
from tieline.conf.schema import Rule
from tieline.net.across import _fitting
from tieline.overlay.questions import LONGEST
from tieline.pytest_plugin import BrokerThread


def ask(broker: BrokerThread, do: str, **fields: Any) -> dict[str, Any]:
    """What a broker answers to its operator, with what others have to say."""
    across = broker._server.across
    assert across is not None and broker._loop is not None
    asked = across.answer({"do": do, **fields}, monotonic())
    return asyncio.run_coroutine_threadsafe(asked, broker._loop).result(PATIENCE_S)


def ask_all(broker: BrokerThread, **question: Any) -> dict[str, Any]:
    """The same question put to all others."""
    across = broker._server.across
    assert across is not None and broker._loop is not None
    return asyncio.run_coroutine_threadsafe(across.of_all({}, question), broker._loop).result(PATIENCE_S)


def test_a_session_is_found_wherever_it_is() -> None:
    with line("a", "b", "c") as (a, _b, c), dial(c.urls[0], "far") as far:
        subscribe(far, "x", 1)
        found = ask(a, "why", client="far")
        assert not found["is_known"] and list(found["others"]) == ["c"] and found["silent"] == []
        assert found["others"]["c"]["steps"][0]["text"].startswith("far is connected from")
        found = ask(a, "why", client="far", ask="subscribe", subject="x")
        assert any(step["stage"] == "subscribed" for step in found["others"]["c"]["steps"])
        assert ask(a, "why", client="nobody")["others"] == {}
        assert "others" not in ask(c, "why", client="far")


def test_a_message_is_followed_to_those_who_get_it_at_other_brokers() -> None:
    with line("a", "b", "c") as (a, b, c), dial(c.urls[0], "far") as far, dial(b.urls[0], "near") as near:
        subscribe(far, "x?v > 5", 1)
        subscribe(near, "x?changed(v)", 1)
        payload = b64encode(b'{"v": 9}').decode()
        found = ask(a, "trace", topic="x", payload=payload, qos=1, client="")
        assert [one["fate"] for one in found["receivers"]] == ["carried", "carried"]
        assert {name: [one["client"] for one in there["receivers"]] for name, there in found["others"].items()} == {
            "b": ["near"],
            "c": ["far"],
        }
        assert found["others"]["c"]["steps"][0]["text"] == "accepted by broker a, with level 1, normal"
        # of a condition that this broker can ask, those whose condition does not hold are not even asked
        small = b64encode(b'{"v": 1}').decode()
        assert list(ask(a, "trace", topic="x", payload=small, qos=1)["others"]) == ["b"]


def test_rules_for_reading_are_those_of_the_broker_that_is_asked() -> None:
    rules = Rule(filter="secret/#", deny=("read",)), Rule(filter="#", allow="all")
    conf = msgspec.structs.replace(settings("b"), rule=rules)
    with BrokerThread(conf) as b, BrokerThread(settings("a", b.urls[1])) as a:
        until(partial(reaches, a, 1), "they are joined")
        with dial(b.urls[0], "reader") as reader:
            subscribe(reader, "#", 0)
            (told,) = ask(a, "trace", topic="secret/1")["others"]["b"]["receivers"]
            assert told["fate"] == "passed_over" and "may not read" in told["text"]
            (told,) = ask(a, "trace", topic="open/1")["others"]["b"]["receivers"]
            assert told["fate"] == "sent"


def test_all_brokers_tell_how_they_are_doing() -> None:
    with line("a", "b", "c") as (a, _b, c), dial(c.urls[0], "far"):
        found = ask_all(a, do="top")
        assert {name: each["clients"]["connected"] for name, each in found["others"].items()} == {"b": 0, "c": 1}
        found = ask_all(a, do="net")
        assert {name: len(each["own"]) for name, each in found["others"].items()} == {"b": 2, "c": 1}
        assert ask(a, "drops", all=True)["others"]["b"]["drops"] == []
        assert "others" not in ask(a, "drops")
        found = ask_all(a, do="reload")
        assert {each["error"] for each in found["others"].values()} == {"this broker does not answer that"}
        assert ask_all(a, do="why")["others"]["b"]["error"].startswith("object missing required field")


def test_a_peer_with_rights_hears_what_it_may_read_and_no_names() -> None:
    rights = Peer(name="b", may=("read open/#",))
    guarded = msgspec.structs.replace(settings("a"), peer=(rights,))
    with ExitStack() as stack:
        a = stack.enter_context(BrokerThread(guarded))
        b = stack.enter_context(BrokerThread(settings("b", a.urls[1])))
        c = stack.enter_context(BrokerThread(settings("c", a.urls[1])))
        for broker in (a, b, c):
            until(partial(reaches, broker, 2), "all are joined")
        here = stack.enter_context(dial(a.urls[0], "nobody's business"))
        subscribe(here, "#", 0)
        for what in ({"do": "top"}, {"do": "why", "client": "nobody's business"}):
            found = ask_all(b, **what)
            assert found["others"] == {"a": {"error": "it may not read $SYS/#"}}
            # whoever is behind its peer is not even asked
            assert found["silent"] == ["c"]
        assert ask_all(b, do="trace", topic="secret/1")["others"]["a"] == {"error": "it may not read this topic"}
        told = ask_all(b, do="trace", topic="open/1")["others"]["a"]
        assert told == {"topic": "open/1", "is_refused": False, "fates": {"sent": 1}, "unlisted": 0}
        # the others trust each other
        assert ask_all(c, do="top")["others"]["a"]["clients"]["connected"] == 1
    may_see = msgspec.structs.replace(settings("a"), peer=(Peer(name="b", may=("read open/#", "read $SYS/#")),))
    with BrokerThread(may_see) as a, BrokerThread(settings("b", a.urls[1])) as b:
        until(partial(reaches, b, 1), "they are joined")
        assert ask_all(b, do="top")["others"]["a"]["name"] == "a"


def test_a_broker_that_is_cut_off_is_named_and_nobody_waits_for_it() -> None:
    with ExitStack() as stack:
        first = stack.enter_context(ExitStack())
        far = first.enter_context(BrokerThread(settings("far")))
        here = stack.enter_context(BrokerThread(settings("here", far.urls[1])))
        until(partial(reaches, here, 1), "both are joined")
        far.ask(lambda core: setattr(node_of(core).questions, "answerer", None))
        assert ask_all(here, do="top") == {"asked": "here", "others": {}, "silent": ["far"]}


def test_a_long_answer_is_cut_until_it_can_travel() -> None:
    found = msgspec.json.decode(_fitting({"drops": ["x" * 100] * 5_000, "kept": 5_000}))
    assert found["is_cut"] and 300 < len(found["drops"]) < 5_000 and found["kept"] == 5_000
    found = msgspec.json.decode(_fitting({"steps": "x" * LONGEST}))
    assert list(found) == ["error"]
    assert _fitting({"drops": []}) == b'{"drops":[]}'
