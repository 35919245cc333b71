"""Rules of event types: what the declarations of one, and of several together, must satisfy."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Final

from tieline.conf.describe import Finding, KeyPath, dotted
from tieline.conf.filters import flaw, overlap
from tieline.conf.schema import Attribute, Event
from tieline.extras import is_installed, remedy

#: Names of types become parts of keys in files and of names on pages.
_TYPE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
#: Words of the language of conditions, in any capitals.
_WORDS: Final = frozenset({"and", "or", "not", "in", "true", "false"})
_NUMERIC: Final = ("number", "integer", "timestamp")
#: The place of an attribute that is the whole payload.
_WHOLE: Final = "value"
_MOST_ROUTING: Final = 3
#: What reads a payload and does not come with the broker itself.
_LIBRARIES: Final = {"cbor": "cbor2", "sparkplug": "google.protobuf"}


def broken(events: dict[str, Event]) -> Iterator[Finding]:
    """Each broken rule: the path of the key to blame and a sentence."""
    for name, event in events.items():
        yield from _broken_event(("event", name), name, event)
    for (one, first), (other, second) in combinations(events.items(), 2):
        if not flaw(first.topic) and not flaw(second.topic) and overlap(first.topic, second.topic):
            both = f'{one} ("{first.topic}") and {other} ("{second.topic}")'
            yield ("event", other, "topic"), f"event types {both} claim the same topics: only one of them may."


def _broken_event(path: KeyPath, name: str, event: Event) -> Iterator[Finding]:
    if not _TYPE_NAME.fullmatch(name):
        allowed = "1 to 64 letters, digits, dashes and underscores, beginning with a letter or digit"
        yield path, f'event type "{name}" is refused: its name takes {allowed}.'
    if problem := flaw(event.topic):
        yield (*path, "topic"), problem
    elif event.topic.startswith(("$share/", "$where/")):
        yield (*path, "topic"), f'"{event.topic}" is a subscription: an event type claims a plain topic filter.'
    if not event.attributes:
        yield path, f"event type {name} declares nothing: write at least one [[event.{name}.attributes]]."
    seen: set[str] = set()
    for number, attribute in enumerate(event.attributes):
        here = (*path, "attributes", number)
        if attribute.name in seen:
            yield (*here, "name"), f"{dotted(here)}: event type {name} already has an attribute {attribute.name}."
        seen.add(attribute.name)
        yield from _broken_attribute(here, attribute, event.payload)
    if event.routing is not None:
        yield from _broken_routing((*path, "routing"), event.routing, event.attributes)
    if event.payload == "number":
        yield from _broken_number(path, name, event.attributes)
    library = _LIBRARIES.get(event.payload)
    if library is not None and not is_installed(library):
        missing = f'event type {name} has payload = "{event.payload}", which needs {library}'
        yield (*path, "payload"), f"{missing}: {remedy('payloads')}"


def _broken_attribute(path: KeyPath, attribute: Attribute, payload: str) -> Iterator[Finding]:
    where = dotted(path)
    if not is_spelled(attribute.name):
        allowed = f"letters, digits, underscores and dots, and is none of {', '.join(sorted(_WORDS))}"
        sentence = f'{where}.name = "{attribute.name}" is refused: conditions could not spell it. It takes {allowed}; '
        yield (*path, "name"), sentence + "path says what the payload calls it."
    if attribute.path is not None and not (
        attribute.path if payload == "sparkplug" else all(attribute.path.split("."))
    ):
        yield (*path, "path"), f'{where}.path = "{attribute.path}" is refused: a level of it is empty.'
    if attribute.values and attribute.kind != "category":
        yield (*path, "values"), f"{where}.values is refused: only a category lists its values, not a {attribute.kind}."
    if attribute.bounds is None:
        return
    low, high = attribute.bounds
    if attribute.kind not in _NUMERIC:
        yield (*path, "bounds"), f"{where}.bounds is refused: a {attribute.kind} has no least and greatest value."
    elif not math.isfinite(low) or not math.isfinite(high):
        yield (*path, "bounds"), f"{where}.bounds = [{low}, {high}] is refused: it takes finite numbers."
    elif low >= high:
        yield (*path, "bounds"), f"{where}.bounds = [{low}, {high}] is refused: the first is not less than the second."


def _broken_routing(path: KeyPath, routing: tuple[str, ...], attributes: tuple[Attribute, ...]) -> Iterator[Finding]:
    if not 1 <= len(routing) <= _MOST_ROUTING or len(set(routing)) < len(routing):
        yield path, f"{dotted(path)} is refused: it takes one to {_MOST_ROUTING} attributes, each of them once."
    declared = {attribute.name: attribute for attribute in attributes}
    for number, name in enumerate(routing):
        attribute = declared.get(name)
        if attribute is None:
            problem = f'no attribute is called "{name}"'
        elif attribute.kind not in _NUMERIC:
            problem = f"{name} is a {attribute.kind}, and only numbers have a place on the curve"
        elif attribute.bounds is None:
            problem = f"{name} has no bounds, which say how it is divided"
        else:
            continue
        yield (*path, number), f"{dotted(path)} is refused: {problem}."


def _broken_number(path: KeyPath, name: str, attributes: tuple[Attribute, ...]) -> Iterator[Finding]:
    """A payload that is one number belongs to one attribute; the others come with the message as user properties."""
    readers = [each for each in attributes if len(attributes) == 1 or each.place == _WHOLE]
    if attributes and len(readers) != 1:
        sentence = f'event type {name} has payload = "number", which is one value: declare one attribute, or give '
        yield (*path, "payload"), f'{sentence}exactly one of them path = "{_WHOLE}"; the others are user properties.'
    for each in readers[:1]:
        if each.kind not in _NUMERIC:
            number = attributes.index(each)
            yield (
                (*path, "attributes", number, "kind"),
                f'event type {name} has payload = "number", but {each.name}, to which it belongs, is a {each.kind}.',
            )


def is_spelled(name: str) -> bool:
    """Whether a condition can name an attribute without quotes: words of letters and digits, joined by dots."""
    return (
        (name[:1].isalpha() or name[:1] == "_")
        and all(step and all(char.isalnum() or char == "_" for char in step) for step in name.split("."))
        and name.lower() not in _WORDS
    )
