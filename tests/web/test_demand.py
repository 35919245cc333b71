"""What the broker is asked to carry, over HTTP: who may ask, and what is answered."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kits.dial import dial
from tests.kits.patience import PATIENCE_S
from tests.web.test_http import Checker, Serving, settings
from tieline.conf.schema import Auth, Rule
from tieline.wire.packets import Puback, Publish

pytest.importorskip("uvicorn")

from tests.web.test_heat import as_user
from tieline.web import programs as page
from tieline.web import rights

RULES = (
    Rule(filter=rights.DEMAND, allow=("write",), users=("planner", "operator")),
    Rule(filter="$SYS/#", allow=("read",), users=("operator", "reader")),
    Rule(filter="#", allow="all"),
)
BEGIN = {"do": "demand", "act": "begin"}


def ask(serving: Serving, body: bytes | dict[str, Any], *, method: str = "POST", **headers: str) -> tuple[int, str]:
    if isinstance(body, dict):
        body = json.dumps(body).encode()
    asking = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=PATIENCE_S)
    try:
        asking.request(method, page.DEMAND_PATH, body=body, headers=headers)
        answer = asking.getresponse()
        return answer.status, answer.read().decode()
    finally:
        asking.close()


def is_counting(serving: Serving) -> bool:
    return serving.broker.ask(lambda core: core.arrivals.is_watched)


@pytest.fixture(name="open_", scope="module")
def _open() -> Iterator[Serving]:
    serving = Serving(settings())
    yield serving
    serving.close()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Serving]:
    serving = Serving(settings(rule=RULES, auth=Auth(failures="none", anonymous="everywhere")), authenticator=Checker())
    yield serving
    serving.close()


def test_begin_and_take(open_: Serving) -> None:
    status, body = ask(open_, BEGIN)
    assert status == 200
    with dial(open_.broker.urls[0], "p") as client:
        client.subscribe("a/+")
        client.send(Publish(topic="b", payload=b"x", qos=1, packet_id=1))
        client.expect(Puback)
        status, body = ask(open_, {"do": "demand", "act": "take", "number": json.loads(body)["number"]})
    found = json.loads(body)
    assert status == 200 and not found["more"]
    assert found["flows"] == [["p", "b", 1, 1, 8]] and found["subscriptions"] == [["p", "a/+", "", False]]
    assert not is_counting(open_)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 400, "a question is a JSON object"),
        (b"[1]", 400, "a question is a JSON object"),
        (b'{"do": "demand", "act": "dance"}', 400, "dance"),
        (b'{"do": "demand", "act": "take", "number": 99}', 400, "there is no count 99"),
        (b'{"do": "reload", "act": "begin"}', 400, "reload"),
        (b" " * (page.MOST_QUESTION + 1), 413, "4,096 bytes"),
    ],
)
def test_questions_that_cannot_be_meant(open_: Serving, body: bytes, status: int, said: str) -> None:
    found = ask(open_, body)
    assert found[0] == status and said in found[1]
    assert not is_counting(open_)


def test_other_methods_are_not_answered(open_: Serving) -> None:
    for method in ("GET", "PUT", "DELETE"):
        assert ask(open_, b"", method=method)[0] == 405


def test_only_who_may_hears_of_clients_and_topics(guarded: Serving) -> None:
    for user in ("reader", "somebody"):
        status, said = ask(guarded, BEGIN, **as_user(user))
        assert status == 403 and "rule" in said
    assert ask(guarded, BEGIN)[0] == 401
    assert ask(guarded, BEGIN, **as_user("planner", "wrong"))[0] == 401
    assert not is_counting(guarded)
    for user in ("planner", "operator"):
        status, body = ask(guarded, BEGIN, **as_user(user))
        assert status == 200
        take = {"do": "demand", "act": "take", **json.loads(body)}
        assert ask(guarded, take, **as_user("reader"))[0] == 403
        assert ask(guarded, take, **as_user(user))[0] == 200


def test_where_there_are_users_but_no_rules_nobody_may(open_: Serving) -> None:
    serving = Serving(settings(auth=Auth(failures="none")), authenticator=Checker())
    try:
        status, said = ask(serving, BEGIN, **as_user("planner"))
        assert (status, said.strip()) == (403, f"not for you: no rule allows to publish to {rights.DEMAND}")
    finally:
        serving.close()
    # without users: whoever is on this machine, and says so
    assert ask(open_, BEGIN, Host="attacker.example")[0] == 403
