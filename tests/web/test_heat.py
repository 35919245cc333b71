"""The heat table over HTTP: who may give one, what it may be, and that the broker goes on meanwhile."""

from __future__ import annotations

import http.client
import json
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from tests.kits.patience import PATIENCE_S, until
from tests.web.test_http import Checker, Serving, settings
from tieline.conf.schema import Auth, Http, Rule
from tieline.core.account import Account, Event

pytest.importorskip("uvicorn")

from tieline.web import programs as page
from tieline.web import rights

HEAT = rights.HEAT
RULES = (
    Rule(filter=HEAT, allow=("write",), users=("pipeline", "operator")),
    Rule(filter="$SYS/#", allow="all", users=("operator",)),
    Rule(filter="#", allow="all"),
)
TABLE = {"plant/+/state": 4, "plant/7/state": 12.5}


def ask(
    serving: Serving, method: str, body: bytes | str | dict[str, Any] = b"", *, query: str = "", **headers: str
) -> tuple[int, str]:
    if isinstance(body, dict):
        body = json.dumps(body)
    asking = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=PATIENCE_S)
    try:
        asking.request(method, f"{page.HEAT_PATH}{query}", body=body, headers=headers)
        answer = asking.getresponse()
        return answer.status, answer.read().decode()
    finally:
        asking.close()


def as_user(user: str, password: str = "right") -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


def source(serving: Serving) -> tuple[str, int]:
    return serving.broker.ask(lambda core: (core.heat_source.name, len(core.heat_source.table or ())))


def clear(serving: Serving) -> None:
    serving.broker.ask(lambda core: core.heat_source.clear())


@pytest.fixture(scope="module")
def opened() -> Iterator[Serving]:
    serving = Serving(settings())
    yield serving
    serving.close()


@pytest.fixture(name="open_")
def _open(opened: Serving) -> Serving:
    clear(opened)
    return opened


@pytest.fixture(scope="module")
def guarded_once() -> Iterator[Serving]:
    serving = Serving(settings(rule=RULES, auth=Auth(failures="none", anonymous="everywhere")), authenticator=Checker())
    yield serving
    serving.close()


@pytest.fixture
def guarded(guarded_once: Serving) -> Serving:
    clear(guarded_once)
    return guarded_once


def test_put_get_delete(open_: Serving) -> None:
    status, body = ask(open_, "PUT", TABLE, query="?period=90s")
    given = json.loads(body)
    assert (status, given["source"], given["entries"], given["period_s"]) == (200, "given", 2, 90)
    status, body = ask(open_, "GET")
    assert status == 200 and json.loads(body)["hottest"] == [["plant/7/state", 12.5], ["plant/+/state", 4]]
    assert open_.broker.ask(lambda core: core.routes.find("plant/7/state", b"plant/7/state").heat) == 12.5
    assert ask(open_, "DELETE")[0] == 200 and source(open_) == ("own", 0)


def test_a_large_table_one_object_on_a_line(open_: Serving) -> None:
    lines = "\n".join(json.dumps({f"plant/{number}/state": number}) for number in range(5_000))
    with ThreadPoolExecutor(1) as other:
        putting = other.submit(ask, open_, "PUT", lines)
        assert all(open_.is_well() for _ in range(5)), "clients are served meanwhile"
        assert putting.result()[0] == 200
    assert source(open_) == ("given", 5_000)


@pytest.mark.parametrize(
    ("body", "query", "status", "said"),
    [
        (b"", "", 400, "the table is empty"),
        (b"{}", "", 400, "is empty"),
        (b"nonsense", "", 400, "line 1 is no JSON object"),
        (b'{"a": NaN}', "", 400, "line 1 is no JSON object"),
        (b'{"a": 1e999}', "", 400, "is no"),
        (b'["a"]', "", 400, "line 1 is no JSON object"),
        (b'{"a": -1}', "", 400, "from zero up"),
        (b'{"a": "hot"}', "", 400, "is no number"),
        (b'{"a#": 1}', "", 400, "is no topic filter"),
        (b'{"a": 1}\n{"b": true}', "", 400, "is no number"),
        (b'{"a": 1}', "?period=0", 400, "1 to 86,400 seconds"),
        (b'{"a": 1}', "?period=soon", 400, "the period is none"),
        (b'{"x": 1, ' + b" " * 70_000 + b'"b": 1}', "", 400, "line 1 has more than 65,536 bytes"),
        (b"\xff\xfe", "", 400, "line 1 is no JSON object"),
    ],
)
def test_a_broken_table_changes_nothing(open_: Serving, body: bytes, query: str, status: int, said: str) -> None:
    assert ask(open_, "PUT", {"before": 1})[0] == 200
    answered = ask(open_, "PUT", body, query=query)
    assert answered[0] == status and said in answered[1], answered
    assert source(open_) == ("given", 1)


