"""What ``tieline pub`` and ``tieline sub`` share: where the broker is, how to introduce oneself, MQTT 5 properties."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NoReturn
from urllib.parse import unquote, urlsplit

from paho.mqtt import MQTTException
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tieline.cli.flags import Flag, flag, whole
from tieline.cli.trouble import MISUSED, Trouble

_PACKETS: dict[str, int] = {
    "connect": PacketTypes.CONNECT,
    "publish": PacketTypes.PUBLISH,
    "will": PacketTypes.WILLMESSAGE,
    "subscribe": PacketTypes.SUBSCRIBE,
    "unsubscribe": PacketTypes.UNSUBSCRIBE,
    "disconnect": PacketTypes.DISCONNECT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One property for one kind of packet."""

    command: str
    name: str
    value: str | tuple[str, str]


def words_taken(rest: Sequence[str]) -> int:
    """Three words after ``-D``, four for a user property, which is a pair."""
    return 4 if len(rest) > 1 and rest[1] == "user-property" else 3


def read_property(command: str, name: str, *value: str) -> Property:
    """Make a property of the words after ``-D``; ValueError says what is wrong."""
    if command not in _PACKETS:
        raise ValueError(f"the packet is one of {', '.join(_PACKETS)}")
    found = Property(command=command, name=name, value=(value[0], value[1]) if len(value) == 2 else value[0])
    build_properties([found], command)
    return found


def build_properties(properties: Iterable[Property], command: str) -> Properties | None:
    """The properties that belong to one kind of packet; None when there are none."""
    built = Properties(_PACKETS[command])
    for each in properties:
        if each.command == command:
            _set(built, each)
    return None if built.isEmpty() else built


def _set(built: Properties, each: Property) -> None:
    names = {name.lower().replace(" ", "-"): identifier for name, identifier in built.names.items()}
    if each.name not in names:
        raise ValueError(f'there is no property "{each.name}"')
    kind = built.types[built.properties[names[each.name]][0]]
    value: object = each.value
    if (isinstance(each.value, str) and "Integer" in kind) or kind == "Byte":
        if not str(each.value).isdigit():
            raise ValueError(f"{each.name} takes a whole number")
        value = int(str(each.value))
        if value >= {"Byte": 1 << 8, "Two Byte Integer": 1 << 16, "Variable Byte Integer": 1 << 28}.get(kind, 1 << 32):
            raise ValueError(f"{each.name} is too large")
    elif kind == "Binary Data":
        value = str(each.value).encode()
    try:
        setattr(built, each.name.title().replace("-", ""), value)
    except MQTTException as problem:
        raise ValueError(str(problem)) from None


#: Protocol versions by the spellings that mosquitto accepts.
_VERSIONS: dict[str, Literal[4, 5]] = {"311": 4, "mqttv311": 4, "5": 5, "mqttv5": 5}


@dataclass(slots=True, kw_only=True)
class ClientOptions:
    """Everything about the connection; the flags below fill it in."""

    wants_help: bool = False
    host: str = "localhost"
    port: int | None = None
    unix: str | None = None
    is_websocket: bool = False
    bind: str = ""
    url: str | None = None
    topics: list[str] = field(default_factory=list)
    client_id: str | None = None
    id_prefix: str | None = None
    username: str | None = None
    password: str | None = None
    version: Literal[4, 5] = 4
    keep_alive_s: int = 60
    is_clean: bool = True
    session_expiry_s: int | None = None
    qos: int = 0
    will_topic: str | None = None
    will_payload: str = ""
    will_qos: int = 0
    will_retain: bool = False
    cafile: str | None = None
    capath: str | None = None
    certificate: str | None = None
    key: str | None = None
    is_insecure: bool = False
    uses_system_authorities: bool = False
    properties: list[Property] = field(default_factory=list)
    is_verbose_log: bool = False
    is_quiet: bool = False

    @property
    def is_tls(self) -> bool:
        return self.uses_system_authorities or bool(self.cafile or self.capath or self.certificate)

    @property
    def target(self) -> str:
        """The broker as messages name it."""
        return self.unix or f"{self.host}:{self.port}"


def _version(text: str) -> Literal[4, 5]:
    if text in {"31", "mqttv31"}:
        raise ValueError("MQTT 3.1 is not supported; use 311 or 5")
    if text not in _VERSIONS:
        raise ValueError("expected 311 or 5")
    return _VERSIONS[text]


_port = whole(1, 65_535)


def _expiry(text: str) -> int:
    return 0xFFFF_FFFF if text in {"∞", "-1"} else whole(0, 0xFFFF_FFFF)(text)


