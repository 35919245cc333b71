"""The page of a joined broker: what others say of themselves, which links are up, and what is told when one is not."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

import msgspec

from tests.kits.dial import Dial, dial
from tests.kits.patience import until
from tests.net.test_peers import line, subscribe
from tieline.net.page.page import TOPIC
from tieline.wire.packets import Publish


def page(client: Dial) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(client.expect(Publish, topic=TOPIC).payload)
    return found


def seen(client: Dial, is_so: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
    """The first object of the page that has it."""
    return until(lambda: found if is_so(found := page(client)) else None, what)


def test_brokers_tell_of_themselves_and_a_broker_that_goes_is_noticed() -> None:
    with line("a", "b", "c") as (a, _b, c), dial(a.urls[0], "page") as client, dial(c.urls[0], "far"):
        subscribe(client, TOPIC, 0)
        seen(client, lambda page: all(each["per_s"] is not None for each in page["brokers"]), "all have spoken")
        found = seen(client, lambda page: page["brokers"][2]["clients"] == 1, "what they say is new")
        assert [each["name"] for each in found["brokers"]] == ["a", "b", "c"]
        assert found["brokers"][2]["age_s"] < 60
        assert {each["state"] for each in found["brokers"]} <= {"ok", "warn"} and found["joined"]
        links = {tuple(link["ends"]): link for link in found["links"]}
        assert links.keys() == {("a", "b"), ("b", "c")} and {link["state"] for link in links.values()} == {"up"}
        assert links["a", "b"]["told_by"] == "a" and links["b", "c"]["told_by"] in {"b", "c"}
        assert len(links["b", "c"]["classes"]) == 4 and links["a", "b"]["bps"] is not None
        assert found["plan"]["in_force"] is None and found["network"]["strategy"] == "path"
        assert found["views"]["network"]["text"] == "All 3 brokers can be reached, and all 2 links are up."
        assert any(name.startswith("link/") for name in found["point"])
        c.__exit__(None, None, None)
        gone = seen(client, lambda page: not page["brokers"][2]["is_reachable"], "one is gone")
        assert gone["brokers"][2]["state"] == "bad" and gone["views"]["overview"]["state"] == "bad"
        assert any(each["title"] == "Broker c cannot be reached" for each in gone["attention"])
        assert gone["views"]["network"]["text"] == "One broker cannot be reached."


def test_brokers_that_nobody_has_asked_are_not_silent() -> None:
    with line("a", "b") as (a, _b):
        page_of = a._server.page
        report = a.ask(lambda _core: page_of.verdict(monotonic()))
        assert report["verdict"]["detail"].startswith("2 brokers")
        assert report["attention"] == []


def test_what_other_brokers_send_is_received_too() -> None:
    with line("a", "b") as (a, b), dial(a.urls[0], "page") as client, dial(b.urls[0], "meter") as meter:
        subscribe(client, TOPIC, 0)
        with dial(a.urls[0], "reader") as reader:
            subscribe(reader, "grid/#", 0)

            def spoken(page: dict[str, Any]) -> bool:
                meter.send(*[Publish(topic="grid/1/reading", payload=b"x" * 100)] * 20)
                return bool(page["tiles"]["of_brokers_per_s"])

            found = seen(client, spoken, "messages come over the link")
            tiles = found["tiles"]
            assert tiles["received_per_s"] == tiles["of_brokers_per_s"], "no client of this broker says anything"
            assert sum(each["received_per_s"] for each in found["classes"]) == tiles["received_per_s"]
            assert found["point"]["received"] == found["brokers"][0]["per_s"] == tiles["received_per_s"]
            assert tiles["bytes_in_per_s"] > 100 * tiles["received_per_s"]
            assert found["views"]["overview"]["detail"].startswith("2 brokers · 2 clients here")


def test_a_link_that_breaks_is_an_event() -> None:
    with line("a", "b") as (a, b), dial(a.urls[0], "page") as client:
        subscribe(client, TOPIC, 0)
        seen(client, lambda page: page["views"]["network"]["state"] == "ok" and bool(page["links"]), "they are joined")
        b.__exit__(None, None, None)
        found = seen(client, lambda page: "link to b down" in [each["text"] for each in page["events"]], "it is told")
        down = [link for link in found["links"] if link["state"] == "down"]
        assert [link["ends"] for link in down] == [["a", "b"]] and down[0]["down_s"] is not None
