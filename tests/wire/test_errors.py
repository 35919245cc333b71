from __future__ import annotations

import pytest

from tieline.wire.errors import Malformed, ProtocolError, TooLarge, Violation
from tieline.wire.reason import Reason


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Malformed("it is short", "1.2"), Reason.MALFORMED_PACKET),
        (Violation("it is short", "1.2"), Reason.PROTOCOL_ERROR),
        (Violation("it is short", "1.2", Reason.TOPIC_ALIAS_INVALID), Reason.TOPIC_ALIAS_INVALID),
        (TooLarge("it is short", "1.2"), Reason.PACKET_TOO_LARGE),
    ],
)
def test_a_refusal_says_what_by_which_clause_and_with_which_code(error: ProtocolError, reason: Reason) -> None:
    assert isinstance(error, ProtocolError)
    assert (error.text, error.clause, error.reason) == ("it is short", "1.2", reason)
    assert str(error) == "it is short [1.2]"
