"""mqtt.js, in one Node.js process that takes commands as lines of JSON."""

from __future__ import annotations

import fcntl
import json
import subprocess
import threading
from base64 import b64decode, b64encode
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Final

from tests.interop.clients.client import Client, Options, Received, Where
from tests.kits.patience import PATIENCE_S

#: The version that the tests were written with; another one may behave differently.
VERSION: Final = "5.16.0"
#: How long that may take.
INSTALL_S: Final = 300
_SCRIPT: Final = Path(__file__).parent.parent / "mqttjs.mjs"
_SCHEMES: Final = {"tcp": "mqtt", "tls": "mqtts", "ws": "ws", "wss": "wss"}
#: Where mqtt.js's names are not the specification's in another spelling.
_RENAMED: Final = {"user_property": "userProperties"}


def install(npm: str, directory: Path) -> None:
    """Put mqtt.js into a directory, unless that version is there already; raises CalledProcessError.

    Tests may run in several processes: one installs, and the others wait until it has.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _install(npm, directory)


def _install(npm: str, directory: Path) -> None:
    package = directory / "node_modules" / "mqtt" / "package.json"
    if package.exists() and json.loads(package.read_text())["version"] == VERSION:
        return
    flags = ["--no-fund", "--no-audit", "--save-exact", "--ignore-scripts", "--loglevel", "error"]
    subprocess.run(
        [npm, "install", *flags, "--prefix", str(directory), f"mqtt@{VERSION}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=INSTALL_S,
    )


class MqttjsError(Exception):
    """mqtt.js refused or was refused; ``code`` is the reason code if there was one."""

    def __init__(self, text: str, code: int | None) -> None:
        super().__init__(text)
        self.code = code


class Node:
    """The process."""

    def __init__(self, node: str, directory: Path) -> None:
        command = [node, str(_SCRIPT), str(directory)]
        self._popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._numbers = count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self.clients: dict[str, MqttjsClient] = {}
        self._thread = threading.Thread(target=self._read, name="mqtt.js", daemon=True)
        self._thread.start()

    def do(self, what: str, **fields: Any) -> Any:
        """Send a command and wait for its answer."""
        number = next(self._numbers)
        answer: Future[Any] = Future()
        self._waiting[number] = answer
        assert self._popen.stdin is not None
        self._popen.stdin.write(json.dumps({"number": number, "do": what, **fields}) + "\n")
        return answer.result(PATIENCE_S)

    def _read(self) -> None:
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            said = json.loads(line)
            if "answers" not in said:
                self.clients[said["client"]].deliver(said)
            elif "error" in said:
                self._waiting.pop(said["answers"]).set_exception(MqttjsError(said["error"], said["code"]))
            else:
                self._waiting.pop(said["answers"]).set_result(said["result"])

    def close(self) -> None:
        """End the process by closing its input."""
        assert self._popen.stdin is not None and self._popen.stdout is not None
        self._popen.stdin.close()
        try:
            self._popen.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        self._thread.join(PATIENCE_S)
        self._popen.stdout.close()


class MqttjsClient(Client):
    """One client in the process."""

    name: ClassVar[str] = "mqtt.js"
    lists_user_properties: ClassVar[bool] = False

    def __init__(self, where: Where, options: Options, node: Node) -> None:
        super().__init__(where, options)
        self._node = node
        self._name = f"{options.client_id}/{len(node.clients)}"
        node.clients[self._name] = self
        self._is_open = False
        url = f"{_SCHEMES[where.scheme]}://{where.host}:{where.port}{'/mqtt' if where.is_websocket else ''}"
        answer = node.do("connect", client=self._name, url=url, options=self._options())
        self._is_open = True
        self.session_present = answer["sessionPresent"]

    def _options(self) -> dict[str, Any]:
        options, will = self.options, self.options.will
        made: dict[str, Any] = {
            "clientId": options.client_id,
            "protocolVersion": options.version,
            "clean": options.clean,
            "keepalive": options.keep_alive_s,
            "username": options.username,
            "password": options.password,
            "resubscribe": False,
        }
        if self.where.is_tls:
            made["ca"] = str(self.where.authority)
        if options.version == 5:
            wanted = {"sessionExpiryInterval": options.expiry_s, "topicAliasMaximum": options.topic_alias_maximum}
            made["properties"] = {name: value for name, value in wanted.items() if value}
        if will is not None:
            made["will"] = {
                "topic": will.topic,
                "payload": b64encode(will.payload).decode(),
                "qos": will.qos,
                "retain": will.retain,
            }
            if options.version == 5 and will.delay_s:
                made["will"]["properties"] = {"willDelayInterval": will.delay_s}
        return {name: value for name, value in made.items() if value is not None}

    def deliver(self, said: dict[str, Any]) -> None:
        """A message has arrived in the process."""
        self.inbox.put(
            Received(
                topic=said["topic"],
                payload=b64decode(said["payload"]),
                qos=said["qos"],
                retain=said["retain"],
                properties=_from_mqttjs(said["properties"]),
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
        options: dict[str, Any] = {"qos": qos}
        if self.options.version == 5:
            options |= {"nl": no_local, "rap": retain_as_published, "rh": retain_handling}
            if identifier is not None:
                options["properties"] = {"subscriptionIdentifier": identifier}
        code: int = self._node.do("subscribe", client=self._name, filter=filter_, options=options)
        return code

    def unsubscribe(self, filter_: str) -> None:
        self._node.do("unsubscribe", client=self._name, filter=filter_)

    def publish(
        self, topic: str, payload: bytes = b"", qos: int = 0, *, retain: bool = False, **properties: Any
    ) -> None:
        options: dict[str, Any] = {"qos": qos, "retain": retain}
        if properties:
            options["properties"] = _to_mqttjs(properties)
        self._node.do("publish", client=self._name, topic=topic, payload=b64encode(payload).decode(), options=options)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._node.do("end", client=self._name)

    def drop(self) -> None:
        self._is_open = False
        self._node.do("drop", client=self._name)


def _to_mqttjs(properties: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in properties.items():
        first, *rest = name.split("_")
        spelled = _RENAMED.get(name) or first + "".join(part.capitalize() for part in rest)
        if name == "user_property":
            value = dict(value)
        elif name == "payload_format_indicator":
            value = bool(value)
        elif isinstance(value, bytes):
            value = b64encode(value).decode()
        made[spelled] = value
    return made


def _from_mqttjs(properties: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in properties.items():
        if name == "userProperties":
            found["user_property"] = [
                (key, one) for key, ones in value.items() for one in (ones if isinstance(ones, list) else [ones])
            ]
        else:
            spelled = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
            if spelled == "subscription_identifier" and not isinstance(value, list):
                value = [value]
            elif isinstance(value, dict):
                value = b64decode(value["base64"])
            elif isinstance(value, bool):
                value = int(value)
            found[spelled] = value
    return found
