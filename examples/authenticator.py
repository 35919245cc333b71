"""Logins checked in your own way: here a token that carries a name and its signature.

Rules of the configuration go on deciding what a user may do; the authenticator only says who it is.

It prints::

    ann is in, as ann
    a forged token: [code:134] Bad user name or password
"""

import asyncio
import hmac
from hashlib import sha256

import aiomqtt

import tieline
from tieline.core.ports import Login

SECRET = b"keep this somewhere else"


def token(name: str) -> str:
    return f"{name}.{hmac.new(SECRET, name.encode(), sha256).hexdigest()}"


class Tokens:
    """The password is a token; whoever signed it is believed.  It is called in a thread, so it may take its time."""

    def authenticate(self, login: Login) -> str | None:
        name = (login.password or b"").decode("utf-8", "replace").partition(".")[0]
        return name if hmac.compare_digest(token(name).encode(), login.password or b"") else None


async def main() -> None:
    async with tieline.Broker(authenticator=Tokens()) as broker:
        five = aiomqtt.ProtocolVersion.V5
        async with aiomqtt.Client("127.0.0.1", broker.port, username="-", password=token("ann"), protocol=five):
            print("ann is in, as", *(conn.login.user for conn in broker.core.connections if conn.login))
        try:
            async with aiomqtt.Client("127.0.0.1", broker.port, username="-", password="bob.forged", protocol=five):
                print("let in")
        except aiomqtt.MqttError as error:
            print("a forged token:", error)


asyncio.run(main())
