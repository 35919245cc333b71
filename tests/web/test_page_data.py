"""What the page asks over HTTP: the past in bounded pieces, and questions that change nothing, each with its right."""

from __future__ import annotations

import http.client
import json
import socket
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.kits.dial import dial
from tests.kits.patience import PATIENCE_S, until
from tests.web.test_http import Checker, Serving, settings
from tieline.conf.schema import Attribute, Auth, Event, Rule
from tieline.wire.packets import Publish

pytest.importorskip("uvicorn")

from tests.web.test_heat import as_user
from tieline.web import page_data, rights

RULES = (
    Rule(filter=rights.ASK, allow=("write",), users=("operator",)),
    Rule(filter="$SYS/#", allow=("read", "subscribe"), users=("operator", "reader")),
    Rule(filter="#", allow="all"),
)
EVENTS = {"reading": Event(topic="grid/+/reading", attributes=(Attribute("voltage", bounds=(0, 500)),))}
HOSTILE = "<img src=x onerror=alert(1)>\u202e';drop"


def ask(serving: Serving, body: bytes | dict[str, Any], *, method: str = "POST", **headers: str) -> tuple[int, Any]:
    if isinstance(body, dict):
        body = json.dumps(body).encode()
    asking = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=PATIENCE_S)
    try:
        asking.request(method, page_data.ASK_PATH, body=body, headers=headers)
        answer = asking.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        asking.close()


def history(serving: Serving, query: str = "", **headers: str) -> tuple[int, Any]:
    status, body, _ = serving.get(f"{page_data.HISTORY_PATH}{query}", **headers)
    return status, json.loads(body)


@pytest.fixture(name="open_", scope="module")
def _open() -> Iterator[Serving]:
    serving = Serving(settings(event=EVENTS))
    yield serving
    serving.close()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Serving]:
    serving = Serving(settings(rule=RULES, auth=Auth(failures=5)), authenticator=Checker())
    yield serving
    serving.close()


def test_the_past_comes_in_columns_of_one_length(open_: Serving) -> None:
    until(lambda: len(history(open_, "?span=120")[1]["time"]) >= 2, "two seconds have passed")
    status, found = history(open_, "?span=120")
    assert status == 200 and found["step_s"] == 1
    assert {len(column) for column in found["series"].values()} == {len(found["time"])}
    assert {"received", "p99/3", "waiting/0", "dropped/1", "lag", "connected"} <= found["series"].keys()
    assert len(found["series"]) <= 40 and found["series"]["p99/3"][-1] is None, "a gap, not a zero"
    assert history(open_, "?span=3600")[1]["step_s"] == 10


@pytest.mark.parametrize("span", ["0", "-1", "3601", "999999999", "1e3", "%D9%A3", "", "NaN"])
def test_a_span_that_cannot_be_meant(open_: Serving, span: str) -> None:
    status, found = history(open_, f"?span={span}")
    assert status == 400 and "from 1 to 3,600" in found["error"]


def test_questions_are_those_of_the_management_channel(open_: Serving) -> None:
    with dial(open_.broker.urls[0], HOSTILE) as client:
        client.subscribe("grid/1/reading?voltage<207")
        top = ask(open_, {"do": "top"})[1]
        assert top["verdict"]["text"] and len(top["hottest_levels"]) == len(top["hottest"])
        _, why = ask(open_, {"do": "why", "client": HOSTILE})
        assert why["client"] == HOSTILE and why["is_known"]
        payload = b64encode(b'{"voltage": 200}').decode()
        _, trace = ask(open_, {"do": "trace", "topic": "grid/1/reading", "payload": payload})
        assert [each["client"] for each in trace["receivers"]] == [HOSTILE]
        _, sessions = ask(open_, {"do": "sessions", "client": "*onerror*"})
        (shown,) = sessions["sessions"]
        assert shown["client"].isprintable() and shown["id"] == HOSTILE
        assert sessions["total"] == 1 and sessions["sessions"][0]["why"] == "caught_up"
        _, subscribed = ask(open_, {"do": "subscriptions", "conditions": True})
        assert [each["condition"] for each in subscribed["subscriptions"]] == ["voltage<207"]
        assert ask(open_, {"do": "drops", "most": 5})[1]["drops"] == []


