"""One connection of ``tieline pub`` or ``tieline sub``: paho underneath, sentences instead of return codes."""

from __future__ import annotations

import os
import ssl
import sys
import threading
from typing import Any  # Any: paho's callbacks have no types

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tieline.cli.options import ClientOptions, build_properties
from tieline.cli.trouble import Trouble
from tieline.net.address import load_certificate

#: How long a broker may take to answer CONNECT before we say that it does not answer.
_CONNACK_S = 15.0


class Session:
    """A client and its connection.

    ``ended`` is set when there is nothing more to wait for; ``failure`` is the sentence that says why, if it failed.
    """

    def __init__(self, options: ClientOptions) -> None:
        self.options = options
        self.failure: str | None = None
        self.ended = threading.Event()
        self._answered = threading.Event()
        self._is_leaving = False
        self.client = _client(options)
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = self._on_disconnect
        if options.is_verbose_log:
            self.client.on_log = lambda _client, _userdata, _level, text: print(text, file=sys.stderr)

    def open(self) -> None:
        """Connect and wait for the broker's answer."""
        options = self.options
        v5 = options.version == 5
        try:
            self.client.connect(
                options.unix or options.host,
                options.port or 0,
                options.keep_alive_s,
                bind_address=options.bind,
                clean_start=options.is_clean if v5 else paho.MQTT_CLEAN_START_FIRST_ONLY,
                properties=_connect_properties(options) if v5 else None,
            )
        except ssl.SSLCertVerificationError as problem:
            raise Trouble(f"{options.target} is not trusted: {problem.verify_message}.") from None
        except (OSError, ValueError) as problem:
            raise Trouble(f"cannot connect to {options.target}: {_reason(problem)}.") from None
        self.client.loop_start()
        if not self._answered.wait(_CONNACK_S):
            raise Trouble(f"{options.target} accepts connections but does not answer MQTT.")
        self.check()

    def close(self) -> None:
        """Leave politely; harmless when the connection is already gone."""
        self._is_leaving = True
        v5 = self.options.version == 5
        self.client.disconnect(properties=build_properties(self.options.properties, "disconnect") if v5 else None)
        self.client.loop_stop()

    def check(self) -> None:
        """Raise what went wrong, if something did."""
        if self.failure is not None:
            raise Trouble(self.failure)

    def fail(self, sentence: str) -> None:
        """Remember the first failure and wake whoever waits."""
        self.failure = self.failure or sentence
        self.ended.set()
        self._answered.set()

    def _on_connect(self, _client: Any, _userdata: Any, _flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self.fail(f"{self.options.target} refused the connection: {explained(reason, properties)}.")
        self._answered.set()

    def _on_disconnect(self, _client: Any, _userdata: Any, _flags: Any, reason: Any, properties: Any) -> None:
        if not self._is_leaving:
            is_silent = str(reason) in {"Unspecified error", "Normal disconnection"}
            said = "" if is_silent else f": {explained(reason, properties)}"
            self.fail(f"the connection to {self.options.target} was lost{said}.")


def explained(reason: Any, properties: Any) -> str:
    """A reason code in words, and what an MQTT 5 broker says beside it."""
    why = str(getattr(properties, "ReasonString", "")).rstrip(".")
    return f"{str(reason).lower()}: {why}" if why else str(reason).lower()


def _client(options: ClientOptions) -> paho.Client:
    v5 = options.version == 5
    name = options.client_id
    if options.id_prefix is not None:
        name = f"{options.id_prefix}{os.getpid()}"
    client = paho.Client(
        CallbackAPIVersion.VERSION2,
        client_id=name or "",
        clean_session=None if v5 else options.is_clean,
        protocol=MQTTProtocolVersion.MQTTv5 if v5 else MQTTProtocolVersion.MQTTv311,
        transport="unix" if options.unix else "websockets" if options.is_websocket else "tcp",
        reconnect_on_failure=False,
    )
    if options.username is not None or options.password is not None:
        client.username_pw_set(options.username, options.password)
    if options.will_topic is not None:
        will = build_properties(options.properties, "will") if v5 else None
        client.will_set(
            options.will_topic, options.will_payload, options.will_qos, retain=options.will_retain, properties=will
        )
    if options.is_tls:
        client.tls_set_context(_tls(options))
    return client


def _tls(options: ClientOptions) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.cafile, capath=options.capath)
        if options.is_insecure:
            context.check_hostname = False
        if options.certificate is not None:
            load_certificate(context, options.certificate, options.key)
    except (OSError, ValueError) as problem:
        names = ", ".join(name for name in (options.cafile, options.capath, options.certificate, options.key) if name)
        raise Trouble(f"cannot use {names}: {_reason(problem)}.") from None
    return context


def _connect_properties(options: ClientOptions) -> Properties | None:
    built = build_properties(options.properties, "connect")
    expiry = options.session_expiry_s
    if expiry is None and not options.is_clean:
        # -c alone asks that the session be kept; MQTT 5 would otherwise end it with the connection.
        expiry = 0xFFFF_FFFF
    if expiry is not None:
        built = built or Properties(PacketTypes.CONNECT)
        built.SessionExpiryInterval = expiry
    return built


def _reason(problem: Exception) -> str:
    text = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    return text[:1].lower() + text[1:].rstrip(".")
