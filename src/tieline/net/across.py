"""Questions to all joined brokers: asked for whoever runs this one, and answered to other brokers within their rights.

A question is that of the management channel, as JSON.  Peers without ``may`` are answered as the operator is.  A peer
that has rights hears how this broker is doing only if it may read ``$SYS/#``, as users of HTTP do; where a message
would go it hears for topics that it may read, and without that right it is told how many get it, and not who.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from time import monotonic
from typing import TYPE_CHECKING, Any, Final  # Any: values of JSON

import msgspec

from tieline.core.account import Event
from tieline.core.figures.demand import DemandError
from tieline.net import inquiry
from tieline.net.fitting import fitting
from tieline.net.plan_requests import PlanDoor
from tieline.overlay.questions import LONGEST, PATIENCE_S
from tieline.overlay.receivers.writing_off import InReach

if TYPE_CHECKING:
    from tieline.net.net_report import NetReport
    from tieline.net.peers import Peers
    from tieline.net.services import Running
    from tieline.overlay.joined import Joined
    from tieline.overlay.may import May

#: What a peer may hear that may read it: how this broker is doing.  No message of this topic crosses a link.
_SEE: Final = b"$SYS/broker"
#: Lists of an answer, which are cut down until it is short enough to travel.
_LISTS: Final = ("receivers", "drops", "slowest", "hottest", "owners", "brokers", "links", "attention")


class Across:
    """Asks other brokers, and answers them."""

    def __init__(self, server: Running, peers: Peers[Joined], net: NetReport) -> None:
        self._server = server
        self._joined = joined = peers.joined
        #: Plans that are installed here.
        self.plans = PlanDoor(peers)
        self._net = net
        joined.node.questions.answerer = self._answer

    # -- asking

    async def answer(self, request: dict[str, Any], now: float) -> dict[str, Any]:
        """Answer ``why``, ``drops`` or ``trace``, with what other brokers have to say; raises InquiryError."""
        found = inquiry.answer(self._server.core, inquiry.here(request), now)
        if request["do"] == "trace":
            there = [each["broker"] for each in found["receivers"] if each["broker"] and each["fate"] == "carried"]
            if not there:
                return found
            passed: dict[str, Any] = {name: request[name] for name in _PASSED if name in request}
            return await self.of_all(found, {"do": "trace", "level": found["level"], **passed}, there)
        if request["do"] == "why" and not found["is_known"]:
            asked = await self.of_all(found, inquiry.here(request))
            asked["others"] = {name: said for name, said in asked["others"].items() if said.get("is_known")}
            return asked
        if request["do"] == "drops" and request.get("all") is True:
            return await self.of_all(found, inquiry.here(request))
        return found

    async def of_one(self, question: dict[str, Any], name: str, *, within_s: float = PATIENCE_S) -> dict[str, Any]:
        """What one other broker says to a question, as it says it; raises InquiryError if it says nothing."""
        node = self._joined.node
        number = node.directory.find(name)
        if number is None or number not in node.membership.reachable:
            raise inquiry.InquiryError(f"no way leads to a broker called {name}")
        answers, _silent = await self._ask(msgspec.json.encode(question), [number], within_s)
        if name not in answers:
            raise inquiry.InquiryError(f"broker {name} did not answer within {within_s:g} s")
        return answers[name]

    async def of_all(
        self, found: dict[str, Any], question: dict[str, Any], names: Iterable[str] | None = None
    ) -> dict[str, Any]:
        """An answer of this broker, and beside it those of others: of some by name, or of all that can be reached."""
        node = self._joined.node
        numbers = [
            number
            for number, name in node.directory.names.items()
            if (number in node.membership.reachable if names is None else name in names)
        ]
        answers, silent = await self._ask(msgspec.json.encode(question), numbers)
        return {**found, "asked": node.name, "others": answers, "silent": silent}

    async def forget(self, request: dict[str, Any]) -> dict[str, Any]:
        """Have all brokers in reach take another one to be gone for good.

        Raises InquiryError, and then nobody has: it is in reach of one of them, or not all have answered.
        """
        name = request.get("broker")
        if not isinstance(name, str) or not name:
            raise inquiry.InquiryError('"forget" needs the name of a "broker"')
        question = {"do": "forget", "broker": name}
        looked = await self.of_all(self._forget(name, is_dry=True), {**question, "dry": True})
        for broker, said in looked["others"].items():
            if "error" in said:
                raise inquiry.InquiryError(f"broker {broker} says: {said['error']}")
        if looked["silent"]:
            raise inquiry.InquiryError(f"nothing was forgotten: {', '.join(looked['silent'])} did not answer")
        if not any(said.get("is_known") for said in (looked, *looked["others"].values())):
            raise inquiry.InquiryError(f"no broker in reach knows one called {name}")
        if request.get("dry") is True:
            return looked
        return await self.of_all(self._forget(name, is_dry=False), question)

    def _forget(self, name: str, *, is_dry: bool) -> dict[str, Any]:
        writing_off, interests = self._joined.writing_off, self._joined.node.interests
        try:
            number = writing_off.number_of(name)
        except InReach as problem:
            raise inquiry.InquiryError(str(problem)) from None
        if number is None:
            return {"broker": name, "is_known": False, "wanted": 0, "owed": 0}
        owed, known = writing_off.owed(number), interests.known.get(number)
        wanted = 0 if known is None else len(known.entries)
        if not is_dry:
            writing_off.begin(number)
            text = f"it is gone for good: {wanted:,} of its wants, {owed:,} parcels that were owed to it"
            self._server.core.account.tell(Event("peer_forgotten", f"broker {name}", "", text))
        return {"broker": name, "is_known": True, "wanted": wanted, "owed": owed}

    async def _ask(
        self, question: bytes, numbers: list[int], within_s: float = PATIENCE_S
    ) -> tuple[dict[str, dict[str, Any]], list[str]]:
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[tuple[dict[int, bytes], frozenset[int]]] = loop.create_future()

        def then(answers: dict[int, bytes], silent: frozenset[int]) -> None:
            # within a turn of the broker, which need not end soon
            loop.call_soon_threadsafe(lambda: None if heard.done() else heard.set_result((answers, silent)))

        names = self._joined.names
        if not self._joined.node.questions.ask(question, numbers, then, monotonic(), patience_s=within_s):
            return {}, sorted(names[number] for number in numbers)
        self._server.poke()
        answers, silent = await heard
        found: dict[str, dict[str, Any]] = {}
        for number, answer in answers.items():
            try:
                found[names[number]] = msgspec.json.decode(answer, type=dict[str, Any])
            except (msgspec.DecodeError, RecursionError):
                found[names[number]] = {"error": "its answer cannot be read"}
        return dict(sorted(found.items())), sorted(names[number] for number in silent)

    # -- answering

    def _answer(self, asker: int, may: May | None, question: bytes) -> bytes:
        """What this broker says to another one."""
        try:
            request = msgspec.json.decode(question, type=dict[str, Any])
            found = self._found(request, self._joined.names[asker], may)
        except (inquiry.InquiryError, DemandError, msgspec.DecodeError, RecursionError) as problem:
            found = {"error": str(problem)}
        return _fitting(found)

    def _found(self, request: dict[str, Any], asker: str, may: May | None) -> dict[str, Any]:
        what, now = request.get("do"), monotonic()
        sees = may is None or may.read.has(_SEE)
        if what == "trace":
            topic = request.get("topic")
            if may is not None and not (isinstance(topic, str) and may.read.has(topic.encode())):
                return {"error": "it may not read this topic"}
            found = inquiry.answer_arrived(self._server.core, request, asker, now)
            return found if sees else _counted(found)
        if not sees:
            return {"error": "it may not read $SYS/#"}
        if what == "top":
            return self._server.top.answer(asker)
        if what == "brief":
            return self._server.page.brief(now)
        if what == "net":
            return self._net.brief() if request.get("brief") is True else self._net.answer(asker, now)
        if what in {"why", "drops"}:
            return inquiry.answer(self._server.core, request, now)
        if what in {"plan", "demand", "forget"}:
            if may is not None:
                return {"error": "it has rights, and does not say by which links messages go, or who is gone"}
            if what == "forget":
                return self._forget(str(request.get("broker")), is_dry=request.get("dry") is True)
            if what == "plan":
                said = self.plans.answer(request, now)
                said.pop("planner", None)  # it is told where the planner asks, and need not cross links
                return said
            return inquiry.answer_demand(self._server.core, request, now, by=f"broker {asker}")
        return {"error": "this broker does not answer that"}


#: Of a question about a message, what a broker has to know that would get it from another one.
_PASSED: Final = ("topic", "payload", "qos", "retain", "properties", "client")


def _counted(found: dict[str, Any]) -> dict[str, Any]:
    """How many would get a message, without their names."""
    fates = Counter(each["fate"] for each in found["receivers"])
    return {
        "topic": found["topic"],
        "is_refused": found["is_refused"],
        "fates": dict(fates),
        "unlisted": found["unlisted"],
    }


def _fitting(found: dict[str, Any]) -> bytes:
    """An answer as bytes, with shorter lists if it is too long to travel, and then it says so."""
    data = fitting(found, _LISTS, LONGEST)
    return msgspec.json.encode({"error": f"its answer has more than {LONGEST:,} bytes"}) if data is None else data
