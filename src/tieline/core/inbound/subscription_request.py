"""What a SUBSCRIBE asks for: filters taken apart, however they were spelled, what speaks against them, and patience.

A filter may hold a share, the bare filter and a condition.  What a subscriber asks for its low classes (timeout, time
period and distribution frequency) comes as user properties, holds for the whole session from then on, and is clamped to
what the configuration allows: less would let one subscriber's bulk hold up its own urgent messages and cost the broker
work.  A property that cannot be read is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Final, NamedTuple

from tieline.conf.quantities import Limit, bound, seconds
from tieline.conf.schema import Mqtt, Priority
from tieline.core.client import Session
from tieline.core.ports import Refused
from tieline.core.routing.route import CONDITION_BYTES_EACH, weight_of
from tieline.match.where import ExpressionError, Predicate, parse, split
from tieline.sched.levels import Patience
from tieline.wire.errors import ProtocolError
from tieline.wire.packets import Subscription
from tieline.wire.reason import Reason
from tieline.wire.topics import check_filter, is_plain_filter

#: The user property of a SUBSCRIBE that holds for all of its filters.
WHERE: Final = "$where"
_UNITS = ("us", "ms", "s", "m", "h")
#: Longer is as good as never.
_LONGEST_S = 86_400.0


class SubscriptionRequest(NamedTuple):
    """One filter of a SUBSCRIBE, taken apart."""

    options: Subscription
    share: str | None
    #: The filter alone: what rules are asked about, and what is matched with topics.
    filter: str
    predicate: Predicate | None
    #: Why its condition cannot be understood; the filter is refused, and only this one.
    refusal: Refused | None


class RequestReader:
    """Takes the filters of one SUBSCRIBE apart; the conditions that hold for all of them are parsed once."""

    __slots__ = ("_characters", "_common", "_conditions", "_fault", "_question_mark")

    def __init__(self, conditions: Sequence[str], *, question_mark: bool) -> None:
        self._conditions = tuple(conditions)
        self._question_mark = question_mark
        #: Characters of conditions that were parsed since somebody last asked.
        self._characters = 0
        #: What the conditions come to for a filter without one of its own; made when it is needed.
        self._common: Predicate | None = None
        #: What is wrong with them, and where; not the error itself, which would hold on to everything on its way.
        self._fault: tuple[str, int] | None = None

    def take_parsed(self) -> int:
        """How many characters of conditions were parsed since the last call."""
        parsed, self._characters = self._characters, 0
        return parsed

    def read(self, options: Subscription) -> SubscriptionRequest:
        """Take a filter apart; the conditions of the packet hold in addition to its own."""
        if not self._conditions and "?" not in options.filter and not options.filter.startswith("$"):
            return SubscriptionRequest(options, None, options.filter, None, None)
        share, filter_ = None, options.filter
        try:
            share, filter_, own = split(options.filter, question_mark=self._question_mark)
            predicate = self._predicate(own)
        except ExpressionError as error:
            refused = Refused(f"condition: {error}", Reason.TOPIC_FILTER_INVALID)
            return SubscriptionRequest(options, share, filter_, None, refused)
        return SubscriptionRequest(options, share, filter_, predicate, None)

    def _predicate(self, own: str | None) -> Predicate | None:
        """What a filter asks for by all conditions together; None without any."""
        if own is None:
            if self._conditions and self._common is None:
                self._common = self._parse_common()
            return self._common
        # each on its own first, so that an error points into what the client wrote
        alone = self._parse(own)
        if not self._conditions:
            return alone
        if self._common is None:
            self._common = self._parse_common()
        return self._parse_together((own, *self._conditions))

    def _parse_common(self) -> Predicate:
        if self._fault is not None:
            raise ExpressionError(*self._fault)
        try:
            parsed = [self._parse(text) for text in self._conditions]
            return parsed[0] if len(parsed) == 1 else self._parse_together(self._conditions)
        except ExpressionError as fault:
            self._fault = (fault.text, fault.column)
            raise

    def _parse_together(self, texts: Sequence[str]) -> Predicate:
        return self._parse(" and ".join(f"({text})" for text in texts))

    def _parse(self, text: str) -> Predicate:
        self._characters += len(text)
        return parse(text)


def read_request(options: Subscription, conditions: Sequence[str], *, question_mark: bool) -> SubscriptionRequest:
    """Take a single filter apart; ``conditions`` hold in addition to its own."""
    return RequestReader(conditions, question_mark=question_mark).read(options)


def check_spelling(spelled: str, share: str | None, filter_: str, levels: int, version: int) -> Refused | None:
    """Why a filter is refused that is not well-formed or has too many levels; None when it is and has not.

    MQTT 5: that filter alone, with 0x8F.  It is one error in a packet that can be read, and 4.13 leaves the rigour to
    the receiver: "a compromise between [...] the consequences of continuing to process a packet that is incorrect".
    There is none here, while closing would cost the client the other filters of the packet.

    3.1.1 has no such code, and a filter that breaks its rules ends the connection ([MQTT311-4.7.1-2],
    [MQTT311-4.7.1-3], [MQTT311-4.7.3-1], [MQTT311-4.8.0-1]): raises.  But it knows neither shares nor conditions.  What
    is wrong only as one of those is a legal filter to such a client, and is answered ([MQTT311-3.8.4-1]).
    """
    try:
        check_filter(filter_ if share is None else f"$share/{share}/{filter_}", levels)
    except ProtocolError as error:
        if version == 4 and not error.clause.startswith("4.7.3") and not is_plain_filter(spelled):
            raise
        return Refused(str(error), Reason.TOPIC_FILTER_INVALID)
    return None


def refusal_of(request: SubscriptionRequest, mqtt: Mqtt, levels: int, version: int) -> Refused | None:
    """Why a filter is refused, whoever asks for it; None when it is not.  Raises as :func:`check_spelling` does."""
    if request.refusal is not None:
        return request.refusal
    share, filter_ = request.share, request.filter
    refusal = check_spelling(request.options.filter, share, filter_, levels, version)
    if refusal is not None:
        return refusal
    if share is not None and not mqtt.shared_available:
        return Refused("shared subscriptions are switched off", Reason.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED)
    if not mqtt.wildcard_available and ("+" in filter_ or "#" in filter_):
        return Refused("wildcards are switched off", Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED)
    return None


def lack_of_room(written: str, session: Session, most: int, all_weigh: int, total: Limit) -> Refused | None:
    """Why a session, or the broker, keeps no more subscriptions; None when it does, or when it keeps this one."""
    if written in session.subscriptions:
        return None
    weight = weight_of(written)
    if session.weight + weight > most:
        return Refused(f"a session may have {most} subscriptions", Reason.QUOTA_EXCEEDED)
    if all_weigh + weight > bound(total):
        return Refused(f"the broker keeps {total} subscriptions", Reason.QUOTA_EXCEEDED)
    owner = session.owner
    if owner.weight + weight > owner.bounds.subscriptions:
        return Refused(f"{owner.name} may have {owner.bounds.subscriptions} subscriptions", Reason.QUOTA_EXCEEDED)
    text = owner.refusal(len(written) * CONDITION_BYTES_EACH)
    return None if text is None else Refused(text, Reason.QUOTA_EXCEEDED)


def asked_patience(
    settings: Priority, properties: Sequence[tuple[str, str]], before: Patience | None = None
) -> Patience | None:
    """What the properties ask for, within the configured bounds; what they leave out stays as it was before."""
    asked = dict(properties)
    period_s = _duration(asked.get("period"))
    timeout_s = _duration(asked.get("timeout"))
    frequency = _number(asked.get("frequency"))
    if period_s is None and timeout_s is None and frequency is None:
        return before
    before = before or Patience(period_s=seconds(settings.period), frequency=settings.frequency)
    return Patience(
        period_s=before.period_s if period_s is None else max(seconds(settings.period_min), period_s),
        frequency=before.frequency if frequency is None else min(settings.frequency_max, int(frequency)),
        timeout_s=before.timeout_s if timeout_s is None else max(seconds(settings.timeout_min), timeout_s),
    )


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None


def _duration(text: str | None) -> float | None:
    """Seconds, with or without a unit."""
    if text is None:
        return None
    for unit in _UNITS:
        if text.endswith(unit) and (unit != "s" or not text.endswith(("us", "ms"))):
            number = _number(text.removesuffix(unit))
            return None if number is None else min(_LONGEST_S, seconds(f"{number:f}{unit}"))
    number = _number(text)
    return None if number is None else min(_LONGEST_S, number)
