"""The door counts whom it did not hear, and knows who may stay when its users change."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from tests.net.auth.users import write_users
from tieline.conf.schema import Auth, Settings
from tieline.core.ports import Login
from tieline.net.auth.door import Door, read_users


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


def test_who_is_in_without_being_a_user_does_not_stay(tmp_path: Path) -> None:
    """However somebody came in: at each reload only the users that there are then are left."""
    settings = Settings(auth=Auth(password_file=str(write_users(tmp_path / "users", ann="one", bob="two"))))
    door = Door(
        settings,
        authenticator=None,
        deliver=lambda done, outcome: done(outcome),
        decided=lambda _token, _verdict: None,
        clock=lambda: 0.0,
    )
    users = read_users(settings)
    assert users is not None
    why = door.renew(settings, users)
    stays = {name: why(structs.replace(_login(1), user=name)) is None for name in ("ann", "bob", "carol")}
    assert stays == {"ann": True, "bob": True, "carol": False}
    door.close()
