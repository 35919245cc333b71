"""`tieline net` shows the brokers that are joined, as one of them knows it, and draws them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest

from tests.cli.conftest import Served, Tieline
from tests.kits.dial import dial
from tests.kits.patience import until
from tests.net.test_peers import publish, reaches, settings, subscribe
from tieline.cli.net_drawing import drawing
from tieline.core.account import Drop
from tieline.net.net_report import verdict
from tieline.overlay.carrier.streams import WINDOW
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish

#: More than a destination waits for.
_LOST = WINDOW + 20


@pytest.fixture(name="three", scope="module")
def _three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[BrokerThread]]:
    """Brokers a, b and c in a line, each with a management socket."""
    with ExitStack() as stack:
        running: list[BrokerThread] = []
        for name in "abc":
            conf = settings(name, *([running[-1].urls[1]] if running else []))
            data = str(tmp_path_factory.mktemp(name))
            running.append(stack.enter_context(BrokerThread(msgspec.structs.replace(conf, data=data), manage=True)))
        for broker in running:
            until(partial(reaches, broker, 2), "every broker knows of all others")
        yield running


def data_of(broker: BrokerThread) -> str:
    return str(broker._server.settings.data)


def test_who_is_there_and_what_passed(tieline: Tieline, three: list[BrokerThread], tmp_path: Path) -> None:
    a, b, c = three
    with dial(c.urls[0], "far") as far, dial(a.urls[0], "near") as near:
        subscribe(far, "x", 1)
        publish(near, "x", b"hello", 1)
        far.expect(Publish, payload=b"hello")
    shown = tieline("net", "--data", data_of(a))
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = shown.stdout.splitlines()
    assert lines[0].strip() == "3 brokers joined."
    for expected in ("a – b", "b – c", "1 normal", "strategy path"):
        assert expected in shown.stdout
    answer = json.loads(tieline("net", "--json", "--data", data_of(b)).stdout)
    assert [link["ends"] for link in answer["links"]] == [["a", "b"], ["b", "c"]]
    by_peer = {link["peer"]: link for link in answer["own"]}
    # what brokers tell each other about sessions passes as urgent frames
    passed = {peer: sum(one["sent"] for one in link["classes"] if one["level"] == 1) for peer, link in by_peer.items()}
    assert passed == {"a": 0, "c": 1} and by_peer["a"]["is_up"] and not by_peer["a"]["lost"]
    assert answer["totals"]["brokers/reachable"] == 3 and answer["totals"]["useless"] == 0
    file = tmp_path / "net.svg"
    drawn = tieline("net", "--svg", str(file), "--data", data_of(b))
    assert drawn.stdout == f"{file}: 3 brokers joined.\n"
    texts = [each.text for each in ET.fromstring(file.read_text()).iter("{http://www.w3.org/2000/svg}text")]
    assert {"a", "b", "c", "3 brokers joined."} <= set(texts)


def test_questions_travel(tieline: Tieline, three: list[BrokerThread]) -> None:
    a, _, c = three
    with dial(c.urls[0], "far") as far:
        subscribe(far, "y", 1)
        shown = tieline("why", "far", "--data", data_of(a))
        assert shown.returncode == 0 and shown.stdout.startswith("far is at broker c:\n")
        shown = tieline("why", "nobody", "--data", data_of(a))
        assert shown.returncode == 1 and "there is no session nobody" in shown.stdout
        shown = tieline("trace", "y", "--dry", "--qos", "1", "--data", data_of(a))
        assert shown.returncode == 0 and "by the link to b: b → c" in shown.stdout
        there = shown.stdout[shown.stdout.index("broker c:\n") :]
        assert "accepted by broker a" in there and "far" in there and "at once" in there
        shown = tieline("top", "--all", "--once", "--data", data_of(a))
        assert [line.split()[0] for line in shown.stdout.splitlines()] == ["broker", "a", "b", "c"]
        shown = tieline("net", "--all", "--data", data_of(a))
        # which broker b has numbers of, and broker a has none
        (line,) = [line for line in shown.stdout.splitlines() if line.startswith("b – c")]
        assert len(line.split()) > 8, line
        shown = tieline("why", "*", "dropped", "--all", "--data", data_of(a))
        assert [line for line in shown.stdout.splitlines() if line.startswith("broker ")] == [
            "broker a:", "broker b:", "broker c:",
        ]  # fmt: skip


def test_a_broker_that_is_gone_for_good_is_forgotten_and_may_come_back_all_the_same(
    tieline: Tieline, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        running: list[BrokerThread] = []
        for name in "ab":
            conf = settings(name, *([running[-1].urls[1]] if running else []))
            data = str(tmp_path / name)
            running.append(stack.enter_context(BrokerThread(msgspec.structs.replace(conf, data=data), manage=True)))
        a, b = running
        conf = msgspec.structs.replace(settings("c", b.urls[1]), data=str(tmp_path / "c"))
        kept = partial(dial, client_id="kept", clean_start=False, properties={"session_expiry_interval": 3600})
        with BrokerThread(conf) as c, kept(c.urls[0]) as far:
            until(partial(reaches, a, 2), "all are there")
            subscribe(far, "x", 1)
            member = stack.enter_context(dial(b.urls[0], "member"))
            for place in (far, member):
                subscribe(place, "$share/g/y", 2)
            refused = tieline("net", "forget", "c", "--data", data_of(a))
            assert refused.returncode == 1 and "c is in reach" in refused.stderr
        until(partial(reaches, a, 1), "c has gone")
        near = stack.enter_context(dial(a.urls[0], "near"))
        for number in range(_LOST):
            publish(near, "x", b"%d" % number, 1)
        dry = tieline("net", "forget", "c", "--dry", "--data", data_of(b))
        assert f"a: 2 that c wanted, {_LOST} parcels owed to it" in dry.stdout and "nothing is changed" in dry.stdout
        done = tieline("net", "forget", "c", "--data", data_of(b))
        assert done.returncode == 0 and done.stdout.endswith("c is forgotten\n")
        until(lambda: a.ask(lambda core: core.account.drops[Drop.FORGOTTEN]) == _LOST, "what was owed has a name")
        assert json.loads(tieline("net", "--json", "--data", data_of(a)).stdout)["totals"]["owed/parcels"] == 0
        publish(near, "x", b"nobody wants this", 1)
        unknown = tieline("net", "forget", "x", "--data", data_of(a))
        assert unknown.returncode == 1 and "knows one called x" in unknown.stderr
        with BrokerThread(conf) as c, kept(c.urls[0]) as far:
            until(partial(reaches, a, 2), "it is back")
            until(lambda: tieline("trace", "x", "--data", data_of(a)).stdout.count("broker c") > 0, "and known again")
            publish(near, "x", b"and wants this", 1)
            far.expect(Publish, payload=b"and wants this")


def test_a_broker_that_is_alone_says_so(tieline: Tieline, served: Served) -> None:
    shown = tieline("net", "--data", str(served.data))
    assert shown.returncode == 1 and "this broker is not joined with others" in shown.stderr
    assert tieline("net", "--watch", "--svg", "x.svg", "--data", str(served.data)).returncode == 2


def _network(names: list[str], pairs: list[tuple[str, str]], **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": names[0],
        "brokers": [
            {"name": name, "is_here": not at, "is_reachable": True, "owed": 0, "owed_bytes": 0, "via": []}
            for at, name in enumerate(names)
        ],
        "links": [{"ends": [*pair], "is_up": True, "is_own": names[0] in pair, "costs": [1, 1]} for pair in pairs],
        "own": [],
        "away": [],
        **more,
    }
    return {"verdict": verdict(found), **found}


def _boxes(text: str) -> list[tuple[float, float, float]]:
    """The middles and widths of the brokers in a drawing."""
    found = []
    for each in ET.fromstring(text).iter("{http://www.w3.org/2000/svg}rect"):
        if each.get("rx") == "9":
            x, y, width = (float(each.get(name, "nan")) for name in ("x", "y", "width"))
            found.append((x + width / 2, y + 17, width))
    return found


@pytest.mark.parametrize(
    "pairs",
    [
        [(f"n{number}", f"n{number + 1}") for number in range(11)],
        [(f"n{number}", f"n{(number + 1) % 12}") for number in range(12)],
        [("n0", f"n{number}") for number in range(1, 12)],
        [("n0", "n1"), ("n5", "n6")],
        [],
    ],
)
def test_brokers_do_not_stand_on_each_other(pairs: list[tuple[str, str]]) -> None:
    names = [f"n{number}" for number in range(12)]
    boxes = _boxes(drawing(_network(names, pairs)))
    assert len(boxes) == 12
    for one, other in combinations(boxes, 2):
        assert abs(one[0] - other[0]) > (one[2] + other[2]) / 2 or abs(one[1] - other[1]) > 34, (one, other)
    assert all(x - width / 2 > 0 and x + width / 2 < 960 for x, _, width in boxes)


def test_names_are_text_in_a_drawing_and_many_brokers_are_drawn() -> None:
    hostile = "<script>alert(1)</script>'&\""
    text = drawing(_network(["a", hostile], [("a", hostile)]))
    ET.fromstring(text)
    assert "<script" not in text
    many = [f"n{number}" for number in range(255)]
    pairs = [(f"n{number}", f"n{number // 2}") for number in range(1, 255)]
    assert len(_boxes(drawing(_network(many, pairs)))) == 255


def test_the_verdict_is_one_sentence() -> None:
    found = _network(["a", "b", "c"], [("a", "b"), ("b", "c")])
    assert found["verdict"] == "3 brokers joined."
    found["brokers"][2]["is_reachable"] = False
    found["own"] = [
        {"peer": "c", "is_up": False, "since_s": 14.2, "why": "the other end has closed the connection"},
        {"peer": "b", "is_up": True, "since_s": 3.0, "why": ""},
    ]
    found["away"] = [{"url": "peer://10.0.0.9:7883", "peer": "", "trouble": "it cannot be reached"}]
    assert verdict(found) == (
        "2 brokers joined, c cannot be reached, 1 link down (to c for 14 s: the other end has closed the connection), "
        "nobody answers at peer://10.0.0.9:7883."
    )
    assert verdict(_network(["a"], [])) == "No other broker is known."
