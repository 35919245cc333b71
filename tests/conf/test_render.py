"""Every generated page tells what the schema tells, and the committed pages are current."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from tieline.conf import describe, render
from tieline.conf.effective import effective
from tieline.conf.load import loads
from tieline.conf.schema import Limits, Listener, Settings


def test_the_default_file_means_nothing_but_the_defaults() -> None:
    assert loads(render.default_toml()) == Settings()


def test_the_default_file_still_means_the_defaults_with_its_values_switched_on() -> None:
    text = re.sub(r"^# (\w+ = [^\"].*|\w+ = \".+\")$", r"\1", render.default_toml(), flags=re.MULTILINE)
    text = text.replace("# [[listener]]", "[[listener]]")
    text = text.partition("# [[class]]")[0]  # there is none of these unless one is written
    assert "\npacket_bytes = " in text
    assert loads(text) == Settings()


@pytest.mark.parametrize("page", [render.default_toml, render.reference_markdown, render.json_schema])
def test_every_page_names_every_key(page: object) -> None:
    assert callable(page)
    text = page()
    for _table, key in describe.entries():
        assert key.name in text
        assert key.description.split(";")[0].split("$")[0] in text.replace("\n# ", " ")


def test_every_key_is_described() -> None:
    assert [key.name for _table, key in describe.entries() if not key.description.endswith(".")] == []


def test_the_json_schema_refuses_unknown_keys_and_knows_the_bounds() -> None:
    schema = json.loads(render.json_schema())
    assert all(each["additionalProperties"] is False for each in schema["$defs"].values())
    assert schema["$defs"]["Limits"]["properties"]["inflight"]["maximum"] == 65_535


def test_the_effective_view_says_how_settings_act() -> None:
    settings = Settings(
        name="edge",
        listener=(
            Listener(url="tcp://0.0.0.0", connections=7),
            Listener(url="tls://[::1]:0", certificate="c.pem", key="k.pem", client_ca="ca.pem"),
        ),
        limits=Limits(queue_bytes="none", connections=0),
    )
    lines = effective(settings).splitlines()
    assert next(line for line in lines if " name " in line).startswith("* name")
    assert any(
        "tcp://0.0.0.0:1883" in line and "OPEN to the network" in line and "7 connections" in line for line in lines
    )
    assert any("this machine only" in line and "clients need a certificate from ca.pem" in line for line in lines)
    assert any(line.startswith("* limits.queue_bytes ") and line.endswith("no limit") for line in lines)
    assert any(re.fullmatch(r"\* limits.connections +0", line) for line in lines)
    assert any(re.fullmatch(r"  limits.packet_bytes +1_048_576 +1 MiB", line) for line in lines)


def test_the_effective_view_marks_nothing_in_the_defaults() -> None:
    assert not [line for line in effective(Settings()).splitlines() if line.startswith("*")]


def test_a_required_key_is_known_as_such() -> None:
    url = describe.find(("listener", 3, "url"))
    assert url is not None and url.is_required
    assert url.default is msgspec.NODEFAULT
    assert describe.find(("listener", 3)) is None
    assert describe.dotted(("listener", 3, "url")) == "listener[4].url"
