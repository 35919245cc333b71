"""aiomqtt, which puts asyncio around paho."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any, ClassVar

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.interop.clients.client import Client, Options, Received, Where
from tests.interop.clients.in_thread import LoopThread
from tests.interop.clients.with_paho import (
    clean_start,
    connect_properties,
    from_paho,
    raw_socket,
    to_paho,
    will_properties,
)
from tests.kits.certificates import trusting
from tests.kits.patience import PATIENCE_S

_VERSIONS = {4: aiomqtt.ProtocolVersion.V311, 5: aiomqtt.ProtocolVersion.V5}


class AiomqttClient(Client):
    """aiomqtt 2, its messages read by a task."""

    name: ClassVar[str] = "aiomqtt"

    def __init__(self, where: Where, options: Options, thread: LoopThread) -> None:
        super().__init__(where, options)
        self._thread = thread
        self._client, self._reader = thread.run(self._connect())

    async def _connect(self) -> tuple[aiomqtt.Client, asyncio.Task[None]]:
        where, options, will = self.where, self.options, self.options.will
        client = aiomqtt.Client(
            where.host,
            where.port,
            identifier=options.client_id,
            protocol=_VERSIONS[options.version],
            username=options.username,
            password=options.password,
            clean_session=options.clean if options.version == 4 else None,
            clean_start=clean_start(options),
            keepalive=options.keep_alive_s,
            properties=connect_properties(options),
            transport="websockets" if where.is_websocket else "tcp",
            tls_context=trusting(where.authority) if where.is_tls else None,
            timeout=PATIENCE_S,
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
            will=None
            if will is None
            else aiomqtt.Will(will.topic, will.payload, will.qos, will.retain, will_properties(will, options.version)),
        )
        await client.__aenter__()
        return client, asyncio.create_task(self._read(client))

    async def _read(self, client: aiomqtt.Client) -> None:
        with suppress(aiomqtt.MqttError):
            async for message in client.messages:
                assert isinstance(message.payload, bytes)
                properties = from_paho(message.properties) if self.options.version == 5 else {}
                self.inbox.put(
                    Received(
                        topic=message.topic.value,
                        payload=message.payload,
                        qos=message.qos,
                        retain=message.retain,
                        properties=properties,
                    )
                )

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
        if self.options.version == 4:
            (code,) = self._thread.run(self._client.subscribe(filter_, qos))
        else:
            wanted = {} if identifier is None else {"subscription_identifier": identifier}
            (code,) = self._thread.run(
                self._client.subscribe(
                    filter_,
                    options=SubscribeOptions(qos, no_local, retain_as_published, retain_handling),
                    properties=to_paho(PacketTypes.SUBSCRIBE, wanted),
                )
            )
        return code if isinstance(code, int) else code.value

    def unsubscribe(self, filter_: str) -> None:
        self._thread.run(self._client.unsubscribe(filter_))

    def publish(
        self, topic: str, payload: bytes = b"", qos: int = 0, *, retain: bool = False, **properties: Any
    ) -> None:
        sent = to_paho(PacketTypes.PUBLISH, properties) if properties else None
        self._thread.run(self._client.publish(topic, payload, qos, retain, sent))

    def close(self) -> None:
        self._thread.run(self._leave())

    async def _leave(self) -> None:
        with suppress(aiomqtt.MqttError):
            await self._client.__aexit__(None, None, None)
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)

    def drop(self) -> None:
        self._thread.run(self._lose())

    async def _lose(self) -> None:
        raw_socket(self._client._client).shutdown(socket.SHUT_RDWR)
        await self._reader
        await self._leave()
