"""Who clients are: what checks a login, and where nobody in particular is let in."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, Protocol

from tieline.conf import urls
from tieline.conf.schema import Settings
from tieline.core.ports import Allowed, Login, Refused

Anonymous = Literal["loopback", "nowhere", "everywhere"]


class Authenticator(Protocol):
    """Checks who a client is; implement it to ask a directory, a database, or a token's signature."""

    def authenticate(self, login: Login) -> str | None:
        """The user that these credentials belong to; None when they belong to nobody, and no empty name.

        Called in a thread beside the broker, so it may take its time; several at once.  An exception is a refusal, and
        is logged without what the client sent.
        """


def admit_nobody(anonymous: Anonymous, login: Login, *, has_users: bool) -> Allowed | Refused:
    """The verdict on a client that says nothing of itself, or that nothing could check."""
    if anonymous == "everywhere":
        return Allowed('auth.anonymous = "everywhere"', is_anonymous=True)
    if anonymous == "loopback" and _is_loopback(login.listener):
        return Allowed('auth.anonymous = "loopback"', is_anonymous=True)
    if login.username is not None and not has_users:
        return Refused(f'no auth.password_file is set, and auth.anonymous = "{anonymous}" lets nobody in here')
    return Refused(f'clients without a user name are not let in here: auth.anonymous = "{anonymous}"')


@lru_cache(maxsize=256)  # a client that connects is asked about by its listener, and there are few of those
def _is_loopback(listener: str) -> bool:
    """Whether only programs on this machine can reach a listener; not, if it is not known."""
    try:
        return urls.parse(listener).is_loopback()
    except urls.UrlError:
        return False


def closed_to_everybody(settings: Settings, *, has_authenticator: bool) -> list[str]:
    """The addresses of listeners through which nobody can come in."""
    return [
        listener.url
        for listener in settings.listener
        if not has_authenticator
        and settings.auth.password_file is None
        and listener.user_from is None
        and (
            settings.auth.anonymous == "nowhere"
            or (settings.auth.anonymous == "loopback" and not _is_loopback(listener.url))
        )
    ]


def open_to_everybody(settings: Settings) -> list[str]:
    """The addresses of listeners that other machines can reach, and that let in whoever comes."""
    return [
        listener.url
        for listener in settings.listener
        if settings.auth.anonymous == "everywhere" and listener.client_ca is None and not _is_loopback(listener.url)
    ]