def test_a_condition_and_how_many_of_the_messages_it_wanted(open_: Serving) -> None:
    with dial(open_.broker.urls[0], "low") as low, dial(open_.broker.urls[0], "p") as publisher:
        low.subscribe("grid/+/reading?voltage<207")
        first = ask(open_, {"do": "conditions"})[1]
        assert [each["looked_per_s"] for each in first["conditions"]] == [None] and first["total"] == 1

        def counted() -> Any:
            for number in range(40):
                publisher.send(Publish(topic="grid/1/reading", payload=b'{"voltage": %d}' % (200 + number % 10)))
            (found,) = ask(open_, {"do": "conditions"})[1]["conditions"]
            return found if found["looked_per_s"] else None

        found = until(counted, "something was counted for a second")
        assert found["client"] == "low" and found["filter"] == "grid/+/reading" and found["indexed"]
        assert found["wanted_per_s"] == pytest.approx(0.7 * found["looked_per_s"])


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 400, "a question is a JSON object"),
        (b"[1]", 400, "a question is a JSON object"),
        (b"\xff", 400, "a question is a JSON object"),
        (b"[" * 100_000, 400, "a question is a JSON object"),
        (b'{"do": "reload"}', 400, "not answered here"),
        (b'{"do": "kick", "client": "a"}', 400, "not answered here"),
        (b'{"do": "heat"}', 400, "not answered here"),
        (b'{"do": ["top"]}', 400, "not answered here"),
        (b'{"do": null}', 400, "not answered here"),
        (b"{}", 400, "not answered here"),
        (b'{"do": "plan", "act": "use", "epoch": 0}', 400, 'and not "act"'),
        (b'{"do": "plan"}', 400, "not joined with others"),
        (b'{"do": "top", "at": "elsewhere"}', 400, "not joined with others"),
        (b'{"do": "why"}', 400, "client"),
        (b'{"do": "conditions", "most": 100000}', 400, "200"),
        (b'{"do": "sessions", "most": 1000000}', 400, "1000"),
        (b'{"do": "trace", "topic": "a", "payload": "*"}', 400, "base64"),
        (b" " * (page_data.MOST_QUESTION + 1), 413, "147,456 bytes"),
    ],
)
def test_questions_that_cannot_be_meant(open_: Serving, body: bytes, status: int, said: str) -> None:
    found = ask(open_, body)
    assert found[0] == status and said in found[1]["error"], found
    assert open_.is_well()


def test_many_questions_at_once_take_turns_or_are_refused(open_: Serving) -> None:
    with ThreadPoolExecutor(16) as pool:
        found = [*pool.map(lambda _: ask(open_, {"do": "top"})[0], range(16))]
    assert set(found) <= {200, 503} and 200 in found and open_.is_well()


def test_questions_that_do_not_arrive_keep_nobody_from_asking(open_: Serving) -> None:
    head = b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{"
    slow = [socket.create_connection(("127.0.0.1", open_.port), PATIENCE_S) for _ in range(2 * page_data.MOST_ASKING)]
    try:
        for sock in slow:
            sock.sendall(head)
        assert history(open_)[0] == 200, "what came before it was looked at"
        assert ask(open_, {"do": "top"})[0] == 200
    finally:
        for sock in slow:
            sock.close()


def test_who_reads_slowly_holds_no_more_than_a_piece(open_: Serving) -> None:
    slow = [socket.create_connection(("127.0.0.1", open_.port), PATIENCE_S) for _ in range(20)]
    try:
        for sock in slow:
            sock.sendall(b"GET /v1/history?span=900 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert history(open_, "?span=900")[0] == 200 and open_.is_well()
    finally:
        for sock in slow:
            sock.close()


def test_rights(guarded: Serving) -> None:
    assert history(guarded)[0] == 401 and ask(guarded, {"do": "top"})[0] == 401
    assert history(guarded, user="reader", password="right")[0] == 200
    status, found = ask(guarded, {"do": "top"}, **as_user("reader"))
    assert status == 403 and found["rule"] and found["rule"] in found["error"]
    status, found = history(guarded, user="nosy", password="right")
    assert status == 403 and found["rule"], "who may not is told by which rule"
    assert ask(guarded, {"do": "top"}, **as_user("operator"))[0] == 200


def test_a_wrong_password_says_how_many_tries_are_left_and_then_for_how_long_to_wait(guarded: Serving) -> None:
    left = []
    while (answer := history(guarded, user="reader", password="wrong"))[0] == 401:
        left.append(answer[1]["tries_left"])
    assert left == sorted(left, reverse=True) and left[-1] in {0, 1} and len(left) >= 5
    assert answer[0] == 429 and 0 < answer[1]["retry_s"] <= 13
    assert history(guarded, user="reader", password="right")[0] == 200, (
        "who has come in from here before is not kept out"
    )
    assert "tries_left" not in history(guarded)[1] or history(guarded)[1]["tries_left"] is None


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1.attacker.example", "10.1.2.3:8080", ""])
def test_a_name_that_leads_here_reads_nothing_where_there_are_no_users(open_: Serving, host: str) -> None:
    status, found = history(open_, Host=host)
    assert status == 403 and "only programs of this machine" in found["error"]
    assert ask(open_, {"do": "top"}, Host=host)[0] == 403
    assert open_.get("/metrics", Host=host)[0] == 403


def test_a_page_of_another_site_may_ask_nothing(open_: Serving) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        asking = http.client.HTTPConnection("127.0.0.1", open_.port, timeout=PATIENCE_S)
        asking.request("POST", page_data.ASK_PATH, body=b'{"do": "top"}', headers=headers)
        assert asking.getresponse().status == 403
        asking.close()


def test_other_methods(open_: Serving) -> None:
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        assert open_.get(page_data.ASK_PATH, method=method)[0] == 405
