"""The management channel: a unix socket that answers one JSON object per line.

A request is ``{"do": "top"}``; the answer is one object, or ``{"error": "a sentence"}``.  The socket is readable and
writable by its owner alone.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any  # Any: values of JSON

import msgspec

from tieline.conf.paths import management_socket, prepare_directory
from tieline.core.figures.demand import DemandError
from tieline.core.ports import ALONE
from tieline.core.routing.heat_table import HeatError
from tieline.net import heat_upload, inquiry, listing
from tieline.net.inquiry import KNOWN as INQUIRIES
from tieline.net.log import log
from tieline.net.reload import ReloadError, reload
from tieline.net.running import Note, leave_note

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.net.services import Running

#: Longest request line, and how many sessions ``top`` lists.
MAX_REQUEST = 65_536
SLOWEST = 20
#: Connections at once: each takes a descriptor of those that clients leave.
MOST_CONNECTIONS = 32
#: From accept until asyncio calls what serves a connection; nobody else knows of it before.
_TURNS_OF_ACCEPT = 4


class _Connection:
    """What one connection has begun: a table of heat that comes in pieces, a list that goes in pages."""

    def __init__(self) -> None:
        self.upload = heat_upload.HeatUpload()
        self.list = listing.Listing()


_Answer = Callable[[dict[str, Any], _Connection], Awaitable[dict[str, Any]]]


class Management:
    """Serves questions about one running broker."""

    def __init__(self, server: Running) -> None:
        self._server = server
        self.path: Path = management_socket(server.settings.data, server.settings.name)
        self._listening: asyncio.Server | None = None
        #: What tells the command line that this broker runs.
        self._note: Path | None = None
        #: In the order in which they came.
        self._speaking: dict[asyncio.Task[None], None] = {}
        self._answers: dict[str, _Answer] = {
            "demand": self._demand,
            "drain": self._drain,
            "forget": self._forget,
            "heat": self._heat,
            "kick": self._kick,
            "net": self._figures,
            "plan": self._plan,
            "reload": self._reload,
            "top": self._figures,
            **dict.fromkeys(INQUIRIES, self._inquiry),
            **dict.fromkeys(listing.KNOWN, self._list),
        }

    async def start(self) -> None:
        """Listen; a socket left by a dead broker is replaced, one of a living broker is an error."""
        prepare_directory(self.path)
        if self.path.exists():
            if not self.path.is_socket():
                raise OSError(f"{self.path} is in the way: it is not a socket, and not ours to remove")
            if await _answers(self.path):
                raise OSError(f"another broker serves {self.path}: give this one another --name or --data")
            self.path.unlink()
        old = os.umask(0o177)
        try:
            self._listening = await asyncio.start_unix_server(self._serve, self.path, limit=MAX_REQUEST)
        finally:
            os.umask(old)
        self._tell()

    def _tell(self) -> None:
        """Let the verbs of the command line find this broker without being told where it is."""
        settings = self._server.settings
        data = None if settings.data is None else str(Path(settings.data).absolute())
        try:
            self._note = leave_note(Note(name=settings.name, socket=str(self.path.absolute()), data=data))
        except OSError as problem:
            log.info("verbs of the command line need --data or --socket to find this broker: %s", problem)

    async def close(self) -> None:
        """Stop answering and remove the socket."""
        if self._listening is None:
            return
        # Whoever has just been accepted would be closed by nobody if the server were closed before they can speak.
        loop = asyncio.get_running_loop()
        for listening in self._listening.sockets:
            loop.remove_reader(listening.fileno())
        await _let_pass(_TURNS_OF_ACCEPT)
        self._listening.close()
        speaking = [*self._speaking]
        for task in speaking:
            task.cancel()
        await asyncio.gather(*speaking, return_exceptions=True)
        await _let_pass(1)  # a connection is closed in the turn after the one that says so
        with suppress(FileNotFoundError):
            self.path.unlink()
        if self._note is not None:
            with suppress(OSError):
                self._note.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._speaking[task] = None
        if len(self._speaking) > MOST_CONNECTIONS:
            # whoever comes last is who asks; all of them are the same user
            next(iter(self._speaking)).cancel()
        try:
            connection = _Connection()
            while line := await reader.readline():
                writer.write(json.dumps(await self._answer(line, connection)).encode() + b"\n")
                await writer.drain()
                # neither of these waits for anybody while lines are there and the other side reads
                await asyncio.sleep(0)
        except (ConnectionError, ValueError, asyncio.CancelledError):
            pass  # gone, or a line without end: there is nobody to tell
        finally:
            self._speaking.pop(task, None)
            writer.close()

    async def _answer(self, line: bytes, connection: _Connection) -> dict[str, Any]:
        try:
            # stricter than the json of Python: half of a character would be found out only where it is used
            request = msgspec.json.decode(line)
            what = request["do"]
            answer = self._answers.get(what)
        except (msgspec.DecodeError, ValueError, KeyError, TypeError, RecursionError):
            return {"error": 'a request is one line of JSON such as {"do": "top"}'}
        if answer is None:
            known = ", ".join(sorted(self._answers))
            return {"error": f'this broker does not know how to do "{what}"; it knows: {known}'}
        try:
            return await answer(request, connection)
        except (inquiry.InquiryError, DemandError, HeatError, ReloadError) as error:
            return {"error": str(error).removesuffix(".")}
        finally:
            # an answer may have closed connections, or given the broker something to say
            self._server.poke()

    async def _reload(self, request: dict[str, Any], _connection: _Connection) -> dict[str, Any]:
        return await reload(self._server, partial=request.get("partial") is True, dry=request.get("dry") is True)

    async def _heat(self, request: dict[str, Any], connection: _Connection) -> dict[str, Any]:
        return await heat_upload.answer(self._server.core, connection.upload, request)

    async def _demand(self, request: dict[str, Any], _connection: _Connection) -> dict[str, Any]:
        there = await self._there(request)
        return inquiry.answer_demand(self._server.core, request, monotonic()) if there is None else there

    async def _plan(self, request: dict[str, Any], _connection: _Connection) -> dict[str, Any]:
        across = self._server.across
        if across is None:
            return {"error": "this broker is not joined with others"}
        if request.get("all") is True:
            question = {name: value for name, value in request.items() if name != "all"}
            return await across.of_all(across.plans.answer(question, monotonic()), question)
        there = await self._there(request)
        return across.plans.answer(request, monotonic()) if there is None else there

    async def _forget(self, request: dict[str, Any], _connection: _Connection) -> dict[str, Any]:
        across = self._server.across
        return {"error": "this broker is not joined with others"} if across is None else await across.forget(request)

    async def _there(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """What another broker answers that a request names; None if it names none, or this one."""
        name, within_s = request.pop("at", None), request.pop("within_s", None)
        if name is None or name == self._server.settings.name:
            return None
        if self._server.across is None:
            return {"error": "this broker is not joined with others"}
        # a broker without others starts without what is said between them
        from tieline.overlay.questions import LONGEST_PATIENCE_S, PATIENCE_S

        within_s = PATIENCE_S if within_s is None else within_s
        if not isinstance(within_s, int | float) or not 0 < within_s <= LONGEST_PATIENCE_S:
            return {"error": f'"within_s" is a number of seconds up to {LONGEST_PATIENCE_S:g}'}
        return await self._server.across.of_one(request, str(name), within_s=within_s)

    async def _drain(self, request: dict[str, Any], _connection: _Connection) -> dict[str, Any]:
        return answer_drain(self._server.core, request, monotonic())

    async def _inquiry(self, request: dict[str, Any], _connection: _Connection) -> dict[str, Any]:
        if (across := self._server.across) is not None:
            return await across.answer(request, monotonic())
        return inquiry.answer(self._server.core, inquiry.here(request), monotonic())

    async def _list(self, request: dict[str, Any], connection: _Connection) -> dict[str, Any]:
        return await connection.list.answer(self._server.core, request, monotonic())

    async def _kick(self, request: dict[str, Any], _connection: _Connection) -> dict[str, Any]:
        return listing.kick(self._server.core, request, monotonic())

    async def _figures(self, request: dict[str, Any], _connection: _Connection) -> dict[str, Any]:
        """``top`` or ``net``, of this broker, of another one or of all that can be reached."""
        if (there := await self._there(request)) is not None:
            return there
        across = self._server.across
        if request["do"] == "top":
            found = self._server.top.answer("")
        elif self._server.ring is not None:
            found = self._server.ring.answer()
        elif self._server.net is None:
            return {"error": "this broker is not joined with others"}
        elif request.get("brief") is True:
            found = self._server.net.brief()
        else:
            found = self._server.net.answer("", monotonic())
        if request.get("all") is not True or across is None:
            return found
        return await across.of_all(found, inquiry.here(request))


def answer_drain(core: Broker, request: dict[str, Any], now: float) -> dict[str, Any]:
    """Empty a joined broker: begin (``begin``), stop (``stop``) or only look; what is left either way."""
    neighbours = core.routes.neighbours
    if neighbours is ALONE:
        return {"error": "this broker is not joined with others that could take its sessions"}
    from tieline.overlay.joined import Joined

    assert isinstance(neighbours, Joined)
    draining = neighbours.moves.draining
    if request.get("begin") is True:
        draining.begin(now)
    elif request.get("stop") is True:
        draining.stop()
    progress = draining.progress()
    return {**progress._asdict(), "is_done": progress.is_done}


async def _let_pass(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


async def _answers(path: Path) -> bool:
    """Whether somebody serves a socket file."""
    try:
        _, writer = await asyncio.wait_for(asyncio.open_unix_connection(path), 1.0)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
