"""The door counts whom it did not hear, across all pools it has ever had."""

from __future__ import annotations

from tieline.conf.schema import Auth, Settings
from tieline.core.ports import Login
from tieline.net.auth.door import Door


class _Nobody:
    def authenticate(self, login: Login) -> str | None:
        return None


def _login(number: int) -> Login:
    return Login(client_id="c", username="u", password=b"p", listener="", peer=f"10.0.0.{number}:1")


def test_those_who_were_turned_away_stay_counted_when_settings_change() -> None:
    settings = Settings(auth=Auth(workers=1, waiting=1))
    door = Door(
        settings,
        authenticator=_Nobody(),
        deliver=lambda done, outcome: done(outcome),
        decided=lambda _token, _verdict: None,
        clock=lambda: 0.0,
    )
    assert door._pool is not None
    door._pool._workers = 0  # nobody is checked, so that the line stays full
    for number in range(4):
        door.gate.admit(_login(number), lambda _verdict: None)
    assert door.turned_away == 3
    door.renew(settings, None)
    assert door.turned_away == 3 and door.throttled == 0
    door.close()
