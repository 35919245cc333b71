"""What every policy owes, whatever its order: call :func:`check_policy` with how to make one.

Random arrivals, pops, returns and evictions in virtual time run beside a reference that is a plain list and knows
nothing of levels but what the rules say.  A twin gets the same entries under other flow keys and must do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Final, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tieline.sched.levels import DEFAULTS, LEVELS, URGENT, Patience, Rules
from tieline.sched.policy import Policy, WindowState
from tieline.sched.waiting import Waiting

Make = Callable[[Rules], Policy[int]]


def check_policy(make: Make) -> None:
    """All that a policy must keep; the promises against starvation only where it makes them."""
    _check_scripts(make)
    policy = make(Rules())
    if policy.has_floor:
        _check_timeouts(make)
    if any(policy.share(level) for level in range(LEVELS)):
        _check_shares(make)
        _check_full(make)


# -- random scripts


class Arrive(NamedTuple):
    """A message comes."""

    flow: int
    level: int
    size: int
    messages: int
    heat: int
    depth: int
    assured: bool


class Leave(NamedTuple):
    """A message is asked for; ``back`` of its messages could not be sent."""

    window: WindowState
    back: int


class Evict(NamedTuple):
    """There is no room."""


class Pass(NamedTuple):
    """Time goes by."""

    seconds: float


Step = Arrive | Leave | Evict | Pass

#: Flows 0 to 2 are QoS 0, the next two QoS 1 or 2; in the last both occur, as after a subscription has changed.
_FLOWS: Final = 6
_ASSURED: Final = (False, False, False, True, True, None)

_ARRIVALS: Final = st.lists(
    st.builds(
        Arrive,
        flow=st.integers(0, _FLOWS - 1),
        level=st.integers(0, URGENT),
        size=st.integers(1, 200),
        messages=st.integers(1, 3),
        heat=st.integers(0, 2),
        depth=st.integers(1, 2),
        assured=st.booleans(),
    ),
    max_size=3,
)
_OTHERS: Final = st.one_of(
    st.builds(Pass, seconds=st.sampled_from((0.1, 1.0, 7.0))),
    st.builds(Evict),
    st.builds(Leave, window=st.sampled_from(WindowState), back=st.sampled_from((0, 0, 0, 1, 3))),
)
#: More comes than goes, so that a queue builds up.
_ROUNDS: Final = st.lists(st.tuples(_ARRIVALS, _OTHERS), min_size=25, max_size=60)


@st.composite
def rules(draw: st.DrawFn) -> Rules:
    """Rules of any kind, with little patience and short reach so that scripts of few steps meet their limits."""
    low, normal, important, urgent = (
        replace(
            traffic,
            weight=draw(st.floats(0.1, 10.0)),
            deadline_s=draw(st.floats(0.01, 10.0)),
            timeout_s=draw(st.floats(0.1, 10.0)),
            full=draw(st.sampled_from(("oldest", "newest", "coalesce"))),
        )
        for traffic in DEFAULTS
    )
    return Rules(
        classes=(low, normal, important, urgent),
        patience=Patience(period_s=draw(st.floats(0.1, 5.0)), frequency=draw(st.integers(1, 3))),
        floor=draw(st.sampled_from((0.0, 0.1, 0.5))),
        inheritance=draw(st.sampled_from((0, 1, 2, 256))),
    )


def _check_scripts(make: Make) -> None:
    @examples(40)
    @given(rules(), _ROUNDS)
    def follow(rules: Rules, rounds: list[tuple[list[Arrive], Step]]) -> None:
        script = _Script(make, rules)
        for arrivals, other in rounds:
            for step in (*arrivals, other):
                script.do(step)
        script.drain()

    follow()


class _Script:
    """A policy, its twin, and the reference, taken through the same steps."""

    def __init__(self, make: Make, rules: Rules) -> None:
        self.rules = rules
        self.policy = make(rules)
        self.twin = make(rules)
        #: Everything that should be waiting, in the order of arrival.
        self.waiting: list[Waiting[int]] = []
        self.arrived = 0
        self.now = 100.0

    def do(self, step: Step) -> None:
        match step:
            case Arrive():
                self.arrive(step)
            case Leave(window, back):
                self.leave(window, back)
            case Evict():
                self.evict()
            case Pass(seconds):
                self.now += seconds
        self.agree()

    def drain(self) -> None:
        """Everything that is left comes out once."""
        while self.waiting:
            self.leave(WindowState.OPEN, 0)
            self.agree()
        assert self.policy.pop(self.now) is None
        assert self.policy.evict() is None

    # -- steps

    def arrive(self, step: Arrive) -> None:
        assured = _ASSURED[step.flow]
        self.arrived += 1

        def entry(flow: Hashable) -> Waiting[int]:
            return Waiting(
                self.arrived,
                order=self.arrived,
                level=step.level,
                since=self.now,
                size=step.size * step.messages,
                messages=step.messages,
                flow=flow,
                heat=step.heat,
                depth=step.depth,
                is_assured=step.assured if assured is None else assured,
            )

        waiting = entry(step.flow)
        self.waiting.append(waiting)
        self.policy.push(waiting, self.now)
        self.twin.push(entry(("flow", str(step.flow))), self.now)

    def leave(self, window: WindowState, back: int) -> None:
        allowed = self.allowed(window)
        popped, other = self.policy.pop(self.now, window), self.twin.pop(self.now, window)
        if popped is None or other is None:
            assert popped is other, "deterministic"
            assert not allowed, f"work conserving: {allowed[0]} could go"
            return
        assert popped.entry == other.entry, "deterministic"
        assert popped in self.waiting, "neither lost nor duplicated"
        assert popped in allowed, "in the order of its flow, and as the window allows"
        self.waiting.remove(popped)
        self.agree()
        assert self.policy.most == self.twin.most >= 1, "of what is popped something may go"
        back = max(back, popped.messages - self.policy.most)
        if back:
            # all of it, or the rest of a larger one
            kept = min(back, popped.messages)
            for one, policy in ((popped, self.policy), (other, self.twin)):
                one.size = one.size // one.messages * kept
                one.messages = kept
                policy.put_back(one)
            self.waiting.append(popped)
            self.waiting.sort(key=lambda waiting: waiting.order)

    def evict(self) -> None:
        expected = self.victim()
        evicted, other = self.policy.evict(), self.twin.evict()
        assert evicted is expected, "the victim is chosen by the rule of the lowest level that is not spared"
        assert (evicted and evicted.entry) == (other and other.entry), "deterministic"
        if evicted is not None:
            self.waiting.remove(evicted)

    # -- the reference

    def flows(self) -> dict[Hashable, list[Waiting[int]]]:
        """What waits, by flow; those whose head came first are first."""
        flows: dict[Hashable, list[Waiting[int]]] = {}
        for waiting in self.waiting:
            flows.setdefault(waiting.flow, []).append(waiting)
        return flows

    def level(self, flow: list[Waiting[int]]) -> int:
        """Where a flow is served: at the level of its head, or of what may take the head along."""
        return max(waiting.level for waiting in flow[: self.rules.inheritance + 1])

    def allowed(self, window: WindowState) -> list[Waiting[int]]:
        return [
            flow[0]
            for flow in self.flows().values()
            if not flow[0].is_assured
            or window is WindowState.OPEN
            or (window is WindowState.URGENT_ONLY and self.level(flow) == URGENT)
        ]

    def victim(self) -> Waiting[int] | None:
        droppable = [waiting for waiting in self.waiting if not waiting.is_assured]
        if not droppable:
            return None
        levels = sorted({waiting.level for waiting in droppable})
        level = next((level for level in levels if level < URGENT and not self.spares(level)), levels[0])
        candidates = [waiting for waiting in droppable if waiting.level == level]
        rule = self.rules.classes[level].full
        if rule == "coalesce":
            flows = self.flows()
            superseded = [waiting for waiting in candidates if flows[waiting.flow][-1] is not waiting]
            candidates = superseded or candidates
        return candidates[-1 if rule == "newest" else 0]

    def spares(self, level: int) -> bool:
        """Only those who hold little may be spared, and only by a policy that promises them something."""
        share = self.policy.share(level)
        if not self.policy.spares(level):
            return False
        held = [waiting.size for waiting in self.waiting if waiting.level == level]
        assert share, "a level without a share is not spared"
        assert len(held) <= 1 or sum(held) <= share * sum(waiting.size for waiting in self.waiting) * (1 + 1e-9)
        return True

    def agree(self) -> None:
        oldest: list[Waiting[int] | None] = [None] * LEVELS
        for flow in reversed(self.flows().values()):
            oldest[self.level(flow)] = flow[0]
        assert [self.policy.oldest(level) for level in range(LEVELS)] == oldest
        levels = {waiting.level for waiting in self.waiting}
        assert [self.policy.waits(level) for level in range(LEVELS)] == [level in levels for level in range(LEVELS)]
        assert len(self.policy) == sum(waiting.messages for waiting in self.waiting)


# -- no starvation


class Link:
    """One subscriber behind a thin link: virtual time goes on while a message is sent."""

    def __init__(self, policy: Policy[int], rate: float = 100_000.0) -> None:
        self.policy = policy
        #: Bytes per second.
        self.rate = rate
        self.now = 0.0
        self.arrived = 0
        #: Bytes of each level.
        self.sent = [0] * LEVELS

    def push(
        self,
        level: int = 1,
        *,
        size: int = 100,
        flow: Hashable = None,
        heat: int = 0,
        depth: int = 1,
        is_assured: bool = False,
        messages: int = 1,
        taxon: int | None = None,
    ) -> Waiting[int]:
        """A message comes, in a flow of its own unless one is named; its entry is its number."""
        self.arrived += 1
        waiting = Waiting(
            self.arrived,
            order=self.arrived,
            level=level,
            since=self.now,
            size=size,
            messages=messages,
            flow=("alone", self.arrived) if flow is None else flow,
            heat=heat,
            depth=depth,
            is_assured=is_assured,
            taxon=taxon,
        )
        self.policy.push(waiting, self.now)
        return waiting

    def send(self, window: WindowState = WindowState.OPEN) -> Waiting[int]:
        """The next message goes; there must be one.  Of several in one entry those that may, as a queue does it."""
        waiting = self.policy.pop(self.now, window)
        assert waiting is not None
        if waiting.messages > self.policy.most:
            rest = Waiting(
                waiting.entry,
                order=waiting.order,
                level=waiting.level,
                since=waiting.since,
                size=waiting.size,
                messages=waiting.messages,
                flow=waiting.flow,
                heat=waiting.heat,
                depth=waiting.depth,
                is_assured=waiting.is_assured,
                taxon=waiting.taxon,
            )
            waiting.size = waiting.size // waiting.messages * self.policy.most
            waiting.messages = self.policy.most
            rest.size -= waiting.size
            rest.messages -= waiting.messages
            self.policy.put_back(rest)
        self.now += waiting.size / self.rate
        self.sent[waiting.level] += waiting.size
        return waiting

    def send_all(self) -> list[int]:
        """Everything goes, in this order."""
        entries = []
        while len(self.policy):
            entries.append(self.send().entry)
        return entries


def _check_timeouts(make: Make) -> None:
    """Under endless traffic above, a message gets through in time, one for every slot of its period."""

    @examples(15)
    @given(st.integers(1, URGENT), st.floats(0.2, 2.0), st.integers(1, 3), st.integers(50, 1000))
    def serve(above: int, period_s: float, frequency: int, size: int) -> None:
        low, normal, important, urgent = (replace(traffic, deadline_s=traffic.timeout_s / 2) for traffic in DEFAULTS)
        rules = Rules(
            classes=(low, normal, important, urgent),
            patience=Patience(period_s=period_s, frequency=frequency),
            floor=0.0,
        )
        link = Link(make(rules), rate=100_000)
        for _ in range(3):
            link.push(above, size=1000, flow="flood", heat=100)
        due = [0.0] * above
        while link.now < 15.0:
            for level in range(above):
                if link.now >= due[level]:
                    # as many as there are slots, and not more
                    due[level] += rules.patience.period_s * 1.1 / frequency
                    link.push(level, size=size)
            sent = link.send()
            if sent.level < above:
                assert link.now - sent.since <= rules.classes[sent.level].timeout_s
            else:
                link.push(above, size=1000, flow="flood", heat=100)
            for level in range(above):
                oldest = link.policy.oldest(level)
                assert oldest is None or link.now - oldest.since <= rules.classes[level].timeout_s

    serve()


def _check_shares(make: Make) -> None:
    """Under endless traffic at every level, each gets at least the share of bytes that it was promised."""

    @examples(15)
    @given(rules(), st.lists(st.integers(20, 1500), min_size=LEVELS, max_size=LEVELS))
    def serve(rules: Rules, sizes: list[int]) -> None:
        policy = make(rules)
        link = Link(policy, rate=100_000)
        for level in range(LEVELS):
            for number in range(3):
                link.push(level, size=sizes[level], flow=(level, number))
        for _ in range(1500):
            sent = link.send()
            link.push(sent.level, size=sent.size, flow=sent.flow)
        for level in range(URGENT):
            # at the end credit for a few messages may be left
            owed = policy.share(level) * sum(link.sent) - link.sent[level]
            assert owed <= 2 * sum(sizes)

    serve()


def _check_full(make: Make) -> None:
    """A level that asks for no more than half of its share loses nothing to a flood above it."""

    @examples(15)
    @given(st.integers(1, 2), st.integers(20, 500), st.integers(100, 1000), st.integers(10, 100))
    def serve(above: int, low_size: int, high_size: int, room: int) -> None:
        policy = make(Rules())
        link = Link(policy, rate=16_000)
        pause_s = low_size / (policy.share(0) * link.rate / 2)
        due = 0.0
        for _ in range(1500):
            if link.now >= due:
                due += pause_s
                link.push(0, size=low_size, flow="low")
            # twice what the link takes
            link.push(above, size=high_size, flow="flood")
            link.push(above, size=high_size, flow="flood")
            while len(policy) > room:
                victim = policy.evict()
                assert victim is not None and victim.level == above
            sent = link.send()
            if sent.level == 0:
                assert link.now - sent.since <= DEFAULTS[0].timeout_s

    serve()
