"""What joined brokers show of their network: the same numbers under the same names in $SYS and at /metrics."""

from __future__ import annotations

import msgspec
import pytest

from tests.kits.dial import dial
from tests.kits.patience import until
from tests.net.test_peers import reaches, settings, subscribe
from tieline.conf.schema import Http, Mqtt, Rule, Settings
from tieline.core.broker import Broker
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Publish

pytest.importorskip("uvicorn")

from prometheus_client.parser import text_string_to_metric_families

from tests.web.test_http import Serving


def test_the_same_numbers_are_told_everywhere() -> None:
    with BrokerThread(settings("east/1")) as east:
        conf = settings("west", east.urls[1])
        conf = msgspec.structs.replace(conf, http=Http(url="http://127.0.0.1:0"), mqtt=Mqtt(sys_interval_s=0))
        west = Serving(conf)
        try:
            until(lambda: reaches(west.broker, 1), "both are joined")
            with dial(west.broker.urls[0], "here") as here, dial(east.urls[0], "there") as there:
                subscribe(here, "x", 0)
                there.send(Publish(topic="x", payload=b"hello"))
                here.expect(Publish, payload=b"hello")

            def told(core: Broker) -> dict[str, int]:
                base = "$SYS/broker/tieline/net/"
                values = core.system.values(0.0)
                return {name[len(base) :]: int(value) for name, value in values.items() if name.startswith(base)}

            in_sys = west.broker.ask(told)
            _, page, _ = west.get("/metrics")
        finally:
            west.close()
    samples = [sample for family in text_string_to_metric_families(page) for sample in family.samples]
    shown = {(sample.name, *sorted(sample.labels.values())): sample.value for sample in samples}
    for name in ("brokers/known", "brokers/reachable", "links/up", "links/down", "owed/parcels", "parked/frames"):
        assert shown["tieline_net_" + name.replace("/", "_"),] == in_sys[name], name
    assert in_sys["brokers/reachable"] == 2 and in_sys["links/up"] == 1
    assert shown["tieline_net_useless_total",] == in_sys["useless"] == 0
    assert shown["tieline_net_count_total", "taken"] == in_sys["count/taken"] == 1
    assert shown["tieline_net_link_up", "east/1"] == in_sys["link/east%2F1/up"] == 1
    received = in_sys["link/east%2F1/class/1/bytes/received"]
    assert shown["tieline_net_link_received_bytes_total", "east/1", "normal"] == received > len("hello")


def test_a_page_shows_what_tieline_net_does_to_whoever_may_see_the_broker() -> None:
    with BrokerThread(settings("east")) as east:
        conf = msgspec.structs.replace(settings("west", east.urls[1]), http=Http(url="http://127.0.0.1:0"))
        west = Serving(conf)
        try:
            until(lambda: reaches(west.broker, 1), "both are joined")
            status, page, _ = west.get("/v1/net")
            found = msgspec.json.decode(page)
            assert (status, found["verdict"], "others" in found) == (200, "2 brokers joined.", False)
            status, page, _ = west.get("/v1/net?all=1")
            assert [link["peer"] for link in msgspec.json.decode(page)["others"]["east"]["own"]] == ["west"]
        finally:
            west.close()
    alone = Serving(msgspec.structs.replace(Settings(), listener=conf.listener[:1], http=conf.http))
    try:
        assert alone.get("/v1/net")[0] == 404
    finally:
        alone.close()


def test_only_whoever_may_see_the_broker_sees_the_network() -> None:
    rules = (Rule(filter="x", allow="all"),)
    guarded = msgspec.structs.replace(settings("west"), http=Http(url="http://127.0.0.1:0"), rule=rules)
    west = Serving(guarded)
    try:
        assert west.get("/v1/net")[0] == west.get("/v1/net?all=1")[0] == 403
    finally:
        west.close()


def test_a_broker_that_is_alone_shows_nothing_of_it() -> None:
    with BrokerThread() as broker:
        assert not [name for name in broker.ask(lambda core: core.system.values(0.0)) if "/net/" in name]