CONNECTION: tuple[Flag, ...] = (
    flag("-h --host", "host", "Broker to connect to; localhost unless told.", "HOST"),
    flag("-p --port", "port", "Port; unless told 1883, 8883 with TLS, 8080 or 8443 with --ws.", "PORT", convert=_port),
    flag("-L --url", "url", "mqtt(s)://[user[:password]@]host[:port]/topic, in place of -h, -p, -u, -P and -t.", "URL"),
    flag("-A", "bind", "Local address to connect from.", "ADDRESS"),
    flag("--unix", "unix", "Connect to a unix socket.", "PATH"),
    flag("--ws", "is_websocket", "Speak MQTT over WebSocket."),
    flag("-V --protocol-version", "version", "311 (unless told) or 5.", "VERSION", convert=_version),
    flag("-i --id", "client_id", "Client identifier; the broker chooses unless told.", "ID"),
    flag("-I --id-prefix", "id_prefix", "Client identifier made of this and the process number.", "PREFIX"),
    flag("-u --username", "username", "User name.", "NAME"),
    flag("-P --pw", "password", "Password.", "PASSWORD"),
    flag("-k --keepalive", "keep_alive_s", "Keep-alive; 60 unless told.", "SECONDS", convert=whole(0, 65_535)),
    flag("-c --disable-clean-session", "is_clean", "Keep the session after the connection ends.", value=False),
    flag(
        "-x --session-expiry-interval",
        "session_expiry_s",
        "MQTT 5: how long the session outlives the connection; ∞ or -1 for ever.",
        "SECONDS",
        convert=_expiry,
    ),
    flag(
        "-D --property",
        "properties",
        "MQTT 5 property for connect, publish, will, subscribe, unsubscribe or disconnect, as in "
        "-D publish user-property NAME VALUE. Repeatable.",
        "PACKET PROPERTY VALUE",
        convert=read_property,
        takes=words_taken,
        is_repeated=True,
    ),
)

WILL: tuple[Flag, ...] = (
    flag("--will-topic", "will_topic", "Topic of the will.", "TOPIC"),
    flag("--will-payload", "will_payload", "Payload of the will; empty unless told.", "TEXT"),
    flag("--will-qos", "will_qos", "QoS of the will.", "QOS", convert=whole(0, 2)),
    flag("--will-retain", "will_retain", "Retain the will."),
)

TLS: tuple[Flag, ...] = (
    flag("--cafile", "cafile", "PEM file with the authorities to trust; turns TLS on.", "FILE"),
    flag("--capath", "capath", "Directory with authorities to trust; turns TLS on.", "DIR"),
    flag("--tls-use-os-certs", "uses_system_authorities", "Trust the system's authorities; turns TLS on."),
    flag("--cert", "certificate", "PEM file with the client's certificate.", "FILE"),
    flag("--key", "key", "PEM file with the client's key.", "FILE"),
    flag("--insecure", "is_insecure", "Accept a certificate for another host name; for tests only."),
)

OUTPUT: tuple[Flag, ...] = (
    flag("-d --debug", "is_verbose_log", "Print the packets sent and received."),
    flag("--quiet", "is_quiet", "Print no errors."),
    flag("--help", "wants_help", "Print this page."),
)

QOS = flag("-q --qos", "qos", "Quality of service 0, 1 or 2; 0 unless told.", "QOS", convert=whole(0, 2))
TOPIC = flag("-t --topic", "topics", "Topic. Required.", "TOPIC", is_repeated=True)


def settle(options: ClientOptions) -> None:
    """Apply the URL and the default port, and refuse combinations that cannot mean anything."""
    if options.url is not None:
        _apply_url(options, options.url)
    if options.port is None:
        plain, encrypted = (8080, 8443) if options.is_websocket else (1883, 8883)
        options.port = encrypted if options.is_tls else plain
    if options.version != 5:
        if options.properties:
            _refuse("-D needs MQTT 5: add -V 5.")
        if options.session_expiry_s is not None:
            _refuse("-x needs MQTT 5: add -V 5.")
    if options.client_id is not None and options.id_prefix is not None:
        _refuse("-i and -I exclude each other.")
    if not options.is_clean and not (options.client_id or options.id_prefix):
        _refuse("-c keeps a session, which needs a client identifier: add -i.")
    if options.unix is not None and (options.is_websocket or options.is_tls):
        _refuse("--unix is a plain connection: leave TLS and --ws out.")
    if options.is_insecure and not options.is_tls:
        _refuse("--insecure goes with --cafile, --capath or --tls-use-os-certs.")
    if (options.certificate is None) != (options.key is None):
        _refuse("--cert and --key belong together.")
    if options.will_topic is None and (options.will_payload or options.will_qos or options.will_retain):
        _refuse("a will needs --will-topic.")


def _apply_url(options: ClientOptions, text: str) -> None:
    url = urlsplit(text)
    if url.scheme not in {"mqtt", "mqtts", "ws", "wss"} or not url.hostname:
        _refuse(f"-L {text}: expected mqtt://host/topic or mqtts://host/topic.")
    try:
        port = url.port
    except ValueError:
        _refuse(f"-L {text}: the port is not a number from 0 to 65535.")
    options.host = url.hostname
    options.port = port or options.port
    options.is_websocket = options.is_websocket or url.scheme in {"ws", "wss"}
    if url.scheme in {"mqtts", "wss"} and not options.is_tls:
        options.uses_system_authorities = True
    if url.username:
        options.username = unquote(url.username)
    if url.password:
        options.password = unquote(url.password)
    if url.path.strip("/"):
        options.topics.append(unquote(url.path[1:]))


def _refuse(sentence: str) -> NoReturn:
    raise Trouble(sentence, code=MISUSED)
