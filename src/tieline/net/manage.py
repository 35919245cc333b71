"""The management channel: a unix socket that answers one JSON object per line.

A request is ``{"do": "top"}``; the answer is one object, or ``{"error": "a sentence"}``.  The socket is readable and
writable by its owner alone.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from dataclasses import asdict
from heapq import nlargest
from time import monotonic
from typing import TYPE_CHECKING, Any  # Any: values of JSON

import msgspec

from tieline.conf.paths import management_socket, prepare_directory
from tieline.core.answers.why import standing
from tieline.core.figures.demand import DemandError
from tieline.core.figures.traffic import hottest, report
from tieline.core.routing.heat_table import HeatError
from tieline.net import heat_upload, inquiry
from tieline.net.inquiry import KNOWN as INQUIRIES
from tieline.net.reload import ReloadError, reload
from tieline.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from tieline.core.client import Session
    from tieline.core.holdings import Owner
    from tieline.net.services import Running

#: Longest request line, and how many sessions ``top`` lists.
MAX_REQUEST = 65_536
SLOWEST = 20
#: Connections at once: each takes a descriptor of those that clients leave.
MOST_CONNECTIONS = 32


class Management:
    """Serves questions about one running broker."""

    def __init__(self, server: Running) -> None:
        self._server = server
        self.path: Path = management_socket(server.settings.data, server.settings.name)
        self._listening: asyncio.Server | None = None
        #: In the order in which they came.
        self._speaking: dict[asyncio.Task[None], None] = {}
        self._start = monotonic()
        #: Counters at the last ``top`` and when that was, for rates.
        self._then: tuple[float, dict[str, int]] = (self._start, {})

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

    async def close(self) -> None:
        """Stop answering and remove the socket."""
        if self._listening is None:
            return
        self._listening.close()
        speaking = [*self._speaking]
        for task in speaking:
            task.cancel()
        await asyncio.gather(*speaking, return_exceptions=True)
        with suppress(FileNotFoundError):
            self.path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._speaking[task] = None
        if len(self._speaking) > MOST_CONNECTIONS:
            # whoever comes last is who asks; all of them are the same user
            next(iter(self._speaking)).cancel()
        try:
            upload = heat_upload.HeatUpload()
            while line := await reader.readline():
                writer.write(json.dumps(await self._answer(line, upload)).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError, asyncio.CancelledError):
            pass  # gone, or a line without end: there is nobody to tell
        finally:
            self._speaking.pop(task, None)
            writer.close()

    async def _answer(self, line: bytes, upload: heat_upload.HeatUpload) -> dict[str, Any]:
        try:
            # stricter than the json of Python: half of a character would be found out only where it is used
            request = msgspec.json.decode(line)
            what = request["do"]
        except (msgspec.DecodeError, ValueError, KeyError, TypeError, RecursionError):
            return {"error": 'a request is one line of JSON such as {"do": "top"}'}
        if what == "top":
            return self.top()
        if what == "net":
            return (
                {"error": "this broker is not joined with others"}
                if (net := self._server.net) is None
                else net.answer("", monotonic())
            )
        if what == "reload":
            try:
                return await reload(
                    self._server, partial=request.get("partial") is True, dry=request.get("dry") is True
                )
            except ReloadError as error:
                return {"error": str(error).removesuffix(".")}
        if what == "heat":
            try:
                return await heat_upload.answer(self._server.core, upload, request)
            except HeatError as error:
                return {"error": str(error)}
            finally:
                self._server.poke()
        if what == "demand":
            try:
                return inquiry.answer_demand(self._server.core, request, monotonic())
            except DemandError as error:
                return {"error": str(error)}
            finally:
                self._server.poke()
        if what in INQUIRIES:
            try:
                return inquiry.answer(self._server.core, request, monotonic())
            except inquiry.InquiryError as error:
                return {"error": str(error)}
        known = ", ".join(sorted((*INQUIRIES, "demand", "heat", "net", "reload", "top")))
        return {"error": f'this broker does not know how to do "{what}"; it knows: {known}'}

    def top(self) -> dict[str, Any]:
        """What an operator looks at first."""
        core = self._server.core
        account = core.account
        now = monotonic()
        totals = {
            "received": account.publishes_in,
            "sent": account.publishes_out,
            "bytes_in": account.bytes_in,
            "bytes_out": account.bytes_out,
            "packets_in": account.packets_in,
            "connections": account.connections,
            "dropped": sum(account.drops.values()),
            "commits": core.journal.commits,
        }
        counted = totals | {f"class {level}": count for level, count in enumerate(account.received_by_level)}
        then, before = self._then
        self._then = (now, counted)
        elapsed = max(now - then, 1e-3)
        rates = {
            f"{name}_per_s": (totals[name] - before.get(name, 0)) / elapsed
            for name in ("received", "sent", "bytes_in", "bytes_out", "dropped", "commits")
        }
        connected = sum(session.connection is not None for session in core.sessions.values())
        return {
            "name": self._server.settings.name,
            "version": __version__,
            "listeners": self._server.urls,
            "uptime_s": now - self._start,
            "rates": rates,
            "totals": totals,
            "clients": {"connected": connected, "sessions": len(core.sessions)},
            "subscriptions": core.routes.count,
            "content": {
                "subscriptions": core.routes.conditional,
                "sifted": account.examinations,
                "unreadable": account.unreadable,
                "references": core.references.kept,
                "forgotten": core.references.forgotten_alone + core.references.forgotten_together,
            },
            "logins": self._server.logins,
            "store": {"is_durable": not core.journal.is_volatile, "waiting": core.journal.waiting},
            "retained": len(core.retained),
            "queued_bytes": core.queued_bytes,
            "spilled": {"messages": core.spills.messages, "bytes": core.spills.bytes},
            "memory": core.holdings.by_kind(),
            "owners": [
                {"user": user, "bytes": owner.used, "sessions": owner.sessions}
                for user, owner in nlargest(SLOWEST, core.holdings.owners(), key=_used)
            ],
            "loop_lag_ms": self._server.vitals.lag_s * 1e3,
            "longest_turn_ms": self._server.take_longest_turn() * 1e3,
            "gc_pause_ms": self._server.vitals.longest_gc_s * 1e3,
            "drops": {why.value: count for why, count in account.drops.items()},
            "closed": dict(account.closed),
            "ended": dict(account.sessions_ended),
            "classes": [
                {
                    **asdict(traffic),
                    "received_per_s": (traffic.received - before.get(f"class {traffic.level}", 0)) / elapsed,
                    "dropped": account.drops_by_level[traffic.level].total(),
                }
                for traffic in report(core.sessions.values(), core.priorities.classes, account, now)
            ],
            "heat": heat_upload.shown(core, now, 0),
            "hottest": hottest(core.routes),
            "slowest": [
                asdict(standing(core, session, now)) for session in nlargest(SLOWEST, core.sessions.values(), _slowness)
            ],
        }


def _used(known: tuple[str | None, Owner]) -> int:
    return known[1].used


def _slowness(session: Session) -> tuple[int, int]:
    spilled = 0 if session.spill is None else session.spill.bytes
    return (session.queue.bytes + spilled, len(session.inflight))


async def _answers(path: Path) -> bool:
    """Whether somebody serves a socket file."""
    try:
        _, writer = await asyncio.wait_for(asyncio.open_unix_connection(path), 1.0)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
