"""paho-mqtt, with its network loop in a thread."""

from __future__ import annotations

import socket
from queue import Empty, Queue
from typing import Any, ClassVar, Final

from paho.mqtt.client import MQTT_CLEAN_START_FIRST_ONLY, CleanStartOption, MQTTMessage
from paho.mqtt.client import Client as Paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.interop.clients.client import Client, LastWill, Options, Received, Where
from tests.kits.certificates import trusting
from tests.kits.patience import PATIENCE_S

VERSIONS: Final = {4: MQTTProtocolVersion.MQTTv311, 5: MQTTProtocolVersion.MQTTv5}


def to_paho(packet: int, properties: dict[str, Any]) -> Properties:
    """Properties under paho's names."""
    made = Properties(packet)
    for name, value in properties.items():
        setattr(made, "".join(part.capitalize() for part in name.split("_")), value)
    return made


def from_paho(properties: Properties | None) -> dict[str, Any]:
    """Properties under our names."""
    found: dict[str, Any] = {}
    for name in properties.names if properties is not None else ():
        attribute = name.replace(" ", "")
        if hasattr(properties, attribute):
            found[name.replace(" ", "_").lower()] = getattr(properties, attribute)
    return found


def will_properties(will: LastWill, version: int) -> Properties | None:
    """The delay, which only MQTT 5 knows."""
    if version != 5 or not will.delay_s:
        return None
    return to_paho(PacketTypes.WILLMESSAGE, {"will_delay_interval": will.delay_s})


def connect_properties(options: Options) -> Properties | None:
    """What CONNECT says about the session; nothing in 3.1.1."""
    if options.version != 5:
        return None
    wanted = {"session_expiry_interval": options.expiry_s, "topic_alias_maximum": options.topic_alias_maximum}
    return to_paho(PacketTypes.CONNECT, {name: value for name, value in wanted.items() if value})


def clean_start(options: Options) -> CleanStartOption:
    """3.1.1 has another way to say it, and paho refuses this one."""
    return options.clean if options.version == 5 else MQTT_CLEAN_START_FIRST_ONLY


def raw_socket(client: Paho) -> socket.socket:
    """The socket under TLS or WebSocket."""
    sock: Any = client.socket()
    found = sock if isinstance(sock, socket.socket) else sock._socket
    assert isinstance(found, socket.socket)
    return found


class PahoClient(Client):
    """paho-mqtt 2, callback API 2."""

    name: ClassVar[str] = "paho"

    def __init__(self, where: Where, options: Options) -> None:
        super().__init__(where, options)
        #: Codes of CONNACK, SUBACK, UNSUBACK and DISCONNECT, in the order of arrival.
        self._answers: Queue[list[int]] = Queue()
        #: The last DISCONNECT's code; None while connected.
        self.ended: Queue[int] = Queue()
        self.connack: dict[str, Any] = {}
        self._client = Paho(
            CallbackAPIVersion.VERSION2,
            options.client_id,
            clean_session=options.clean if options.version == 4 else None,
            protocol=VERSIONS[options.version],
            transport="websockets" if where.is_websocket else "tcp",
            reconnect_on_failure=False,
        )
        if where.is_tls:
            self._client.tls_set_context(trusting(where.authority))
        if options.username is not None:
            self._client.username_pw_set(options.username, options.password)
        if (will := options.will) is not None:
            self._client.will_set(
                will.topic, will.payload, will.qos, will.retain, will_properties(will, options.version)
            )
        self._client.on_connect = self._on_connect
        self._client.on_message = self._on_message
        self._client.on_subscribe = lambda *args: self._answers.put([_number(code) for code in args[3]])
        self._client.on_unsubscribe = lambda *args: self._answers.put([])
        self._client.on_disconnect = lambda *args: self.ended.put(_number(args[3]))
        self._client.connect(
            where.host,
            where.port,
            options.keep_alive_s,
            properties=connect_properties(options),
            clean_start=clean_start(options),
        )
        # without this every other message waits 40 ms for an acknowledgement of TCP
        raw_socket(self._client).setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client.loop_start()
        (self.code,) = self._answer()

    def _on_connect(
        self, _client: Paho, _data: Any, flags: Any, code: ReasonCode, properties: Properties | None
    ) -> None:
        self.session_present = flags.session_present
        self.connack = from_paho(properties)
        self._answers.put([_number(code)])

    def _on_message(self, _client: Paho, _data: Any, message: MQTTMessage) -> None:
        properties = from_paho(message.properties) if self.options.version == 5 else {}
        self.inbox.put(
            Received(
                topic=message.topic,
                payload=bytes(message.payload),
                qos=message.qos,
                retain=message.retain,
                properties=properties,
            )
        )

    def _answer(self) -> list[int]:
        try:
            return self._answers.get(timeout=PATIENCE_S)
        except Empty:
            raise AssertionError(f"paho: no answer within {PATIENCE_S:g} s") from None

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
            result, _ = self._client.subscribe(filter_, qos)
        else:
            wanted = {} if identifier is None else {"subscription_identifier": identifier}
            result, _ = self._client.subscribe(
                filter_,
                options=SubscribeOptions(qos, no_local, retain_as_published, retain_handling),
                properties=to_paho(PacketTypes.SUBSCRIBE, wanted),
            )
        assert result == MQTTErrorCode.MQTT_ERR_SUCCESS, result
        (code,) = self._answer()
        return code

    def unsubscribe(self, filter_: str) -> None:
        result, _ = self._client.unsubscribe(filter_)
        assert result == MQTTErrorCode.MQTT_ERR_SUCCESS, result
        self._answer()

    def publish(
        self, topic: str, payload: bytes = b"", qos: int = 0, *, retain: bool = False, **properties: Any
    ) -> None:
        sent = to_paho(PacketTypes.PUBLISH, properties) if properties else None
        info = self._client.publish(topic, payload, qos, retain, sent)
        info.wait_for_publish(PATIENCE_S)
        assert info.is_published(), f"paho: QoS {qos} was not completed within {PATIENCE_S:g} s"

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def drop(self) -> None:
        # paho's thread sees the end and closes the socket itself
        raw_socket(self._client).shutdown(socket.SHUT_RDWR)
        self.ended.get(timeout=PATIENCE_S)
        self._client.loop_stop()


def _number(code: ReasonCode | int) -> int:
    return code if isinstance(code, int) else code.value
