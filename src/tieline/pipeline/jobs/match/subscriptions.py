"""Subscriptions to replay: read from a file or a command line, and taken apart as a broker does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from tieline.conf.quantities import bound
from tieline.conf.schema import Limits
from tieline.core.inbound.subscription_request import read_request
from tieline.match.where import Predicate
from tieline.wire.errors import ProtocolError
from tieline.wire.packets import Subscription as Written
from tieline.wire.topics import check_filter

#: Levels of a filter that a broker keeps unless it is told otherwise.
_MAX_LEVELS = bound(Limits().topic_levels)


class NoSubscription(ValueError):
    """A subscription that cannot be replayed; the text is a sentence that names it."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscription: what it is called in the answer, and what it asks for."""

    id: str
    filter: str
    predicate: Predicate | None

    @property
    def is_stateful(self) -> bool:
        """Whether its answer depends on what it was sent before."""
        return self.predicate is not None and bool(self.predicate.watched)


class _Named(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    filter: str
    where: str | None = None


def subscription(text: str, *, id: str | None = None, where: str | None = None) -> Subscription:
    """A subscription as a client writes it: ``FILTER``, ``FILTER?CONDITION`` or ``$where/CONDITION/FILTER``.

    ``where`` is one more condition, as the user property of a SUBSCRIBE.
    """
    called = f'"{text if id is None else id}"'
    asked = read_request(Written(filter=text), () if where is None else (where,), question_mark=True)
    if asked.refusal is not None:
        said = asked.refusal.rule.removeprefix("condition: ")
        raise NoSubscription(f"the condition of {called} cannot be understood: {said}.")
    if asked.share is not None:
        raise NoSubscription(
            f"{called} is a shared subscription: who of its group gets a message depends on who was there and how "
            "busy; replay its filter without $share instead."
        )
    try:
        check_filter(asked.filter, _MAX_LEVELS)
    except ProtocolError as error:
        raise NoSubscription(f"{called} is no topic filter: {error.text}.") from None
    return Subscription(text if id is None else id, asked.filter, asked.predicate)


def read(file: Path) -> list[Subscription]:
    """Subscriptions from a file: one on each line, or a JSON array of ``{"id", "filter", "where"}``."""
    try:
        text = file.read_text()
    except OSError as problem:
        raise NoSubscription(f"cannot read {file}: {(problem.strerror or str(problem)).lower()}.") from None
    except UnicodeDecodeError:
        raise NoSubscription(f"{file} is no text.") from None
    if text.lstrip().startswith("["):
        try:
            written = msgspec.json.decode(text, type=list[_Named])
        except msgspec.DecodeError as problem:
            raise NoSubscription(f"{file} holds no subscriptions: {str(problem).lower()}.") from None
        return distinct(subscription(each.filter, id=each.id, where=each.where) for each in written)
    return distinct(_lines(file, text.splitlines()))


def distinct(subscriptions: Iterable[Subscription]) -> list[Subscription]:
    """The subscriptions, once it is clear that no two are called the same."""
    found = list(subscriptions)
    seen: set[str] = set()
    for each in found:
        if each.id in seen:
            raise NoSubscription(f'two subscriptions are called "{each.id}".')
        seen.add(each.id)
    return found


def _lines(file: Path, lines: Sequence[str]) -> Iterable[Subscription]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield subscription(line.strip())
            except NoSubscription as problem:
                raise NoSubscription(f"{file}, line {number}: {problem}") from None
