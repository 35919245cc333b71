"""What the ring brings to this broker, given to its clients: exactly those who want it, batch by batch.

A batch is given to clients in one go, since how far its lane has come is committed with what became of it; between two
of them others have their turn, and until nothing waits any more no link is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from tieline.core.account import Event as Told
from tieline.core.broker import Broker
from tieline.core.message import Message, Origin
from tieline.core.outbound.named import PLAIN
from tieline.overlay.frames.fields import BadFrame
from tieline.overlay.frames.parcel import Run, read_parcel
from tieline.overlay.receivers.origins import Origins
from tieline.overlay.ring.messages import Data
from tieline.overlay.ring.promises import Taken
from tieline.overlay.ring_member.notes import RingNotes

#: What an event counts towards the work of a turn beside what its messages do.
_WORK_PER_EVENT: Final = 20

Then = Callable[[float], None]


class _Delivery(NamedTuple):
    data: Data
    #: What is committed with it; None with QoS 0.
    taken: Taken | None
    then: Then


class Arriving:
    """Batches of other brokers, on their way to clients."""

    def __init__(
        self, core: Broker, notes: RingNotes, name_of: Callable[[int], str], clock: Callable[[], float]
    ) -> None:
        """``name_of`` says what a broker is called that stands at a place, as far as that is known."""
        self._clock = clock
        self._core = core
        self._notes = notes
        self._name_of = name_of
        self._late: deque[_Delivery] = deque()
        #: What is committed already, because nothing outlives the process.
        self._done: list[Then] = []
        self._origins = Origins(self._origin)
        #: Parcels that could not be understood, and messages that were retained where they were published.
        self.bad_parcels = 0
        self.retained_elsewhere = 0

    def __len__(self) -> int:
        return len(self._late)

    @property
    def is_behind(self) -> bool:
        """Whether something waits, so that nothing more should be read."""
        return bool(self._late)

    def deliver(self, data: Data, taken: Taken | None, then: Then) -> None:
        """Give a batch to those who want it, soon; call once it is committed."""
        if not self._late:
            self._core.work.later(self._go_on)
        self._late.append(_Delivery(data, taken, then))

    def _go_on(self, now: float) -> None:
        work, late = self._core.work, self._late
        work.enough()
        while late and not work.is_spent():
            self._give(late.popleft(), now)
        if late:
            work.later(self._go_on)

    def _give(self, delivery: _Delivery, now: float) -> None:
        data = delivery.data
        for sent in data.events:
            self._core.work.did(_WORK_PER_EVENT)
            try:
                item = read_parcel(sent.event.payload, partial(self._origins.of, data.origin), now)
            except BadFrame as error:
                self._refuse(data.origin, str(error))
                continue
            if not self._pass_on(item, now):
                self._refuse(data.origin, "a message that no client could have sent")
        if delivery.taken is None:
            return
        journal = self._core.journal
        if journal.is_volatile:
            self._done.append(delivery.then)
            return
        self._notes.take(delivery.taken)
        journal.then(partial(self._committed, delivery.then))

    def _committed(self, then: Then) -> None:
        then(self._clock())

    def _pass_on(self, item: list[Message] | Run, now: float) -> bool:
        """Route what an event holds; False if one of the messages can be none."""
        inlet = self._core.from_brokers
        if isinstance(item, Run):
            at = 0
            while 0 <= at < len(item.packets):
                self._core.work.enough()
                at = inlet.run(item.packets, item.version, item.origin, item.level, now, PLAIN, at)
            return at >= 0
        is_good = True
        for message in item:
            # what others retain is theirs: here it is a message like any other
            self.retained_elsewhere += message.retain
            message.retain = False
            is_good &= inlet.message(message, now)
        return is_good

    def end_turn(self, now: float) -> None:
        """What was given to clients without a store is as safe as it gets."""
        done, self._done = self._done, []
        for then in done:
            then(now)

    def _refuse(self, origin: int, text: str) -> None:
        self.bad_parcels += 1
        name = f"broker {self._name_of(origin)}"
        self._core.account.tell(Told("parcel_refused", name, "", text, is_trouble=True))

    def _origin(self, broker: int, client: str) -> Origin:
        owner = self._core.holdings.owner(None)
        # members of groups are picked here, as if it were accepted here: nobody elsewhere knows them
        return Origin(client, 0, owner, self._name_of(broker), is_entering=True)
