"""What is known of a broker and its network when a verdict is spoken: plain values, and nothing that changes."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

State = Literal["ok", "warn", "bad"]
View = Literal["overview", "messages", "clients", "network", "grid", "plan"]


class ClassSeen(Struct, frozen=True, kw_only=True):
    """One level: how long its messages wait, how long they may, and what was lost."""

    level: int
    name: str
    p99_s: float | None = None
    oldest_s: float = 0.0
    limit_s: float = 1.0
    waiting: int = 0
    congested: int = 0


class ClientSeen(Struct, frozen=True, kw_only=True):
    """A session that is behind, or whose client is not read for a while."""

    client: str
    #: The broker that has it.
    at: str = ""
    #: A key of :data:`tieline.core.answers.why.MEANING`.
    why: str = "busy"
    waits_for: str = ""
    waiting: int = 0
    waiting_bytes: int = 0
    oldest_s: float = 0.0
    #: The levels in which it is congested, the most urgent first.
    behind: tuple[int, ...] = ()
    dropped: int = 0


class BrokerSeen(Struct, frozen=True, kw_only=True):
    """A broker of the network, with what it has said of itself lately."""

    name: str
    is_here: bool = False
    is_reachable: bool = True
    #: How long ago it was heard; None if it has said nothing, perhaps since nobody has asked it.
    age_s: float | None = 0.0
    #: It was asked, and does not answer.
    is_silent: bool = False
    per_s: float | None = None
    clients: int | None = None
    lag_s: float | None = None
    #: How it judges itself.
    state: State = "ok"


class LinkSeen(Struct, frozen=True, kw_only=True):
    """A link between two brokers; numbers are None where nobody has told them."""

    ends: tuple[str, str]
    is_up: bool = True
    #: Since when it is up or down.
    since_s: float | None = None
    why: str = ""
    #: In the busier direction; its capacity is that of each direction.
    bits_per_s: float | None = None
    capacity: float | None = None
    waiting: int | None = None

    @property
    def name(self) -> str:
        """Both ends, as people call a link."""
        return f"{self.ends[0]} – {self.ends[1]}"

    @property
    def used(self) -> float | None:
        """The part of its capacity that is used; None where one of both is not known."""
        return None if self.bits_per_s is None or not self.capacity else self.bits_per_s / self.capacity


class PlanFigures(Struct, frozen=True, kw_only=True):
    """How good a plan is, by the checker, and what was measured before and since it is in force."""

    is_applied: bool
    requests: int
    unmet: int
    #: The share of its objective that another plan could save at most; None where no bound is known.
    gap: float | None
    #: The bytes that waited for links; None where nothing has been measured.
    waited: float | None = None
    waits: float | None = None


class PlanSeen(Struct, frozen=True, kw_only=True):
    """By which plan messages travel: none at all is epoch 0."""

    epoch: int = 0
    name: str = ""
    topics: int = 0
    #: What a planner that stands by did at its last look (a state of its reports), what it said, and how long ago.
    planner: str = ""
    planner_said: str = ""
    planner_age_s: float | None = None
    #: Messages that went by the plan, and those that did not although it is in force, since the start.
    planned: int = 0
    astray: int = 0
    #: The plan of which the planner has figures: the one in force, or one that is proposed.
    figures: PlanFigures | None = None


class Seen(Struct, frozen=True, kw_only=True):
    """One broker at one moment, and what it knows of the others."""

    name: str = ""
    uptime_s: float = 0.0
    #: The most urgent first.
    classes: tuple[ClassSeen, ...] = ()
    #: Those that are behind, the worst first, and those that are not read.
    slow: tuple[ClientSeen, ...] = ()
    held: tuple[ClientSeen, ...] = ()
    sessions: int = 0
    connected: int = 0
    away: int = 0
    waiting: int = 0
    held_count: int = 0
    congested: int = 0
    waiting_bytes: int = 0
    waiting_limit: int | None = None
    dropped_hour: int = 0
    dropped_urgent_hour: int = 0
    lag_s: float = 0.0
    #: Why the store takes nothing; empty while it does.
    store_trouble: str = ""
    read_per_s: float = 0.0
    unreadable_per_s: float = 0.0
    #: Logins of the last minute that were refused unheard.
    refused_logins: int = 0
    policy: str = "feedback"
    floor: float = 0.0
    conditions: int = 0
    #: Of the network, where there is one.
    brokers: tuple[BrokerSeen, ...] = ()
    links: tuple[LinkSeen, ...] = ()
    strategy: str = ""
    #: Of what other brokers sent here, the part that nobody wanted.
    useless: float | None = None
    plan: PlanSeen | None = None
    #: The filter of readings with voltage and frequency; empty where no event type has both.
    grid: str = ""


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that needs attention, and the command that tells more."""

    state: State
    title: str
    text: str
    command: str
    view: View
    #: What it is about: a client, a link, a broker.
    subject: str = ""
    #: What the command's button says.
    verb: str = "Why"
    #: Of findings of one state, the heaviest comes first.
    weight: float = 0.0
