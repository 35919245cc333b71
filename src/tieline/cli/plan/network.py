"""Joined brokers: the links between them as they know them, and all of them reached by one.

One broker passes questions on to others; where question or answer is lost, it is asked again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple  # Any: values of JSON

import msgspec

from tieline.cli.management import Management, Visitor
from tieline.cli.plan.brokers import Channel, RunningBroker, at_once, channel_to, naming
from tieline.cli.trouble import MISUSED, Trouble

if TYPE_CHECKING:
    from tieline.plan.reading.backbone import Backbone
    from tieline.plan.reading.joined import NetAnswer

#: How long an answer is waited for, each time that the question is asked: on the way both may be lost, full thin links
#: take their time, and whoever is asked much refuses.
_PATIENCE_S: Final = (2.0, 4.0, 8.0, 2.0, 8.0)
#: A broker answers four questions of another one in a second, and eight after a pause.
_BURST: Final = 6
_PACE_S: Final = 0.27
#: A broker that is alone says so, over HTTP with a status; there it may also be somebody else's right to see that.
_UNKNOWN: Final = ("not joined", "refused (403)", "refused (404)")
#: Entries of a portion of a count, which has to travel.
_ENTRIES: Final = 100


class Passed:
    """One broker, reached by another one; each question has a channel of its own, so several may wait."""

    def __init__(self, channel: Management, name: str) -> None:
        self._path = channel.path
        self._name = name
        self._asked = 0
        self._portions: dict[int, int] = {}

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        """The broker's answer to one question."""
        if more.get("act") == "take":
            number = more["number"]
            portion = self._portions[number] = self._portions.get(number, -1) + 1
            more |= {"portion": portion, "most": _ENTRIES}
        for within_s in _PATIENCE_S[:-1]:
            try:
                return self._ask(do, more | {"within_s": within_s})
            except Trouble as trouble:
                if "did not answer" not in str(trouble):
                    raise
        return self._ask(do, more | {"within_s": _PATIENCE_S[-1]})

    def _ask(self, do: str, more: Mapping[str, Any]) -> dict[str, Any]:
        self._asked += 1
        if self._asked > _BURST:
            time.sleep(_PACE_S)
        with Management(self._path) as channel:
            return channel.ask(do, at=self._name, **more)


def everybody(answer: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By name what all brokers have said to a question; raises Trouble with the words of the first that refused."""
    found = {answer["name"]: {key: value for key, value in answer.items() if key not in ("asked", "others", "silent")}}
    for name, said in answer.get("others", {}).items():
        if "error" in said:
            raise Trouble(f"broker {name} refused: {said['error']}.")
        found[name] = said
    return found


def networked(
    opened: ExitStack, brokers: Sequence[RunningBroker], visitor: Visitor, *, capacity: float, in_bytes: bool
) -> tuple[list[RunningBroker], Backbone]:
    """Brokers, and the links between them as they say it themselves; one alone stands for all it is joined with."""
    from tieline.plan.reading.backbone import unlinked
    from tieline.plan.reading.joined import joined_backbone

    found: list[RunningBroker] = []
    answers: dict[str, NetAnswer] = {}
    for broker in brokers:
        with naming(broker):
            channel = opened.enter_context(channel_to(broker, visitor))
            found.append(broker._replace(channel=channel))
            answer = net_of(channel)
            if answer is None:
                continue
            if len(brokers) == 1 and isinstance(channel, Management):
                reached = everywhere(channel, answer, capacity=capacity, in_bytes=in_bytes)
                return reached.brokers, reached.backbone
            if answer.name != broker.name:
                said = f"this broker is called {answer.name}: its links have that name, so write it, or add --links."
                raise Trouble(said, code=MISUSED)
            answers[answer.name] = answer
    if len(answers) < len(brokers):
        return found, unlinked([broker.name for broker in brokers])
    return found, joined_backbone(answers, capacity=capacity, in_bytes=in_bytes)


class Reached(NamedTuple):
    """All brokers that one of them reaches, the links between them, and what each broker has said of its own."""

    brokers: list[RunningBroker]
    backbone: Backbone
    answers: dict[str, NetAnswer]


def everywhere(channel: Management, answer: NetAnswer, *, capacity: float, in_bytes: bool) -> Reached:
    """Ask one broker and, through it, all that it reaches."""
    from tieline.plan.reading.joined import joined_backbone

    others = [name for name in answer.reachable if name != answer.name]
    found = [RunningBroker(answer.name, "", channel)]
    found += [RunningBroker(name, "", Passed(channel, name)) for name in others]

    answers = {answer.name: answer}
    for name, said in briefs(found[1:]).items():
        # which links there are is known to all, and need not travel
        answers[name] = msgspec.structs.replace(said, links=answer.links)
    return Reached(found, joined_backbone(answers, capacity=capacity, in_bytes=in_bytes), answers)


def briefs(brokers: Sequence[RunningBroker]) -> dict[str, NetAnswer]:
    """By name what each broker says of its own links, all asked at the same time; those that are alone say nothing."""

    def said_of(broker: RunningBroker) -> NetAnswer | None:
        with naming(broker):
            assert broker.channel is not None
            return net_of(broker.channel, is_brief=True)

    answers = zip(brokers, at_once(brokers, said_of), strict=True)
    return {broker.name: said for broker, said in answers if said is not None}


def net_of(channel: Channel, *, is_brief: bool = False) -> NetAnswer | None:
    """What a broker says of the network, or only of its own links; None if it is alone, or tells others over HTTP."""
    from tieline.plan.reading.joined import NetAnswer

    try:
        answer = channel.ask("net", **({"brief": True} if is_brief else {}))
    except Trouble as trouble:
        if any(words in str(trouble) for words in _UNKNOWN):
            return None
        raise
    try:
        return msgspec.convert(answer, NetAnswer)
    except msgspec.ValidationError as problem:
        raise Trouble(f"the broker's answer cannot be read; is it of another version? ({problem})") from None
