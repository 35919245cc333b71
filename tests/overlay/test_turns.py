"""Whatever a peer says, others have their turn: a share of a turn is little, measured in calls and not in seconds."""

from __future__ import annotations

from itertools import islice
from typing import Final

import pytest

from tests.kits.calls import count_calls
from tests.robust.attack.kinds.peers import SPEECHES, Speech, comparisons, handed_over, late_first, packed_pings
from tests.robust.attack.peer import Liar
from tieline.conf.schema import Settings
from tieline.core.broker import Broker
from tieline.core.handover import SessionContents, Subscribed
from tieline.core.message import Message
from tieline.native import is_compiled
from tieline.overlay.frames.frame import Kind
from tieline.overlay.frames.hello import read_hello
from tieline.overlay.frames.inbox import Inbox
from tieline.overlay.interests.substitutes import Substitutes
from tieline.overlay.joined import Joined
from tieline.overlay.retained import versions as versions_module
from tieline.overlay.sessions.errands import Claim, put_errand

#: Calls in one share; about 20 ms of an interpreter that is not measured.
MOST: Final = 100_000
#: Bytes of each speech that are tried.
_MUCH: Final = 150_000
_HANDLE: Final = 3
#: Messages that are retained here.
_RETAINED: Final = 5_000
#: Entries that are said here, where more are widened.
_SAID: Final = 6_000


def _joined() -> tuple[Broker, Joined, Liar]:
    core = Broker(Settings(name="attacked"))
    joined = Joined(core, life=1, incarnation=1)
    for number in range(_RETAINED):
        core.retained.keep(Message(b"kept/%d" % number, b"x", 0, True), 0.0)
    joined.node.opened(_HANDLE, 0.0, 1, "hostile")
    frames = Inbox().take(joined.node.fill(_HANDLE, 1 << 20, 0.0))
    liar = Liar("hostile", next(read_hello(body) for kind, body in frames if kind is Kind.HELLO))
    assert not joined.receive(_HANDLE, liar.hello(), 0.0)
    return core, joined, liar


def _taken_in_shares(joined: Joined, core: Broker, data: bytes) -> list[int]:
    """Calls of each share, until everything has been looked at."""
    waits = True

    def first() -> None:
        nonlocal waits
        waits = joined.receive(_HANDLE, data, 0.0)

    def next_one() -> None:
        nonlocal waits
        core.tick(0.0)
        waits = joined.go_on(_HANDLE, 0.0)
        joined.node.fill(_HANDLE, 1 << 20, 0.0)

    shares = [count_calls(first)]
    while waits:
        shares.append(count_calls(next_one))
    assert joined.node.connections.find(_HANDLE) is not None, "it is still there: nothing it said was illegal"
    return shares


@pytest.mark.skipif(is_compiled(), reason="compiled functions cannot be counted")
def test_topics_that_were_chosen_to_lie_in_one_bucket_are_not_looked_through_in_one_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(versions_module, "crc32", lambda _topic: 7)
    monkeypatch.setattr(f"{__name__}._RETAINED", 40_000)
    core, joined, liar = _joined()
    assert len(joined.retaining.convergence.versions.buckets[7]) == 40_000
    shares = _taken_in_shares(joined, core, b"".join(islice(comparisons(liar), 3)))
    ours = [count_calls(lambda: core.tick(0.0)) for _ in range(60)]
    assert joined.retaining.convergence.versions.is_digested(7), "everything was looked at"
    assert max(shares + ours) <= MOST


@pytest.mark.skipif(is_compiled(), reason="compiled functions cannot be counted")
@pytest.mark.parametrize("speech", SPEECHES, ids=[speech.__name__ for speech in SPEECHES])
def test_nothing_that_a_peer_says_is_done_in_one_go(speech: Speech) -> None:
    core, joined, liar = _joined()
    pieces, size = [], 0
    # a hundred bytes that were compressed are as much as tens of thousands
    most = 20 if speech is packed_pings else 501
    for piece in islice(speech(liar), most):
        pieces.append(piece)
        size += len(piece)
        if size > _MUCH and speech is not late_first:
            break
    shares = _taken_in_shares(joined, core, b"".join(pieces))
    assert max(shares) <= MOST, sorted(shares)[-5:]


@pytest.mark.skipif(is_compiled(), reason="compiled functions cannot be counted")
def test_what_follows_from_what_a_peer_says_is_not_done_in_one_go() -> None:
    core, joined, liar = _joined()
    wanted = joined.node.interests.substitutes = Substitutes(entries=_SAID)
    now, waits = 0.0, joined.receive(_HANDLE, next(handed_over(liar)), 0.0)
    shares = []
    while waits or now < 0.5 or wanted.is_moving:
        now += 0.004
        # what becomes due in a turn, and what still waits
        shares.append(count_calls(lambda at=now: core.tick(at)))  # type: ignore[misc]  # the time is bound
        waits = waits and joined.go_on(_HANDLE, now)
        joined.end_turn(now)
        joined.node.fill(_HANDLE, 1 << 20, now)
    assert sum(len(session.subscriptions) for session in core.sessions.values()) > _SAID, "so some had to be widened"
    assert 0 < len(wanted) <= _SAID
    joined.node.interests.check()
    assert max(shares) <= MOST, sorted(shares)[-5:]


@pytest.mark.skipif(is_compiled(), reason="compiled functions cannot be counted")
def test_sessions_that_are_claimed_together_leave_one_after_the_other() -> None:
    core, joined, liar = _joined()
    asked = (Subscribed("mine/#", 1, 0, ()),)
    clients = [f"c-{number}" for number in range(20)]
    for client in clients:
        session = core.handovers.put_in(SessionContents(client, None, 3_600, None, (), asked, (), (), False), 0.0)
        for number in range(500):
            core.handovers.put_waiting(session, Message(b"mine/%d/x" % number, b"x", 1), (1, b"", ""), 0.0)
    claims = liar.data(tuple([put_errand(Claim(client, None, 1, liar.name, 0)) for client in clients]), is_errand=True)
    shares = _taken_in_shares(joined, core, claims)
    while core.sessions:
        shares.append(count_calls(lambda: core.tick(0.0)))
    assert joined.node.counts.sessions_out == len(clients)
    assert max(shares) <= MOST, sorted(shares)[-5:]
