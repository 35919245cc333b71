"""Questions to a running broker over its management socket: one JSON object per line, each way."""

from __future__ import annotations

import socket
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from tieline.cli.trouble import Trouble

#: A broker under load answers late, not never.
_ANSWER_S = 10.0


class Management:
    """An open management channel; one question at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_ANSWER_S)
        try:
            self._socket.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            self._socket.close()
            raise Trouble(f"no broker answers at {path}; is it running, with the same --data or --name?") from None
        except OSError as problem:
            self._socket.close()
            raise Trouble(f"cannot use {path}: {(problem.strerror or str(problem)).lower()}.") from None
        self._lines = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()
        self._socket.close()

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        """The broker's answer to one question."""
        try:
            self._socket.sendall(msgspec.json.encode({"do": do, **more}) + b"\n")
            line = self._lines.readline()
        except TimeoutError:
            raise Trouble(f"the broker at {self.path} did not answer within {_ANSWER_S:g} seconds.") from None
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            raise Trouble(f"the broker at {self.path} has stopped.")
        try:
            answer = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError:
            raise Trouble(f"the program at {self.path} does not speak the management protocol.") from None
        if "error" in answer:
            raise Trouble(f"the broker at {self.path} refused: {answer['error']}.")
        return answer
