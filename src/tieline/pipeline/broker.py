"""A broker as an MQTT client knows it: its address, who we are to it, and a paho client made of that."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.reasoncodes import ReasonCode

from tieline.pipeline.options import Given, OptionError

#: Options that every format with a broker has.
NAMES: Final = ("broker", "user", "password", "passwordFile", "ca")
_PORTS: Final = {"mqtt": 1883, "mqtts": 8883}


class BrokerError(Exception):
    """A broker could not be reached, or refused; the message is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAddress:
    """Where a broker is, and who we are to it."""

    url: str
    host: str
    port: int
    is_tls: bool
    user: str | None
    password: str | None
    #: Certificates to trust (PEM); None for those of the system.
    ca: str | None

    def __repr__(self) -> str:
        """Without the password: plans and errors are printed."""
        return f"BrokerAddress({self.url})"

    def client(self, client_id: str, *, is_version_5: bool = True, is_clean: bool = True) -> paho.Client:
        """A client that is not connected yet; ``is_clean`` matters to versions before 5, which say it here."""
        client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id,
            clean_session=None if is_version_5 else is_clean,
            protocol=MQTTProtocolVersion.MQTTv5 if is_version_5 else MQTTProtocolVersion.MQTTv311,
        )
        if self.user is not None:
            client.username_pw_set(self.user, self.password)
        if self.is_tls:
            client.tls_set_context(self._context())
        return client

    def _context(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cadata=self.ca)
        except (ssl.SSLError, ValueError) as problem:
            raise BrokerError(f"the certificates of the option ca cannot be used: {problem}") from None


def read_broker(given: Given) -> BrokerAddress:
    """The broker that options name; raises :class:`OptionError`."""
    url = given.text("broker")
    if url is None:
        raise OptionError('the option broker is missing: .option("broker", "mqtt://HOST:1883"), or mqtts://')
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in _PORTS or not parts.hostname or parts.path.strip("/") or "@" in parts.netloc or port == -1:
        raise OptionError(f'broker = "{url}" is refused: it is mqtt://HOST:PORT or mqtts://HOST:PORT')
    return BrokerAddress(
        url=url.rstrip("/"),
        host=parts.hostname,
        port=port or _PORTS[parts.scheme],
        is_tls=parts.scheme == "mqtts",
        user=given.text("user"),
        password=given.password(),
        ca=given.file("ca"),
    )


def leave(client: paho.Client) -> None:
    """Disconnect a client for good; nothing is called back any more when this returns."""
    client.disconnect()
    client.loop_stop()
    # Callbacks tie the client to their owner in a circle; without it, its sockets close as soon as nobody has it.
    client.on_connect = client.on_disconnect = client.on_publish = client.on_subscribe = client.on_message = None


def why(problem: Exception | ReasonCode) -> str:
    """A failure in a few words."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({problem.verify_message})"
    if isinstance(problem, TimeoutError):
        return "it does not answer"
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror.lower()
    return str(problem).lower() or type(problem).__name__
