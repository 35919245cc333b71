"""One node that plans: it has an inbox, its own links, and nothing else.

Theory of operation
-------------------
Offers spread from the sources as in a path-vector protocol: a node offers each topic to its neighbours at the weight
of the best way it knows.  A node of the topic's tree offers it at cost alone, since its capacity is paid; any other
node adds the prices of the links that would be new.  Joins travel from a subscriber along the best offers up to the
source; every node on the way writes down for whom it passes the topic on, so that each node has one parent per topic.
Both ends of a link see every join and leave, hence know its load; one end owns the link and sets its price.

First links are soft: a link without room costs more for what is missing.  Now and then the owner of an overloaded
link raises its price and evicts topics, those of the lowest class first, until the rest fits; their subscribers
leave, wait, and join by the offers that they have then.  After ``hard_after`` links are hard: nobody joins over one
without room.  A subscriber that is refused too often stays unmet.

Time and chance come from outside: every handler takes ``now``, and ``chance`` gives numbers from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

from tieline.overlay.agreeing.protocol import (
    TOLERANCE,
    Accepted,
    Agreement,
    Evicted,
    Join,
    Leave,
    Message,
    Offer,
    Offers,
    OwnRequest,
    Port,
    Price,
    Refused,
    Relay,
    TopicFacts,
)

#: What a node tells a neighbour, or itself: then the neighbour is its own number.
Sent = tuple[int, Message]

#: How likely a waking node lowers the price of a link with room, or looks for a better way for a topic.
_RELENT = 0.15
#: A node asks the subscribers of a topic to look for a better way at most so often.
_MOVES = 6


class PlanningNode:
    """A node, its links, and its part of every topic's tree."""

    def __init__(  # all that a node knows at first
        self,
        number: int,
        ports: dict[int, Port],
        *,
        is_broker: bool,
        publishes: dict[int, TopicFacts],
        wants: set[int],
        max_connections: int | None,
        agreement: Agreement,
        chance: Callable[[], float],
    ) -> None:
        self.number = number
        self.ports = ports
        self.is_broker = is_broker
        self.publishes = publishes
        self.requests = {topic: OwnRequest(at=5.0 * chance()) for topic in sorted(wants)}
        #: What is known of topics: its own, and those it was offered.
        self.facts: dict[int, TopicFacts] = dict(publishes)
        self.max_connections = max_connections
        self.agreement = agreement
        self.chance = chance
        self.relays: dict[int, Relay] = {}
        self._offered: dict[int, Offer] = {}
        #: Topics whose own offers have to be worked out again before neighbours are told.
        self._stale: set[int] = set(publishes)
        #: How often the node asked a topic's subscribers to look for a better way.
        self._moves: dict[int, int] = {}

    # What happens

    def receive(self, sender: int, message: Message, now: float) -> list[Sent]:
        """A message arrives: what to send in turn."""
        match message:
            case Offers(offers):
                for offer in offers:
                    self.facts[offer.topic] = offer.facts
                    self.ports[sender].offers[offer.topic] = offer
                    self._stale.add(offer.topic)
                return []
            case Price(price):
                self.ports[sender].price = price
                self._stale |= self._known()
                return []
            case Join():
                return self._join(sender, message, now)
            case Leave(topic, subscriber):
                return self._left(sender, topic, subscriber)
            case Accepted(topic, subscriber, delay):
                return self._accepted(topic, subscriber, delay, now)
            case Refused(topic, subscriber):
                return self._refused(topic, subscriber, now)
            case Evicted(topic, subscriber):
                return self._evicted(topic, subscriber, now)

    def want(self, topic: int, now: float) -> None:
        """One topic more is wanted here; once is enough."""
        if topic not in self.requests and topic not in self.publishes:
            self.requests[topic] = OwnRequest(at=now)

    def wake(self, now: float, busy: Collection[int] = ()) -> list[Sent]:
        """Time has passed: owners look at their links, subscribers try again, news is told.

        Who is busy has not taken in the news before, and is told later what is new by then.
        """
        sent: list[Sent] = []
        for neighbour, port in self.ports.items():
            if port.is_owner and port.room < 0:
                sent += self._defend(neighbour, port)
            elif port.is_owner and port.price > 0 and self.chance() < _RELENT:
                # a price that hardly counts would be told for ever
                port.price = 0.8 * port.price if port.price > 0.01 * self.agreement.scale else 0.0
                sent.append((neighbour, Price(port.price)))
        if now < self.agreement.hard_after:
            sent += self._improve()
        for topic, request in self.requests.items():
            if request.is_joining and now >= request.at:
                # no answer came: forget the attempt
                self._postpone(topic, now)
                sent += self._leave(topic, self.number)
            elif not request.is_served and not request.is_joining and now >= request.at:
                request.is_joining = True
                request.at = now + 10.0 * self.agreement.patience
                sent += self._join(self.number, Join(topic, self.number, ()), now)
        for topic in sorted(self._stale):
            # once for all that has happened since the last time: neighbours hear of it now and not earlier
            self._renew(topic)
        self._stale.clear()
        for neighbour, port in self.ports.items():
            if port.news and neighbour not in busy:
                offers = tuple(self._offered[topic] for topic in sorted(port.news))
                sent.append((neighbour, Offers(offers)))
                port.news.clear()
        return sent

    # Offers

    def _known(self) -> set[int]:
        return {topic for port in self.ports.values() for topic in port.offers}

    def _renew(self, topic: int) -> None:
        """Work out the node's own offer again; neighbours hear of it when it has changed."""
        offer = self._own_offer(topic)
        if self._offered.get(topic) == offer or not (self.is_broker or topic in self.publishes):
            return
        self._offered[topic] = offer
        for neighbour, port in self.ports.items():
            if neighbour not in offer.way or math.isinf(offer.weight):
                port.news.add(topic)

    def _own_offer(self, topic: int) -> Offer:
        if topic in self.publishes:
            return Offer(topic, 0.0, 0.0, self.publishes[topic], (self.number,))
        relay = self.relays.get(topic)
        parent = relay.parent if relay else None
        if parent is None:
            parent = self._best(topic)
        if parent is None:
            return Offer(topic, math.inf, math.inf, self.facts[topic], ())
        port = self.ports[parent]
        offer = port.offers[topic]
        return Offer(
            topic,
            self._way(parent, topic),
            offer.delay + port.latency,
            self.facts[topic],
            (*offer.way, self.number),
        )

    def _weight(self, port: Port, topic: int) -> float:
        """What it takes to use a link for a topic: nothing but its cost if the topic has it already."""
        if topic in port.users:
            return port.cost
        rate = self.facts[topic].rate
        missing = rate - port.room
        return port.cost + rate * port.price + max(0.0, missing) * self.agreement.scale

    def _best(
        self, topic: int, via: tuple[int, ...] = (), *, is_hard: bool = False, child: Port | None = None
    ) -> int | None:
        """The neighbour from which to take a topic, if any can give it; by ``child`` it would go on."""
        best, least = None, math.inf
        facts = self.facts.get(topic)
        if facts is None:
            return None
        for neighbour, port in self.ports.items():
            offer = port.offers.get(topic)
            if offer is None or math.isinf(offer.weight) or self.number in offer.way or neighbour in via:
                continue
            if facts.rate > port.capacity * (1 + TOLERANCE) or (is_hard and not self._admits(port, topic)):
                continue
            if self._is_late(topic, offer.delay + port.latency):
                continue
            if child is not None and not self._connects(port, child):
                continue
            weight = self._way(neighbour, topic)
            if weight < least:
                best, least = neighbour, weight
        return best

    def _is_late(self, topic: int, delay: float) -> bool:
        latest = self.facts[topic].max_latency
        return latest is not None and delay > latest * (1 + TOLERANCE)

    # Joining and leaving

    def _admits(self, port: Port, topic: int) -> bool:
        return topic in port.users or port.room >= self.facts[topic].rate

    def _connects(self, *ports: Port) -> bool:
        """Whether these links may be used, as well as those that are."""
        if self.max_connections is None:
            return True
        opened = sum(not port.users for port in ports)
        return opened == 0 or sum(1 for port in self.ports.values() if port.users) + opened <= self.max_connections

    def _join(self, sender: int, join: Join, now: float) -> list[Sent]:
        topic, subscriber = join.topic, join.subscriber
        is_hard = now >= self.agreement.hard_after
        if sender != self.number:
            port = self.ports[sender]
            if self.number in join.via or not self._takes(port, topic, is_hard):
                return [(sender, Refused(topic, subscriber))]
        relay = self.relays.setdefault(topic, Relay())
        if topic not in self.publishes and relay.parent is None:
            child = self.ports.get(sender)
            parent = self._best(topic, join.via, is_hard=is_hard, child=child)
            if parent is None:
                return self._give_up(sender, topic, subscriber, now)
            relay.parent = parent
            self.ports[parent].users[topic] = self.facts[topic].rate
        if sender != self.number:
            self.ports[sender].users[topic] = self.facts[topic].rate
        before = relay.served.get(subscriber)
        relay.served[subscriber] = sender
        if before is not None and before not in relay.served.values():
            self.ports[before].users.pop(topic, None)
        self._stale.add(topic)
        if topic in self.publishes:
            return [(sender, Accepted(topic, subscriber, self.ports[sender].latency))]
        assert relay.parent is not None
        return [(relay.parent, Join(topic, subscriber, (*join.via, self.number)))]

    def _takes(self, port: Port, topic: int, is_hard: bool) -> bool:
        """Whether the node may send a topic out over a link."""
        if topic in port.users:
            return True
        if is_hard and port.room < self.facts[topic].rate:
            return False
        limit = self.agreement.n_max
        if limit is not None and self.is_broker and self._branches(topic) >= limit:
            return False
        return self._connects(port)

    def _branches(self, topic: int) -> int:
        """Over how many links the node sends a topic on."""
        relay = self.relays.get(topic)
        return 0 if relay is None else len(set(relay.served.values()) - {self.number})

    def _give_up(self, sender: int, topic: int, subscriber: int, now: float) -> list[Sent]:
        if not self.relays[topic].served:
            del self.relays[topic]
        if sender == self.number:
            self._postpone(topic, now)
            return []
        return [(sender, Refused(topic, subscriber))]

    def _left(self, sender: int, topic: int, subscriber: int) -> list[Sent]:
        relay = self.relays.get(topic)
        if relay is not None and relay.served.get(subscriber) == sender:
            return self._leave(topic, subscriber)
        # the subscriber has come back another way before the news of its leaving: only the old link is free
        if relay is None or sender not in relay.served.values():
            self.ports[sender].users.pop(topic, None)
            self._stale.add(topic)
        return []

    def _leave(self, topic: int, subscriber: int) -> list[Sent]:
        parent = self._forget(topic, subscriber)
        return [] if parent is None else [(parent, Leave(topic, subscriber))]

    def _forget(self, topic: int, subscriber: int) -> int | None:
        """Pass a topic on for one subscriber less; the parent, if there is anything to tell it."""
        relay = self.relays.get(topic)
        if relay is None or subscriber not in relay.served:
            return None
        child = relay.served.pop(subscriber)
        if child != self.number and child not in relay.served.values():
            self.ports[child].users.pop(topic, None)
        parent = relay.parent
        if not relay.served:
            del self.relays[topic]
            if parent is not None:
                self.ports[parent].users.pop(topic, None)
        self._stale.add(topic)
        return parent

    def _accepted(self, topic: int, subscriber: int, delay: float, now: float) -> list[Sent]:
        relay = self.relays.get(topic)
        if relay is None or subscriber not in relay.served:
            return []
        if subscriber != self.number:
            child = relay.served[subscriber]
            return [(child, Accepted(topic, subscriber, delay + self.ports[child].latency))]
        request = self.requests[topic]
        request.is_joining, request.is_served = False, True
        if self._is_late(topic, delay):
            self._postpone(topic, now)
            return self._leave(topic, subscriber)
        return []

    def _refused(self, topic: int, subscriber: int, now: float) -> list[Sent]:
        relay = self.relays.get(topic)
        if relay is None or subscriber not in relay.served:
            return []
        child = relay.served[subscriber]
        self._forget(topic, subscriber)
        if child != self.number:
            return [(child, Refused(topic, subscriber))]
        self._postpone(topic, now)
        return []

    def _postpone(self, topic: int, now: float) -> None:
        request = self.requests[topic]
        request.is_joining, request.is_served = False, False
        if now >= self.agreement.hard_after:
            request.refusals += 1
        is_hopeless = request.refusals > self.agreement.refusals
        request.at = math.inf if is_hopeless else now + self.agreement.patience * (0.5 + self.chance())

    # Prices

    def _improve(self) -> list[Sent]:
        """Where another neighbour has a topic for less, now and then ask its subscribers to look again."""
        sent: list[Sent] = []
        for topic, relay in self.relays.items():
            if relay.parent is None or self._moves.get(topic, 0) >= _MOVES or self.chance() >= _RELENT:
                continue
            best = self._best(topic)
            if best is None or best == relay.parent:
                continue
            if self._way(best, topic) < self._way(relay.parent, topic) * (1 - 1e-9):
                self._moves[topic] = self._moves.get(topic, 0) + 1
                sent += [(child, Evicted(topic, each)) for each, child in sorted(relay.served.items())]
        return sent

    def _way(self, neighbour: int, topic: int) -> float:
        port = self.ports[neighbour]
        return port.offers[topic].weight + self._weight(port, topic)

    def _defend(self, neighbour: int, port: Port) -> list[Sent]:
        """An overloaded link of one's own: raise its price, and send topics away until the rest fits."""
        port.price += 0.3 * self.agreement.scale * min(1.0, 0.1 - port.room / port.capacity if port.capacity else 1.0)
        sent: list[Sent] = [(neighbour, Price(port.price))]
        excess = -port.room
        order = sorted(port.users, key=lambda topic: (self.facts[topic].urgency, self.chance()))
        for topic in order:
            if excess <= 0:
                break
            excess -= port.users[topic]
            sent += self._evict(neighbour, topic)
        self._stale |= self._known()
        return sent

    def _evict(self, neighbour: int, topic: int) -> list[Sent]:
        """Send a topic off a link: the messages go to the subscribers, wherever the way down leads."""
        relay = self.relays.get(topic)
        if relay is None:
            return []
        is_downward = relay.parent != neighbour
        sent: list[Sent] = []
        for subscriber, child in sorted(relay.served.items()):
            if child == neighbour or not is_downward:
                sent.append((child, Evicted(topic, subscriber)))
        return sent

    def _evicted(self, topic: int, subscriber: int, now: float) -> list[Sent]:
        relay = self.relays.get(topic)
        if relay is None or subscriber not in relay.served:
            return []
        if subscriber != self.number:
            return [(relay.served[subscriber], Evicted(topic, subscriber))]
        if self.requests[topic].is_joining:
            return []
        self._postpone(topic, now)
        return self._leave(topic, subscriber)
