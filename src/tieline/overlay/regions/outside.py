"""The other side of a gateway: a node among the gateways of other regions, on the same core and in the same store.

To the core a gateway of another region is one more receiver, as a broker of its own region is.  What comes from there
is routed like what comes from brokers, and what this side owes and has taken is noted in the batch that holds what
became of it on the other side: so the core passes on what crosses, and no message is between two stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tieline.core.broker import Broker
from tieline.overlay.carrier.ends import Limits
from tieline.overlay.grants import Grants
from tieline.overlay.joined import ACK_S, patience_of
from tieline.overlay.links.shortage import Shortage
from tieline.overlay.may import May
from tieline.overlay.node import Node
from tieline.overlay.plans import Plans
from tieline.overlay.receivers.destination import Destination
from tieline.overlay.receivers.incoming import Incoming
from tieline.overlay.receivers.outgoing import Outgoing
from tieline.overlay.receivers.remote import RemoteInterests
from tieline.overlay.receivers.turns import Turns, outside_name
from tieline.overlay.side import Side
from tieline.overlay.strategies import STRATEGIES

#: In front of the keys of what this side notes.
NOTE: Final = b"X"
Note = tuple[bytes, bytes]


def part(notes: Iterable[Note]) -> tuple[list[Note], list[Note]]:
    """What a gateway has noted of the gateways of other regions, as that side wrote it, and everything else."""
    ours: list[Note] = []
    others: list[Note] = []
    for key, value in notes:
        if key[:1] == NOTE:
            ours.append((key[1:], value))
        else:
            others.append((key, value))
    return ours, others


class Outside(Side):
    """The gateways of other regions, for the core of one gateway."""

    def __init__(  # what a shell knows and tests choose
        self,
        core: Broker,
        region: str,
        *,
        life: int,
        incarnation: int,
        strategy: str = "path",
        limits: Limits | None = None,
        notes: Iterable[Note] = (),
    ) -> None:
        super().__init__(core, prefix=NOTE)
        self.region = region
        self.name = outside_name(core.settings.name, region)
        limits = limits or Limits(ack_s=ACK_S)
        self._shortage = shortage = Shortage(core, lambda: self.names)
        self.node = Node(
            self.name,
            self._written.restore(notes),
            self._deliver,
            core.timers,
            incarnation=incarnation,
            life=life,
            limits=limits,
            patience=patience_of(core, shortage),
            strategy=STRATEGIES[strategy],
            spend=self._spend,
        )
        sender = self.node.carrier.sender
        sender.expired = shortage.expired
        #: By number, the gateways that are known.
        self.names = names = self.node.directory.names
        self.destinations: dict[int, Destination] = {}
        #: None is ever installed: plans are for the brokers of one region.
        self.plans = Plans(self.node.number_of, sender.go_by, _keep_nothing, ())
        turns, counts = Turns(names), self.node.counts
        membership, tables = self.node.membership, self.plans.tables
        self.outgoing = Outgoing(core, sender, membership, self.destinations, limits, tables, turns)
        self.remote = RemoteInterests(core, names, self.destinations, self.outgoing, counts, turns, are_outside=True)
        addressing = self.outgoing.addressing
        self.incoming = Incoming(core, names, self.node, self.destinations, addressing, None)
        self.grants = Grants(self.node, core.timers)

    def use(
        self, strategy: str, now: float, *, covering: str = "optimal", publishes: Iterable[str] | None = None
    ) -> None:
        """Choose links by another strategy from now on."""
        if strategy != self.node.carrier.strategy.name:
            self.node.use(STRATEGIES[strategy], now)
        self.node.announcing.cover(optimally=covering == "optimal", now=now)

    def lost(self, name: str, why: str, text: str) -> None:
        """The shell has lost the connection to a peer, for a reason with a name."""
        link = self.node.links.get(self.node.number_of(name))
        if link is not None:
            link.meter.ended(why, text)

    def limit(self, rights: Mapping[str, May]) -> None:
        """Gateways of other regions have all rights; the settings refuse others."""
        assert not rights

    # -- turns and commits

    def end_turn(self, now: float) -> None:
        """Everything that was ready has been handled."""
        self.now = now
        self.outgoing.flush(now)
        self._settle(now)
        self.outgoing.reckon(now)
        self._shortage.reckon(self.node.links.values(), self.node.kept_bytes)

    def seal(self) -> None:
        """A batch is handed to the store: this side's part of it."""
        self.outgoing.flush(self.now)
        self._seal_node()

    def _deliver(self, origin: int, lane: int, parcels: Sequence[bytes]) -> int:
        return self.incoming.deliver(origin, lane, parcels, self.now)


def _keep_nothing(_key: bytes, _value: bytes | None) -> None:
    raise AssertionError("no plan is installed towards other regions")
