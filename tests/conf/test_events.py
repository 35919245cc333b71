"""Event types in a configuration file: read as written, or refused with the line and the key to blame."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tieline import extras
from tieline.conf import describe, events
from tieline.conf.effective import effective
from tieline.conf.error import ConfError
from tieline.conf.load import loads
from tieline.conf.schema import Attribute, Content, Event
from tieline.match.where.lexer import is_plain

ISLAND_MODE = """\
[content]
question_mark = "off"
untyped_bytes = "none"

[event.island_mode]
topic = "microgrid/+/pcc"
routing = ["voltage"]
order = 7

[[event.island_mode.attributes]]
name = "voltage"
bounds = [0.0, 500.0]
unit = "V"
path = "pcc.voltage"

[[event.island_mode.attributes]]
name = "state"
kind = "category"
values = ["on", "off"]
"""


def test_an_event_type_is_read_as_written() -> None:
    settings = loads(ISLAND_MODE)
    assert settings.content == Content(question_mark="off", untyped_bytes="none")
    assert settings.event == {
        "island_mode": Event(
            topic="microgrid/+/pcc",
            routing=("voltage",),
            order=7,
            attributes=(
                Attribute("voltage", bounds=(0.0, 500.0), unit="V", path="pcc.voltage"),
                Attribute("state", "category", values=("on", "off")),
            ),
        )
    }
    voltage, state = settings.event["island_mode"].attributes
    assert (voltage.place, state.place) == ("pcc.voltage", "state")


def test_the_effective_view_shows_what_an_event_says() -> None:
    line = next(line for line in effective(loads(ISLAND_MODE)).splitlines() if "event.island_mode" in line)
    assert line.startswith("* event.island_mode ")
    assert line.endswith("json: voltage (number 0 to 500 V at pcc.voltage), state (category)")


OTHER = "[event.other]\ntopic = 'a/+'\nattributes = [{name = 'v'}]\n"


def one(attribute: str, event: str = "") -> str:
    """An event type whose only attribute begins on line 4 and says this."""
    return f"[event.e]\ntopic = 't'\n{event}\n[[event.e.attributes]]\n{attribute}"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        # what the type of one key refuses
        (one("name = 'v'\nkind = 'float'"), 6, 'event.e.attributes[1].kind = "float" is refused: it takes "boolean", '),
        (one("name = 'v'\nunits = 'V'"), 6, '"event.e.attributes[1].units" is not a setting; did you mean "unit"?'),
        (one("name = 'v'", "topics = 't'"), 3, '"event.e.topics" is not a setting; did you mean "topic"?'),
        (one("name = 'v'", "attribute = 1"), 3, 'did you mean "attributes"?'),
        (one("kind = 'number'"), 4, 'event.e.attributes[1] lacks "name".'),
        (one("name = 'v'\nbounds = [1]"), 6, "it takes a list of 2, each a number"),
        (one("name = 'v'\nbounds = [1, 'x']"), 6, "event.e.attributes[1].bounds"),
        (one("name = 'v'\nbounds = [0, inf]"), 6, "event.e.attributes[1].bounds[2] = inf is refused"),
        (one("name = 'v'", "order = 11"), 3, "event.e.order = 11 is refused: it takes a whole number from 1 to 10"),
        (f"{OTHER}[event.bad]\npayload = 'json'", 4, 'event.bad lacks "topic"'),
        ("[event]\ne = 3", 2, "it is a table, written as [event.NAME]"),
        ("event = 3", 1, "it is a table, written as [event.NAME]"),
        ("[event.e]\ntopic = 't'\nattributes = 3", 3, "written as [[event.NAME.attributes]]"),
        # what one attribute must satisfy
        (
            one("name = 'v'\nbounds = [5, 1]"),
            6,
            "bounds = [5.0, 1.0] is refused: the first is not less than the second",
        ),
        (one("name = 'v'\nbounds = [1, 1]"), 6, "the first is not less than the second"),
        (one("name = 'v'\nkind = 'category'\nbounds = [0, 1]"), 7, "a category has no least and greatest value"),
        (one("name = 'v'\nvalues = ['a']"), 6, "only a category lists its values, not a number"),
        (one("name = 'v'\npath = 'a..b'"), 6, 'path = "a..b" is refused: a level of it is empty'),
        (one("name = 'v'\npath = ''"), 6, "a level of it is empty"),
        (one("name = 'v w'"), 5, 'attributes[1].name = "v w" is refused: conditions could not spell it'),
        (one("name = 'And'"), 5, "is none of and, false, in, not, or, true"),
        # what the attributes together must satisfy
        (one("name = 'v'\n[[event.e.attributes]]\nname = 'v'"), 7, "event type e already has an attribute v"),
        ("[event.e]\ntopic = 't'", 1, "event type e declares nothing"),
        (one("name = 'v'\nbounds = [0, 1]", "routing = ['w']"), 3, 'routing is refused: no attribute is called "w"'),
        (one("name = 'v'\nkind = 'boolean'", "routing = ['v']"), 3, "v is a boolean"),
        (one("name = 'v'", "routing = ['v']"), 3, "v has no bounds"),
        (one("name = 'v'\nbounds = [0, 1]", "routing = []"), 3, "it takes one to 3 attributes"),
        (one("name = 'v'\nbounds = [0, 1]", "routing = ['v', 'v']"), 3, "each of them once"),
        (one("name = 'v'\nbounds = [0, 1]", "routing = ['v', 'w', 'x', 'y']"), 3, "it takes one to 3 attributes"),
        (one("name = 'v'\n[[event.e.attributes]]\nname = 'w'", "payload = 'number'"), 3, "which is one value"),
        (one("name = 'v'\nkind = 'category'", "payload = 'number'"), 6, "v, to which it belongs, is a category"),
        # topics and names
        ("[event.e]\ntopic = 'a#'\nattributes = [{name = 'v'}]", 2, '"a#" is no topic filter'),
        ("[event.e]\ntopic = '$share/g/a'\nattributes = [{name = 'v'}]", 2, "claims a plain topic filter"),
        ("[event.'e f']\ntopic = 'a'\nattributes = [{name = 'v'}]", 1, 'event type "e f" is refused'),
        (
            f"{OTHER}[event.f]\ntopic = '+/b'\nattributes = [{{name = 'v'}}]",
            5,
            'event types other ("a/+") and f ("+/b") claim the same topics',
        ),
    ],
)
def test_a_wrong_event_type_is_refused_with_line_and_key(text: str, line: int, said: str) -> None:
    with pytest.raises(ConfError) as caught:
        loads(text, "broker.toml")
    assert said in caught.value.text
    assert caught.value.line == line


@pytest.mark.parametrize(
    "text",
    [
        one("name = 'v'", "payload = 'number'"),
        one("name = 'v'\npath = 'value'\n[[event.e.attributes]]\nname = 'w'", "payload = 'number'"),
        one("name = 'pcc.voltage'"),
        one("name = 'v'\npath = 'Inputs/../T'", "payload = 'sparkplug'"),
        one("name = 'spannung_größe'"),
        f"{OTHER}[event.f]\ntopic = 'b'\nattributes = [{{name = 'v'}}]",
    ],
)
def test_and_these_are_accepted(text: str) -> None:
    assert loads(text).event


@pytest.mark.parametrize(("payload", "library"), [("cbor", "cbor2"), ("sparkplug", "google.protobuf")])
@pytest.mark.parametrize("has_parent", [True, False])
def test_a_library_that_is_not_installed_is_named_with_its_extra(
    payload: str, library: str, has_parent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_nothing(name: str) -> None:
        if not has_parent:
            raise ModuleNotFoundError(name)

    monkeypatch.setattr(extras, "find_spec", find_nothing)
    with pytest.raises(ConfError) as caught:
        loads(one("name = 'v'", f"payload = '{payload}'"))
    assert caught.value.line == 3
    assert f"needs {library}: pip install 'tieline[payloads]'" in caught.value.text
    assert importlib.util.find_spec(library) is not None


@given(st.text(max_size=8) | st.from_regex(r"[a-z_.]{1,6}", fullmatch=True))
@example("AND")
@example("true")
@example("changed")
@example("a.1")
@example("a.")
def test_the_rule_for_names_is_the_one_of_expressions(name: str) -> None:
    assert events.is_spelled(name) == is_plain(name)


def test_settings_inside_an_event_type_are_known_by_their_place() -> None:
    path = ("event", "island_mode", "attributes", 1, "unit")
    unit = describe.find(path)
    assert unit is not None and unit.description == "Unit, for people."
    assert describe.find(("event", "island_mode")) is None
    assert describe.dotted(path) == "event.island_mode.attributes[2].unit"
