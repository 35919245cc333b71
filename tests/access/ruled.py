"""A broker without sockets whose rules are real and whose users are whoever they say."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.kits.world import World
from tieline.access.rules import Rules
from tieline.conf.schema import Mqtt, Rule, Settings
from tieline.core.ports import Action, Allowed, Login, Verdict


class Ruled:
    """Takes clients at their word, and topics by the rules."""

    def __init__(self, settings: Settings) -> None:
        self.rules = Rules(settings)

    @property
    def is_open(self) -> bool:
        return self.rules.is_open

    @property
    def effort(self) -> int:
        return self.rules.effort

    def connect(self, login: Login) -> Verdict:
        return Allowed("its word", user=login.username)

    def publish(self, login: Login, topic: str) -> Verdict:
        return self.rules.publish(login, topic)

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        return self.rules.subscribe(login, filter_)

    def may(self, action: Action, user: str | None, client_id: str, topic: str) -> bool:
        return self.rules.may(action, user, client_id, topic)


def ruled(*rules: Rule, settings: Settings | None = None, **options: Any) -> World:
    """A world with these rules; no $SYS unless asked for."""
    settings = msgspec.structs.replace(settings or Settings(mqtt=Mqtt(sys_interval_s=0)), rule=rules)
    return World(settings, access=Ruled(settings), **options)
