"""Questions on the management channel, about causes and about demand: from JSON to the core's own answers, and back."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal  # Any: values of JSON

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict

from tieline.core.account import NO_LEVEL, Drop
from tieline.core.answers import why as causes
from tieline.core.answers.trace import Probe, trace
from tieline.core.answers.why import standing_of
from tieline.core.figures.demand import DemandError
from tieline.sched.levels import LEVELS

if TYPE_CHECKING:
    from tieline.core.account import Dropped
    from tieline.core.broker import Broker


#: Records in one answer.
MOST_DROPS = 1_000


class InquiryError(ValueError):
    """A question that cannot be meant; the text is a whole sentence without its full stop."""


class Why(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``{"do": "why", "client": …}``: how a client is doing, or one of three questions about it."""

    do: Literal["why"]
    client: str
    ask: Literal["", "publish", "subscribe", "dropped"] = ""
    #: The topic or filter in question.
    subject: str = ""


class Drops(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``{"do": "drops", …}``: the last discarded messages that fit, newest first."""

    do: Literal["drops"]
    client: str | None = None
    #: A topic filter.
    topic: str | None = None
    why: str | None = None
    #: A level, or the name of a class; -1 for messages that had none yet.
    class_: int | str | None = msgspec.field(default=None, name="class")
    #: Not older than this.
    since_s: Annotated[float, Meta(ge=0)] | None = None
    most: Annotated[int, Meta(ge=1, le=MOST_DROPS)] = 100


class _Traced(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message that is asked about."""

    do: Literal["trace"]
    topic: str
    #: In base64: a payload is bytes.
    payload: str = ""
    qos: Annotated[int, Meta(ge=0, le=2)] = 0
    retain: bool = False
    properties: tuple[tuple[str, str], ...] = ()
    client: str = ""

    def probe(self, **more: Any) -> Probe:
        """The message, and what only one of both kinds of questions knows of it; raises InquiryError."""
        return Probe(
            topic=self.topic,
            payload=_payload(self.payload),
            qos=self.qos,
            retain=self.retain,
            properties=self.properties,
            client=self.client,
            **more,
        )


class Trace(_Traced, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``{"do": "trace", "topic": …}``: who would get a message and why."""

    header_level: Annotated[int, Meta(ge=0, le=3)] | None = None


class Arrived(_Traced, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same ``trace`` of another broker, which would have accepted the message: who would get it here."""

    level: Annotated[int, Meta(ge=0, le=3)] = 0


def here(request: dict[str, Any]) -> dict[str, Any]:
    """A question without what says whom else to ask."""
    return {name: value for name, value in request.items() if name != "all"}


def answer_arrived(core: Broker, request: dict[str, Any], broker: str, now: float) -> dict[str, Any]:
    """Who would get a message here that another broker has accepted; raises InquiryError."""
    try:
        asked = msgspec.convert(request, Arrived)
    except msgspec.ValidationError as problem:
        raise InquiryError(str(problem).lower()) from None
    return _answer_trace(core, asked.probe(broker=broker, level=asked.level), now)


def _payload(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise InquiryError("the payload is not base64") from None


def answer(core: Broker, request: dict[str, Any], now: float) -> dict[str, Any]:
    """Answer one question; raises InquiryError."""
    try:
        asked = msgspec.convert(request, _SHAPES[request["do"]])
    except msgspec.ValidationError as problem:
        raise InquiryError(str(problem).lower()) from None
    if isinstance(asked, Why):
        return _why(core, asked, now)
    if isinstance(asked, Drops):
        return _drops(core, asked, now)
    return _answer_trace(core, asked.probe(header_level=asked.header_level), now)


_SHAPES: dict[str, type[Why | Drops | Trace]] = {"why": Why, "drops": Drops, "trace": Trace}
KNOWN = tuple(_SHAPES)


def _why(core: Broker, asked: Why, now: float) -> dict[str, Any]:
    if asked.ask in {"publish", "subscribe"} and not asked.subject:
        raise InquiryError(f'"{asked.ask}" needs a topic or a filter')
    if asked.ask == "publish":
        steps = causes.may_publish(core, asked.client, asked.subject, now)
    elif asked.ask == "subscribe":
        steps = causes.may_subscribe(core, asked.client, asked.subject, now)
    else:
        steps = standing_of(core, asked.client, now)
    found: dict[str, Any] = {
        "client": asked.client,
        "is_known": asked.client in core.sessions,
        "steps": [asdict(step) for step in steps],
    }
    if asked.ask == "dropped":
        topic = asked.subject or None
        found["drops"] = _described(core, causes.victims(core, client=asked.client, topic=topic, most=MOST_DROPS), now)
    return found


def _drops(core: Broker, asked: Drops, now: float) -> dict[str, Any]:
    if asked.why is not None and asked.why not in set(Drop):
        raise InquiryError(f'"{asked.why}" is no reason; known are {", ".join(Drop)}')
    victims = causes.victims(
        core,
        client=asked.client,
        topic=asked.topic,
        why=None if asked.why is None else Drop(asked.why),
        level=_level(core, asked.class_),
        since=None if asked.since_s is None else now - asked.since_s,
        most=asked.most,
    )
    return {
        "kept": len(core.account.last_drops),
        "total": sum(core.account.drops.values()),
        "drops": _described(core, victims, now),
    }


def _level(core: Broker, wanted: int | str | None) -> int | None:
    names = core.priorities.classes.names
    if wanted is None or (isinstance(wanted, int) and NO_LEVEL <= wanted < LEVELS):
        return wanted
    if isinstance(wanted, str) and wanted in names:
        return names.index(wanted)
    raise InquiryError(f'"{wanted}" is no class; known are {", ".join(names)}, and the levels 0 to {LEVELS - 1}')


def _described(core: Broker, victims: list[Dropped], now: float) -> list[dict[str, Any]]:
    return [
        {
            "ago_s": now - one.when,
            "why": one.why.value,
            "class": class_name(core, one.level),
            "client": one.client,
            "topic": one.topic,
            "messages": one.messages,
            "queued": one.queued,
            "age_s": one.age_s,
        }
        for one in victims
    ]


def class_name(core: Broker, level: int) -> str:
    """What a level is called; empty for messages that had none yet."""
    return "" if level == NO_LEVEL else core.priorities.classes.names[level]


def _answer_trace(core: Broker, probe: Probe, now: float) -> dict[str, Any]:
    found = trace(core, probe, now)
    return {
        "topic": probe.topic,
        "level": found.level,
        "is_refused": found.is_refused,
        "steps": [asdict(step) for step in found.steps],
        "receivers": [asdict(receiver) for receiver in found.receivers],
        "unlisted": found.unlisted,
    }


#: For how long a count may last, in seconds.
MOST_S: Final = 3_600.0


class Counting(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``{"do": "demand", …}``: begin to count, or take what was counted, a portion at a time."""

    do: Literal["demand"]
    act: Literal["begin", "take"]
    #: Begin: how long the count may last at most; nobody may come for it any more.
    seconds: Annotated[float, Meta(ge=1, le=MOST_S)] = 60.0
    #: Take: which count, how many entries at most, and which portion by whoever may have to ask again.
    number: int = 0
    most: Annotated[int, Meta(ge=1)] | None = None
    portion: Annotated[int, Meta(ge=0)] | None = None


def answer_demand(core: Broker, request: dict[str, Any], now: float, *, by: str = "") -> dict[str, Any]:
    """Begin a count, or give a portion of one; raises DemandError.  ``by`` is who asks, for the log."""
    try:
        asked = msgspec.convert(request, Counting)
    except msgspec.ValidationError as problem:
        raise DemandError(str(problem).lower()) from None
    if asked.act == "begin":
        return {"number": core.demand.begin(asked.seconds, now, by=by)}
    portion = core.demand.take(asked.number, now, most=asked.most, portion=asked.portion)
    return {
        "seconds": portion.seconds,
        "unnamed": portion.unnamed,
        "flows": portion.flows,
        "subscriptions": portion.subscriptions,
        "more": not portion.is_last,
    }
