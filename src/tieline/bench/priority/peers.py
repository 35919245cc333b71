"""The two brokers as these experiments start them: with classes, with a queue bound, at more than one address."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from tieline.bench.load.failure import Failure
from tieline.bench.peers.mosquitto import Mosquitto
from tieline.bench.peers.peer import Place
from tieline.bench.peers.tieline import Tieline

_ANSWER_S = 10.0


class Ranked(Tieline):
    """Tieline with more configuration, also reachable at other addresses of its namespace."""

    def __init__(self, configuration: str = "", *, addresses: Sequence[str] = ()) -> None:
        self._configuration = configuration
        self._addresses = addresses
        self._socket: Path | None = None

    def command(self, place: Place) -> list[str]:
        """The default command; the additions stand at the end of its file."""
        command = super().command(place)
        listeners = [f'[[listener]]\nurl = "tcp://{address}:{place.port}"' for address in self._addresses]
        if place.certificate is not None:
            listeners += [
                f'[[listener]]\nurl = "tls://{address}:{place.tls_port}"\n'
                f'certificate = "{place.certificate.certificate}"\nkey = "{place.certificate.key}"'
                for address in self._addresses
            ]
        if self._addresses:
            # the namespace is ours: nobody else is in it
            listeners.append('[auth]\nanonymous = "everywhere"')
        with (place.directory / "tieline.toml").open("a") as config:
            config.write("\n".join([*listeners, self._configuration]) + "\n")
        self._socket = place.directory / "tieline.sock"
        return command

    def top(self) -> dict[str, Any]:
        """What the running broker says about itself on its management channel."""
        if self._socket is None:
            raise Failure("the broker has not been started")
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(_ANSWER_S)
            # its ports answer a moment before its socket is there
            deadline = monotonic() + _ANSWER_S
            while not self._socket.exists() and monotonic() < deadline:
                sleep(0.01)
            try:
                channel.connect(str(self._socket))
                channel.sendall(b'{"do": "top"}\n')
                with channel.makefile("rb") as lines:
                    answer: dict[str, Any] = json.loads(lines.readline())
            except (OSError, ValueError) as error:
                raise Failure(f"the management channel did not answer: {error}") from error
        return answer


class Elsewhere(Mosquitto):
    """mosquitto, also reachable at other addresses of its namespace."""

    def __init__(self, *, addresses: Sequence[str] = ()) -> None:
        self._addresses = addresses

    def command(self, place: Place) -> list[str]:
        """The default command; the additions stand at the end of its file."""
        command = super().command(place)
        with (place.directory / "mosquitto.conf").open("a") as config:
            config.writelines(f"listener {place.port} {address}\n" for address in self._addresses)
        return command
