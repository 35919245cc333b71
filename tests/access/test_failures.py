"""Failed logins are counted by address and by user, forgiven with time, and never take much memory."""

from __future__ import annotations

import pytest

from tieline.access.failures import PERIOD_S, Failures, address_of


def test_an_address_that_fails_too_often_is_refused_and_forgiven() -> None:
    failures = Failures(3)
    for _ in range(3):
        assert failures.refusal("1.1.1.1", "ann", 0.0) is None
        failures.failed("1.1.1.1", f"u{_}", 0.0)
    assert failures.refusal("1.1.1.1", "bob", 0.0) == "too many failed logins from this address"
    assert failures.refusal("2.2.2.2", "bob", 0.0) is None, "others are not affected"
    assert failures.refusal("1.1.1.1", "bob", PERIOD_S / 3 + 1) is None


def test_a_user_attacked_from_everywhere_is_refused_except_where_known() -> None:
    failures = Failures(3)
    failures.succeeded("10.0.0.1", "ann")
    for number in range(3):
        failures.failed(f"6.6.6.{number}", "ann", 0.0)
    assert failures.refusal("6.6.6.9", "ann", 0.0) == "too many failed logins for this user"
    assert failures.refusal("10.0.0.1", "ann", 0.0) is None, "nobody can lock her out of where she is known"


def test_a_long_attack_is_forgiven_as_soon_as_a_short_one() -> None:
    failures = Failures(2)
    for _ in range(1_000):
        failures.failed("1.1.1.1", "u", 0.0)
    assert failures.refusal("1.1.1.1", "x", PERIOD_S) is None


def test_none_switches_it_off() -> None:
    failures = Failures("none")
    for _ in range(100):
        failures.failed("1.1.1.1", "u", 0.0)
    assert failures.refusal("1.1.1.1", "u", 0.0) is None
    assert len(failures) == 0


def test_the_tables_are_bounded() -> None:
    failures = Failures(3, most=10)
    for number in range(1_000):
        failures.failed(f"a{number}", f"u{number}", 0.0)
        failures.succeeded(f"a{number}", f"u{number}")
    assert len(failures) == 30


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("192.0.2.1:40000", "192.0.2.1"),
        ("[2001:db8:1:2:3:4:5:6]:1", "2001:db8:1:2"),
        ("[2001:db8::9]:1", "2001:db8:0:0"),
        ("[::1]:1", "0:0:0:0"),
        ("[fe80::1%eth0]:1", "fe80:0:0:0"),
        ("[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.1]"),
    ],
)
def test_an_address_is_the_host_without_its_port_and_a_network_of_ipv6(peer: str, address: str) -> None:
    assert address_of(peer) == address


def test_strangers_at_the_same_address_do_not_lock_out_a_user_who_is_known_there() -> None:
    failures = Failures(10)
    failures.succeeded("10.0.0.1", "ann")
    for number in range(50):
        failures.failed("10.0.0.1", f"stranger {number}", 0.0)
        failures.failed("10.0.0.1", "bob", 0.0)
    assert failures.refusal("10.0.0.1", "ann", 0.0) is None
    assert failures.refusal("10.0.0.1", "bob", 0.0) == "too many failed logins from this address"


def test_a_known_user_has_a_count_of_its_own_that_logins_do_not_clear() -> None:
    failures = Failures(3)
    failures.succeeded("10.0.0.1", "ann")
    for _ in range(3):
        assert failures.refusal("10.0.0.1", "ann", 0.0) is None
        failures.failed("10.0.0.1", "ann", 0.0)
        failures.succeeded("10.0.0.1", "ann")
    assert failures.refusal("10.0.0.1", "ann", 0.0) == "too many failed logins for this user from this address"
    assert failures.refusal("2.2.2.2", "ann", 0.0) is None, "what failed there says nothing about elsewhere"
    assert failures.refusal("10.0.0.1", "ann", PERIOD_S / 3 + 1) is None


def test_long_names_take_no_more_room_than_short_ones() -> None:
    failures = Failures(3, most=10)
    names = [f"{number}".zfill(60_000) for number in range(10)]
    for name in names:
        failures.failed("1.1.1.1", name, 0.0)
        failures.succeeded("2.2.2.2", name)
    kept = [*failures._users, *(user for user, _ in failures._trusted)]
    assert len(kept) == 20 and sum(map(len, kept)) < 2_000
    for _ in range(2):
        failures.failed("3.3.3.3", names[0], 0.0)
    assert failures.refusal("4.4.4.4", names[0], 0.0) == "too many failed logins for this user", "they are told apart"
    assert failures.refusal("4.4.4.4", names[1], 0.0) is None
