"""What an operator looks at first: rates, clients, classes, what was dropped and who is slow."""

from __future__ import annotations

from dataclasses import asdict
from heapq import nlargest
from time import monotonic
from typing import TYPE_CHECKING, Any, Final  # Any: values of JSON

from msgspec import structs

from tieline.core.answers.why import standing
from tieline.core.figures.traffic import ClassReport, hottest, report
from tieline.net import heat_upload
from tieline.version import __version__

if TYPE_CHECKING:
    from tieline.core.client import Session
    from tieline.core.holdings import Owner
    from tieline.net.services import Running

#: How many sessions are listed.
SLOWEST: Final = 20
#: Whoever asks has rates since it asked last; so many of them are told apart.
_ASKERS: Final = 16
#: What takes so long is not done again for so many times as long, however many ask.
_STANDS: Final = 20.0


class TopReport:
    """The answer to ``top``."""

    def __init__(self, server: Running) -> None:
        self._server = server
        self._start = monotonic()
        #: By who asked, when that was and the counters then, for rates.
        self._then: dict[str, tuple[float, dict[str, int]]] = {}
        #: What was found with all sessions, and until when it is not looked for again.
        self._surveyed: dict[str, Any] = {}
        self._traffic: list[ClassReport] = []
        self._stands_until = 0.0

    def answer(self, asker: str) -> dict[str, Any]:
        """The figures now; rates are since the same one asked last."""
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
        then, before = self._then.pop(asker, (self._start, {}))
        if len(self._then) >= _ASKERS:
            del self._then[next(iter(self._then))]
        self._then[asker] = (now, counted)
        elapsed = max(now - then, 1e-3)
        rates = {
            f"{name}_per_s": (totals[name] - before.get(name, 0)) / elapsed
            for name in ("received", "sent", "bytes_in", "bytes_out", "dropped", "commits")
        }
        return {
            "name": self._server.settings.name,
            "version": __version__,
            "listeners": self._server.urls,
            "uptime_s": now - self._start,
            **self._server.page.verdict(now),
            "rates": rates,
            "totals": totals,
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
            "heat": heat_upload.shown(core, now, 0),
            **self._survey(now),
            "classes": [
                {
                    **asdict(traffic),
                    "received": (received := account.received_by_level[traffic.level]),
                    "received_per_s": (received - before.get(f"class {traffic.level}", 0)) / elapsed,
                    "dropped": account.drops_by_level[traffic.level].total(),
                }
                for traffic in self._traffic
            ],
        }

    def _survey(self, now: float) -> dict[str, Any]:
        """What takes a look at every session and at very many topics: the more it took, the longer it stands."""
        if now >= self._stands_until:
            core = self._server.core
            connected = sum(session.connection is not None for session in core.sessions.values())
            slowest = nlargest(SLOWEST, core.sessions.values(), _slowness)
            self._traffic = report(core.sessions.values(), core.priorities.classes, core.account, now)
            self._surveyed = {
                "clients": {"connected": connected, "sessions": len(core.sessions)},
                "hottest": hottest(core.routes),
                "slowest": [structs.asdict(standing(core, session, now)) for session in slowest],
            }
            self._stands_until = now + (monotonic() - now) * _STANDS
        return self._surveyed


def _used(known: tuple[str | None, Owner]) -> int:
    return known[1].used


def _slowness(session: Session) -> tuple[int, int]:
    spilled = 0 if session.spill is None else session.spill.bytes
    return (session.queue.bytes + spilled, len(session.inflight))
