"""Questions to a running broker: over its management socket, one JSON object per line each way, or over HTTP."""

from __future__ import annotations

import socket
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, Self  # Any: values of JSON
from urllib.parse import urlsplit

import msgspec
import typer

from tieline.cli.trouble import MISUSED, Trouble
from tieline.conf.error import ConfError
from tieline.conf.load import load
from tieline.conf.paths import distrust, management_socket
from tieline.conf.schema import Settings
from tieline.net.running import running

if TYPE_CHECKING:
    from http.client import HTTPConnection

#: A broker under load answers late, not never.
_ANSWER_S = 10.0


class Management:
    """An open management channel; one question at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists() and (problem := distrust(path.parent)):
            # whoever made the directory made the socket, and could answer as the broker does
            raise Trouble(f"{problem}; what answers there is not believed.")
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
            raise Trouble(f"the broker at {self.path} refused: {shown(answer['error'])}.")
        return answer


_HTTP_ANSWER_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBroker:
    """Options that say which running broker is asked; where only one is running, none of them is needed."""

    data: Annotated[Path | None, typer.Option(metavar="DIR", help="The broker's --data directory.")] = None
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The broker's --name.")] = None
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="The file that it was started with.")] = None
    socket: Annotated[Path | None, typer.Option(metavar="PATH", help="The management socket itself.")] = None

    def reach(self) -> Management:
        """An open channel to it."""
        return Management(self._socket())

    def _socket(self) -> Path:
        if self.socket is not None:
            return self.socket
        if self.data is not None:
            return management_socket(str(self.data), self.name or Settings().name)
        if self.config is not None:
            return _configured(self.config, self.name)
        found = [note for note in running() if self.name is None or note.name == self.name]
        if len(found) == 1:
            return Path(found[0].socket)
        if found:
            which = "\n".join(f"  {shown(note.name)}: {shown(note.words)}" for note in found)
            raise Trouble(f"{len(found)} brokers are running; say which one is meant:\n{which}", code=MISUSED)
        return management_socket(None, self.name or Settings().name)


def _configured(file: Path, name: str | None) -> Path:
    """Where a broker that was started with a file has its socket."""
    try:
        settings = load(file)
    except ConfError as problem:
        raise Trouble(str(problem), code=MISUSED) from None
    return management_socket(settings.data, name or settings.name)


class Visitor(NamedTuple):
    """Who asks, and whose certificates are trusted."""

    user: str | None = None
    password: str | None = None
    #: PEM file with the authorities to trust; None for the system's own.
    cafile: Path | None = None


def ask_over_http(url: str, method: str, path: str, body: bytes, visitor: Visitor) -> dict[str, Any]:
    """The broker's answer to one request."""
    # slow to import, and not needed by those who use the socket
    from http.client import OK, HTTPException

    asking = _connection(url, visitor)
    headers = {}
    if visitor.user is not None:
        token = b64encode(f"{visitor.user}:{visitor.password or ''}".encode()).decode()
        headers["Authorization"] = f"Basic {token}"
    try:
        asking.request(method, path, body, headers)
        answer = asking.getresponse()
        text = answer.read().decode(errors="replace").strip()
    except (OSError, HTTPException) as problem:
        raise Trouble(f"{url} cannot be reached: {problem}.") from None
    finally:
        asking.close()
    if answer.status != OK:
        raise Trouble(f"the broker at {url} refused ({answer.status}): {text.rstrip('.')}.")
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        raise Trouble(f"the program at {url} is no broker: it answered {text[:60]!r}.") from None


def _connection(url: str, visitor: Visitor) -> HTTPConnection:
    import ssl
    from http.client import HTTPConnection, HTTPSConnection

    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme not in ("http", "https") or host is None:
        raise Trouble(f'"{url}" is no address of a broker: write http://HOST:PORT or https://HOST:PORT.', code=MISUSED)
    if parts.scheme == "http":
        return HTTPConnection(host, port, timeout=_HTTP_ANSWER_S)
    try:
        context = ssl.create_default_context(cafile=visitor.cafile)
    except OSError as problem:
        raise Trouble(f"cannot use {visitor.cafile}: {(problem.strerror or str(problem)).lower()}.") from None
    return HTTPSConnection(host, port, timeout=_HTTP_ANSWER_S, context=context)


def password_in(file: Path | None) -> str | None:
    """The password that a file holds."""
    if file is None:
        return None
    try:
        return file.read_text().rstrip("\r\n")
    except OSError as problem:
        raise Trouble(f"cannot read {file}: {(problem.strerror or str(problem)).lower()}.") from None


def shown(found: Any) -> Any:
    """An answer for a terminal: its texts move no cursor and colour nothing, though clients choose names and topics.

    Programs get answers as they are; whoever prints one calls this first.
    """
    if isinstance(found, str):
        return found if found.isprintable() else "".join(map(_letter, found))
    if isinstance(found, list):
        return [shown(each) for each in found]
    if isinstance(found, dict):
        return {shown(key): shown(value) for key, value in found.items()}
    return found


def _letter(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()