def test_a_body_has_its_bounds(open_: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MOST_TABLE", 10_000)
    assert ask(open_, "PUT", b" " * 10_001) == (413, "a table has at most 10,000 bytes\n")
    assert source(open_) == ("own", 0)


def test_other_methods(open_: Serving) -> None:
    assert ask(open_, "POST", TABLE) == (405, "only DELETE, GET, HEAD and PUT are answered\n")
    assert ask(open_, "OPTIONS")[0] == 405, "and so no browser lets another page's script put anything"


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost", "LOCALHOST:1", "[::1]:80", "127.9.9.9"])
def test_where_nobody_is_known_this_machine_may(open_: Serving, host: str) -> None:
    assert ask(open_, "PUT", TABLE, Host=host)[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "[::1", "0.0.0.0"])
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_but_not_under_a_name_that_leads_here(open_: Serving, host: str, method: str) -> None:
    """A page in somebody's browser may have a name whose address has become ours."""
    ask(open_, "PUT", {"before": 1})
    for who in ({}, as_user("anybody")):
        assert ask(open_, method, TABLE, Host=host, **who) == (403, "not for you\n")
    assert source(open_) == ("given", 1)


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_where_users_are_known_nobody_else_may(guarded: Serving, method: str) -> None:
    assert ask(guarded, "PUT", {"before": 1}, **as_user("pipeline"))[0] == 200
    assert ask(guarded, method, TABLE) == (401, "who are you?\n"), "though MQTT lets nobody in particular in"
    assert ask(guarded, method, TABLE, **as_user("pipeline", "wrong"))[0] == 401
    status, body = ask(guarded, method, TABLE, **as_user("nosy"))
    assert status == 403 and body.startswith("not for you"), "# does not speak of $SYS"
    assert source(guarded) == ("given", 1)


def test_the_right_to_give_is_not_the_right_to_see(guarded: Serving) -> None:
    assert ask(guarded, "PUT", TABLE, **as_user("pipeline"))[0] == 200
    for path in (page.HEAT_PATH, "/metrics"):
        assert guarded.get(path, user="pipeline", password="right")[0] == 403
    assert json.loads(guarded.get(page.HEAT_PATH, user="operator", password="right")[1])["source"] == "given"
    assert ask(guarded, "DELETE", **as_user("operator"))[0] == 200
    assert source(guarded) == ("own", 0)


def test_the_story_says_who_gave_it(guarded: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Event] = []
    monkeypatch.setattr(Account, "tell", lambda _self, event: told.append(event))
    ask(guarded, "PUT", TABLE, **as_user("pipeline"))
    assert [(event.kind, event.client, event.text) for event in told] == [("heat", "pipeline", "2 entries for 60 s")]


def test_users_without_a_rule_that_says_so_may_not() -> None:
    serving = Serving(settings(), authenticator=Checker())
    try:
        assert serving.get("/metrics", user="pipeline", password="right")[0] == 200
        assert ask(serving, "PUT", TABLE, **as_user("pipeline")) == (
            403,
            f"not for you: no rule allows to publish to {HEAT}\n",
        )
    finally:
        serving.close()


def test_rules_without_users_hold_too() -> None:
    serving = Serving(settings(rule=(Rule(filter="#", allow="all"),)))
    try:
        assert ask(serving, "PUT", TABLE)[0] == 403
    finally:
        serving.close()


def test_one_table_at_a_time(open_: Serving) -> None:
    slow = http.client.HTTPConnection("127.0.0.1", open_.port, timeout=PATIENCE_S)
    slow.putrequest("PUT", page.HEAT_PATH)
    slow.putheader("Content-Length", "8")
    slow.endheaders(b'{"a"')
    try:
        until(lambda: ask(open_, "PUT", TABLE) == (503, "another table is being taken in: later\n"), "it is busy")
        slow.send(b": 1}")
        assert slow.getresponse().status == 200
    finally:
        slow.close()
    assert ask(open_, "PUT", TABLE)[0] == 200


def test_one_that_never_arrives_whole_is_forgotten(open_: Serving) -> None:
    slow = http.client.HTTPConnection("127.0.0.1", open_.port, timeout=PATIENCE_S)
    slow.putrequest("PUT", page.HEAT_PATH)
    slow.putheader("Content-Length", "1000")
    slow.endheaders(b'{"a": 1}')
    slow.close()
    until(lambda: ask(open_, "PUT", TABLE)[0] == 200, "the next one is taken")
    assert source(open_) == ("given", 2)


def test_with_users_other_machines_may_too() -> None:
    outside = msgspec.structs.replace(settings(rule=RULES), http=Http(url="http://0.0.0.0:0"))
    serving = Serving(outside, authenticator=Checker())
    try:
        assert ask(serving, "PUT", TABLE, Host="broker.example", **as_user("pipeline"))[0] == 200
        assert ask(serving, "PUT", TABLE, Host="broker.example")[0] == 401
    finally:
        serving.close()
