"""gmqtt, an asyncio client with a codec of its own."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import Any, ClassVar

import gmqtt
from gmqtt.mqtt.constants import MQTTv50, MQTTv311

from tests.interop.clients.client import Client, LastWill, Options, Received, Where
from tests.interop.clients.in_thread import LoopThread
from tests.kits.certificates import trusting
from tests.kits.patience import PATIENCE_S

#: Where gmqtt's names differ from the specification's.
_RENAMED = {"payload_format_indicator": "payload_format_id"}
_NAMED_BACK = {theirs: ours for ours, theirs in _RENAMED.items()}
#: Properties that can come more than once.
_LISTS = {"user_property", "subscription_identifier"}


class GmqttClient(Client):
    """gmqtt; it has no WebSocket."""

    name: ClassVar[str] = "gmqtt"
    schemes: ClassVar[tuple[str, ...]] = ("tcp", "tls")

    def __init__(self, where: Where, options: Options, thread: LoopThread) -> None:
        super().__init__(where, options)
        self._thread = thread
        self._answers: dict[int, asyncio.Future[list[int]]] = {}
        self._lost = asyncio.Event()
        self._client = thread.run(self._connect())

    async def _connect(self) -> Any:
        where, options = self.where, self.options
        properties = {
            "session_expiry_interval": options.expiry_s,
            "topic_alias_maximum": options.topic_alias_maximum,
        }
        client = gmqtt.Client(
            options.client_id,
            clean_session=options.clean,
            will_message=options.will and _message(options.will, options.version),
            **({name: value for name, value in properties.items() if value} if options.version == 5 else {}),
        )
        client.reconnect_retries = -2  # a taken over client must not come back; -1 means for ever, and 0 means once
        client.on_connect = self._on_connect
        client.on_message = self._on_message
        client.on_subscribe = lambda _client, mid, codes, _properties: self._settle(mid, codes)
        client.on_unsubscribe = lambda _client, mid, codes: self._settle(mid, codes)
        client.on_disconnect = lambda _client, _packet: self._lost.set()
        if options.username is not None:
            client.set_auth_credentials(options.username, options.password)
        await asyncio.wait_for(
            client.connect(
                where.host,
                where.port,
                ssl=trusting(where.authority) if where.is_tls else False,
                keepalive=options.keep_alive_s,
                version=MQTTv50 if options.version == 5 else MQTTv311,
            ),
            PATIENCE_S,
        )
        return client

    def _on_connect(self, _client: Any, flags: int, _code: int, _properties: dict[str, Any]) -> None:
        self.session_present = bool(flags & 1)

    def _on_message(self, _client: Any, topic: str, payload: bytes, qos: int, properties: dict[str, Any]) -> int:
        found = {
            _NAMED_BACK.get(name, name): value if name in _LISTS else value[0]
            for name, value in properties.items()
            if isinstance(value, list)
        }
        self.inbox.put(
            Received(
                topic=topic,
                payload=bytes(payload),
                qos=qos,
                retain=bool(properties["retain"]),
                properties=found,
            )
        )
        return 0

    def _settle(self, mid: int, codes: tuple[int, ...]) -> None:
        self._answers.pop(mid).set_result(list(codes))

    async def _ask(self, send: Any, *args: Any, **fields: Any) -> list[int]:
        """Send a packet and wait for the answer with its id; no answer can come before this returns to the loop."""
        answer: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        self._answers[send(*args, **fields)] = answer
        return await asyncio.wait_for(answer, PATIENCE_S)

    def subscribe(
        self,
        filter_: str,
        qos: int = 0,
        *,
        no_local: bool = False,
        retain_as_published: bool = False,
        retain_handling: int = 0,
        identifier: int | None = None,
    ) -> int:
        subscription = gmqtt.Subscription(
            filter_,
            qos=qos,
            no_local=no_local,
            retain_as_published=retain_as_published,
            retain_handling_options=retain_handling,
            subscription_identifier=identifier,
        )
        (code,) = self._thread.run(self._ask(self._client.subscribe, [subscription]))
        return code

    def unsubscribe(self, filter_: str) -> None:
        self._thread.run(self._ask(self._client.unsubscribe, filter_))

    def publish(
        self, topic: str, payload: bytes = b"", qos: int = 0, *, retain: bool = False, **properties: Any
    ) -> None:
        self._thread.run(self._publish(topic, payload, qos, retain, properties))

    async def _publish(self, topic: str, payload: bytes, qos: int, retain: bool, properties: dict[str, Any]) -> None:
        renamed = {_RENAMED.get(name, name): value for name, value in properties.items()}
        self._client.publish(topic, payload, qos=qos, retain=retain, **renamed)
        await asyncio.wait_for(self._client._persistent_storage.wait_empty(), PATIENCE_S)

    def close(self) -> None:
        with suppress(ssl.SSLError):  # asyncio minds when a packet was still on its way to us
            self._thread.run(self._client.disconnect())

    def drop(self) -> None:
        self._thread.run(self._lose())

    async def _lose(self) -> None:
        self._client._connection._transport.abort()
        await asyncio.wait_for(self._lost.wait(), PATIENCE_S)


def _message(will: LastWill, version: int) -> Any:
    properties = {"will_delay_interval": will.delay_s} if version == 5 and will.delay_s else {}
    return gmqtt.Message(will.topic, will.payload, will.qos, will.retain, **properties)
