"""Messages that another broker has accepted, and that some client of this one wants.

They were judged where they were accepted: who may publish them, how urgent they are.  Here they are routed as the
messages of clients are; those who watch arrivals have seen them there.
"""

from __future__ import annotations

from typing import Final

from tieline.core.message import Bundle, Burst, Message, Origin
from tieline.core.outbound.deliver import Delivery
from tieline.core.outbound.named import PLAIN, NamedDelivery, Naming
from tieline.core.outbound.replay import Replays
from tieline.core.routing.content_match import ContentMatch
from tieline.core.routing.priorities import Priorities
from tieline.core.routing.route import Route
from tieline.core.routing.routes import RESERVED, Routes
from tieline.core.work import Work
from tieline.wire.errors import ProtocolError
from tieline.wire.frames import publish_head
from tieline.wire.topics import check_name

#: Levels of a topic: whoever accepted it may keep more than clients of this broker may use.
LEVELS: Final = 65_535
_PUBLISH_QOS_0: Final = 0x30
#: What each change of topic counts towards the work of a turn, and each message that is alone.
WORK_PER_KIND: Final = 10
WORK_PER_MESSAGE: Final = 30


class FromBrokers:
    """Routes what other brokers have accepted."""

    def __init__(  # the rooms that a message passes
        self,
        routes: Routes,
        content: ContentMatch,
        priorities: Priorities,
        replays: Replays,
        delivery: Delivery,
        named: NamedDelivery,
        work: Work,
    ) -> None:
        #: Gives messages for groups to members of those that are named.
        self.named = named
        self._routes = routes
        self._content = content
        self._priorities = priorities
        self._replays = replays
        self._delivery = delivery
        self._work = work
        #: Messages that came although nobody here wanted them.
        self.useless = 0
        #: This broker is a gateway: what comes from brokers of its region goes to those of others, and the other way.
        self.is_gateway = False

    def message(self, message: Message, now: float, naming: Naming = PLAIN) -> bool:
        """Queue a message for its receivers; False if its topic can be none.  Who brings it knows what is retained."""
        route = self._find(message, now)
        if route is None:
            return False
        is_wanted = route.has_receivers if self.is_gateway else route.serves_clients or message.retain
        if message.origin.is_entering:
            # members of groups are picked where a message enters their region, as if it were accepted there
            self._delivery.deliver(message, route, now)
        elif route.groups or naming is not PLAIN:
            is_wanted = self.named.deliver(message, route, naming, now) > 0 or message.retain
        elif route.has_receivers:
            self._delivery.deliver(message, route, now)
        self.useless += not is_wanted
        return True

    def lacks_room(self, message: Message, now: float) -> bool:
        """Whether a message would have to wait for one of its receivers; what cannot be understood need not."""
        route = self._find(message, now)
        return route is not None and self._delivery.find_full(message, route) is not None

    def late(self, message: Message, now: float) -> None:
        """Queue a retained message that comes by another way than live.

        Groups do not get what is retained, and whoever is about to get all that is retained does not get it twice.  The
        topic can be one.
        """
        topic = message.topic.decode()
        route = self._routes.known.get(message.topic)
        if route is None:
            if not self._routes.count:
                return
            # thousands of topics may come at once, and nobody publishes to them: their routes need not be remembered
            route = self._routes.look(topic, message.topic, 1, is_whole=True)
            if not route.serves_clients:
                return
        if route.is_conditional:
            route = self._content.route_of(message, self._routes.of(message.topic))
        message.heat = self._priorities.heat(route, 1, now)
        self._work.did(WORK_PER_MESSAGE)
        grants = [
            grant
            for grant in route.grants
            if not grant.receiver.is_broker and not self._replays.will_bring(grant.receiver, topic)
        ]
        if grants:
            self._delivery.deliver(message, Route(tuple(grants), (), route.level), now)

    def _find(self, message: Message, now: float) -> Route | None:
        """The receivers of a message; None if its topic can be none."""
        topic = message.topic
        self._work.did(WORK_PER_MESSAGE)
        route = self._routes.known.get(topic)
        if route is None:
            try:
                name = topic.decode()
                check_name(name, LEVELS)
            except (ProtocolError, UnicodeDecodeError):
                return None
            if name.startswith(RESERVED):
                return None
            route = self._routes.find(name, topic)
        if route.is_conditional:
            route = self._content.route_of(message, route)
        message.heat = self._priorities.heat(route, 1, now)
        return route

    def run(  # a run, for whom it is, and where to go on in it
        self,
        packets: bytes,
        version: int,
        origin: Origin,
        level: int,
        now: float,
        naming: Naming = PLAIN,
        pos: int = 0,
    ) -> int:
        """Queue QoS 0 packets without properties as they are, until the share of work that was begun is spent.

        Where to go on: at the end if all is done, -1 if something there is none.
        """
        size, work = len(packets), self._work
        at_first = pos
        routes, priorities = self._routes, self._priorities
        may_mix = level == priorities.default_level and not priorities.is_ruled and not priorities.heat_deliveries
        #: Of the packets that go to the same receivers: where they begin, their kinds, their number, the longest.
        begin, kinds, messages, largest, last = pos, 0, 0, 0, None
        burst: Burst | None = None
        while pos < size and (pos == at_first or not work.is_spent()):
            head = publish_head(packets, pos, size)
            if head is None or packets[pos] != _PUBLISH_QOS_0:
                return -1
            start, top, end = head
            payload = top + (version == 5)
            if end > size or payload > end or (version == 5 and packets[top]):
                return -1
            topic = packets[start:top]
            route = routes.known.get(topic) or routes.learn(packets, start, top, LEVELS)
            if route is None:
                return -1
            work.did(WORK_PER_KIND)
            stride, prefix, stop = end - pos, packets[pos:payload], end
            while stop + stride <= size and packets.startswith(prefix, stop):
                stop += stride
            count = (stop - pos) // stride
            if kinds and route is last and route.is_simple and may_mix and naming is PLAIN:
                kinds, messages, largest = kinds + 1, messages + count, max(largest, stride)
            else:
                if kinds and last is not None:
                    self._pass(packets[begin:pos], kinds, messages, largest, burst, last, naming, now)
                begin, kinds, messages, largest, last = pos, 1, count, stride, route
                heat = priorities.heat(route, count, now)
                taxon = priorities.of_topic(route)
                shape = payload - pos, topic, version, origin, level, now, heat, taxon
                burst = Burst(packets[pos:stop], count, *shape)
            pos = stop
        if kinds and last is not None:
            self._pass(packets[begin:pos], kinds, messages, largest, burst, last, naming, now)
        return pos

    def _pass(  # what a run has found out
        self,
        packets: bytes,
        kinds: int,
        messages: int,
        largest: int,
        burst: Burst | None,
        route: Route,
        naming: Naming,
        now: float,
    ) -> None:
        assert burst is not None
        if burst.origin.is_entering and not route.is_simple:
            self._delivery.deliver(burst, route, now)
        elif naming is not PLAIN or not route.is_simple:
            wanted = self.named.deliver(burst, route, naming, now)
            self.useless += 0 if self.is_gateway else messages - wanted
        elif not (route.has_receivers if self.is_gateway else route.serves_clients):
            # whoever else wants it is sent it by the broker that has accepted it
            self.useless += messages
        elif kinds == 1:
            self._delivery.deliver(burst, route, now)
        else:
            shape = burst.version, burst.origin, burst.level, now, burst.heat
            self._delivery.deliver_plainly(Bundle(packets, messages, largest, *shape), route, now)
