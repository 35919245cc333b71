"""Certificates and remembered passwords: small parts of the answer to "who is this?"."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from tieline.core.ports import Login
from tieline.net.auth.pool import Remembered
from tieline.net.tls import user_of


def subject(*names: str) -> dict[str, Any]:
    return {"subject": tuple((("commonName", name),) for name in names)}


@pytest.mark.parametrize(
    ("certificate", "source", "user"),
    [
        (subject("ann"), "cn", "ann"),
        (subject("ann", "root"), "cn", ""),
        (subject("a\0b"), "cn", ""),
        ({}, "cn", ""),
        (None, "san", ""),
        ({"subject": ((("organizationName", "x"),),)}, "cn", ""),
        ({"subjectAltName": (("IP Address", "1.2.3.4"), ("email", "ann@x"), ("DNS", "d"))}, "san", "ann@x"),
        ({"subjectAltName": (("DNS", "d"),), **subject("ann")}, "cn", "ann"),
        (subject("ann"), "san", ""),
    ],
)
def test_whom_a_certificate_names(certificate: dict[str, Any] | None, source: Literal["cn", "san"], user: str) -> None:
    assert user_of(certificate, source) == user


def login(user: str, password: bytes) -> Login:
    return Login(client_id="c", username=user, password=password, listener="", peer="")


def test_what_was_right_is_recognised_for_its_time_and_nothing_else_is() -> None:
    memory = Remembered(10.0)
    memory.keep(login("ab", b"c"), "ab", 0.0)
    assert memory.recall(login("ab", b"c"), 9.9) == "ab"
    assert memory.recall(login("a", b"bc"), 1.0) is None
    assert memory.recall(login("ab", b"C"), 1.0) is None
    assert memory.recall(login("ab", b"c"), 10.0) is None


def test_it_is_bounded_can_be_cleared_and_switched_off() -> None:
    memory = Remembered(10.0, most=5)
    for number in range(50):
        memory.keep(login(f"u{number}", b"x"), f"u{number}", 0.0)
    assert len(memory) == 5 and memory.recall(login("u49", b"x"), 0.0) == "u49"
    memory.clear()
    assert memory.recall(login("u49", b"x"), 0.0) is None
    off = Remembered(0.0)
    off.keep(login("a", b"x"), "a", 0.0)
    assert len(off) == 0


def test_it_holds_no_password() -> None:
    memory = Remembered(10.0)
    memory.keep(login("ann", b"top secret"), "ann", 0.0)
    assert b"top secret" not in repr(memory._known).encode() and "top secret" not in repr(memory)
