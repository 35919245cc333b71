"""Heat over HTTP: given by who may, refused with a sentence to everybody else."""

from __future__ import annotations

import pytest

from tieline.cli.heat import give_over_http
from tieline.cli.trouble import Trouble

pytest.importorskip("uvicorn")

from tests.web.test_heat import RULES
from tests.web.test_http import Checker, Serving, settings
from tieline.conf.schema import Auth

TABLE = {"plant/7/state": 12.5, "plant/+/log": 0.0}


def test_a_table_of_any_size_is_given_whole() -> None:
    serving = Serving(settings())
    try:
        url = f"http://127.0.0.1:{serving.port}"
        given = give_over_http(url, TABLE, "2m")
        assert (given["entries"], given["period_s"]) == (2, 120.0)
        large = {f"plant/{number}/a-topic-with-a-long-name": float(number) for number in range(4_000)}
        assert give_over_http(url, large, "60s")["entries"] == 4_000
        assert serving.broker.ask(lambda core: len(core.heat_source.table or ())) == 4_000
        with pytest.raises(Trouble, match=r"refused \(400\): the period is none"):
            give_over_http(url, TABLE, "soon")
    finally:
        serving.close()
    with pytest.raises(Trouble, match="cannot be reached"):
        give_over_http(url, TABLE, "60s")


def test_only_who_may_gives_heat() -> None:
    guarded = settings(rule=RULES, auth=Auth(failures="none", anonymous="everywhere"))
    serving = Serving(guarded, authenticator=Checker())
    try:
        url = f"http://127.0.0.1:{serving.port}"
        assert give_over_http(url, TABLE, "60s", user="pipeline", password="right")["entries"] == 2
        for user, password in (("pipeline", "wrong"), ("somebody", "right"), (None, None)):
            with pytest.raises(Trouble, match=r"refused \(40[13]\)"):
                give_over_http(url, TABLE, "60s", user=user, password=password)
    finally:
        serving.close()


@pytest.mark.parametrize("url", ["127.0.0.1:9883", "ftp://a", "http://", "http://a:b"])
def test_addresses_that_cannot_be_meant(url: str) -> None:
    with pytest.raises(Trouble, match="is no address of a broker"):
        give_over_http(url, TABLE, "60s")
