from __future__ import annotations

import pytest

from tieline.wire.errors import Malformed, ProtocolError, TooLarge, Violation
from tieline.wire.packet_type import PacketType
from tieline.wire.reason import ALLOWED, RETURN_CODES, Reason, connack_return_code


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


def test_every_code_of_the_specification_has_a_name() -> None:
    assert len({reason.value for reason in Reason}) == 43
    assert max(Reason) == 0xA2


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (Reason.SUCCESS, 0),
        (Reason.UNSUPPORTED_PROTOCOL_VERSION, 1),
        (Reason.CLIENT_IDENTIFIER_NOT_VALID, 2),
        (Reason.SERVER_UNAVAILABLE, 3),
        (Reason.SERVER_BUSY, 3),
        (Reason.QUOTA_EXCEEDED, 3),
        (Reason.BAD_USER_NAME_OR_PASSWORD, 4),
        (Reason.NOT_AUTHORIZED, 5),
        (Reason.BANNED, 5),
        (Reason.BAD_AUTHENTICATION_METHOD, 5),
    ],
)
def test_connack_in_311_uses_the_nearest_return_code(reason: Reason, code: int) -> None:
    assert connack_return_code(reason) == code


def test_no_refusal_becomes_an_acceptance() -> None:
    for reason in ALLOWED[PacketType.CONNACK].values():
        assert (connack_return_code(reason) == 0) == (reason is Reason.SUCCESS)
    assert [connack_return_code(reason) for reason in RETURN_CODES] == list(range(6))
