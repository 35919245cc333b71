"""The planner that stands by: ``tieline plan watch`` beside the brokers, and what it has said."""

from __future__ import annotations

import threading
import time
from typing import Any, Final, NamedTuple  # Any: values of JSON

import msgspec

from tieline.cli.demo.brokers import CENTRE, Brokers
from tieline.cli.demo.children import Child, Children
from tieline.compiling import PLAIN
from tieline.extras import is_installed, remedy

#: How long each look counts, how long from one plan to the next, and how much of a link is left free: much,
#: since a dozen flows are uneven, and what waited before the plan has to go, too.
_LOOKS: Final = ("--every", "4", "--least", "60", "--headroom", "45")
#: Looks since the plan until it is compared: what waited before it has to go, too.
_COMPARED: Final = 3
#: A dozen flows over three links are planned in plain Python sooner than the search for thousands is compiled, which
#: takes most of a minute after an installation, and several beside others.
_ENVIRONMENT: Final = {PLAIN: "1"}


class Look(NamedTuple):
    """One line of the planner, and when it came."""

    came_at: float
    state: str
    verdict: str
    checker: str
    flows_moved: int


class Planner:
    """Asks one broker, and through it all of them, as soon as there is traffic."""

    def __init__(self, children: Children, brokers: Brokers) -> None:
        self._children = children
        self._brokers = brokers
        #: Its looks so far, in their order.
        self.looks: list[Look] = []

    @staticmethod
    def missing() -> str | None:
        """What keeps it from running here, as a sentence."""
        for library in ("scipy", "rustworkx", "highspy"):
            if not is_installed(library):
                return f"{library} is not installed: {remedy('plan')}"
        return None

    def watch(self) -> None:
        """Look again and again from now on."""
        child = self._start("planner", *_LOOKS, "--json")
        threading.Thread(target=self._listen, args=(child,), daemon=True).start()

    @property
    def applied(self) -> Look | None:
        """The look whose plan came into force first; None until there was one."""
        return next((look for look in self.looks if look.state == "applied"), None)

    @property
    def has_compared(self) -> bool:
        """Whether a whole look has counted what is so since the plan."""
        states = [look.state for look in self.looks]
        since = states[states.index("applied") + 1 :] if "applied" in states else []
        return sum(state != "failed" for state in since) >= _COMPARED

    def status(self) -> dict[str, Any]:
        """What all brokers say of their plans, and what the planner has left with the one that it asks."""
        with self._brokers.reach(CENTRE) as channel:
            return channel.ask("plan", all=True)

    def _start(self, name: str, *words: str) -> Child:
        config = str(self._brokers.config(CENTRE))
        return self._children.start(name, "plan", "watch", "--config", config, *words, environment=_ENVIRONMENT)

    def _listen(self, child: Child) -> None:
        assert child.process.stdout is not None
        for line in child.process.stdout:
            told = msgspec.json.decode(line)
            checker, moved = told.get("checker", ""), told.get("flows_moved", 0)
            self.looks.append(Look(time.monotonic(), told["state"], told["verdict"], checker, moved))
