"""What one filter of a SUBSCRIBE asks for: share, bare filter and condition, however they were spelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from tieline.core.ports import Refused
from tieline.match.where import ExpressionError, Predicate, parse, split
from tieline.wire.packets import Subscription
from tieline.wire.reason import Reason

#: The user property of a SUBSCRIBE that holds for all of its filters.
WHERE: Final = "$where"


class Wish(NamedTuple):
    """One filter of a SUBSCRIBE, taken apart."""

    options: Subscription
    share: str | None
    #: The filter alone: what rules are asked about, and what is matched with topics.
    filter: str
    predicate: Predicate | None
    #: Why its condition cannot be understood; the filter is refused, and only this one.
    refusal: Refused | None


def read_wish(options: Subscription, conditions: Sequence[str], *, question_mark: bool) -> Wish:
    """Take a filter apart; ``conditions`` hold in addition to its own."""
    if not conditions and "?" not in options.filter and not options.filter.startswith("$"):
        return Wish(options, None, options.filter, None, None)
    share, filter_ = None, options.filter
    try:
        share, filter_, own = split(options.filter, question_mark=question_mark)
        texts = [*conditions] if own is None else [own, *conditions]
        if not texts:
            return Wish(options, share, filter_, None, None)
        # each on its own first, so that an error points into what the client wrote
        parsed = [parse(text) for text in texts]
        predicate = parsed[0] if len(parsed) == 1 else parse(" and ".join(f"({text})" for text in texts))
    except ExpressionError as error:
        return Wish(options, share, filter_, None, Refused(f"condition: {error}", Reason.TOPIC_FILTER_INVALID))
    return Wish(options, share, filter_, predicate, None)
