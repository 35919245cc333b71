"""The rooms of one broker: each is made with those that it needs, in that order, and none of them knows the broker.

What a room needs of one that is made after it is set as a callback: here where both are known, and in
:class:`tieline.core.broker.Broker` where a door has to be called.
"""

from __future__ import annotations

from collections.abc import Callable

from tieline.conf.quantities import bound
from tieline.conf.schema import Settings
from tieline.core.account import Account, Event
from tieline.core.allowance import Allowances
from tieline.core.durable.arrivals import Arrivals
from tieline.core.durable.capture import Capture
from tieline.core.durable.chronicle import Chronicle
from tieline.core.durable.journal import Journal
from tieline.core.figures.demand import Demand
from tieline.core.figures.system import System
from tieline.core.handover import Handovers
from tieline.core.holdings import Holdings
from tieline.core.inbound.acknowledge import Acknowledging
from tieline.core.inbound.chunk import Chunks
from tieline.core.inbound.connect import Connecting
from tieline.core.inbound.connections import Connections
from tieline.core.inbound.estates import Estates
from tieline.core.inbound.first_packet import FirstPacket
from tieline.core.inbound.from_brokers import FromBrokers
from tieline.core.inbound.holds import Holds
from tieline.core.inbound.objections import Objections
from tieline.core.inbound.pass_on import Passing
from tieline.core.inbound.producers import Producers
from tieline.core.inbound.publish import Publishing
from tieline.core.inbound.questions import Questions
from tieline.core.inbound.remains import Remains
from tieline.core.inbound.sessions import Sessions
from tieline.core.inbound.subscribe import Subscribing
from tieline.core.inbound.taken_over import TakenOver
from tieline.core.inbound.will import Wills
from tieline.core.outbound.deliver import Delivery
from tieline.core.outbound.named import NamedDelivery
from tieline.core.outbound.order import Order
from tieline.core.outbound.replay import Replays
from tieline.core.outbound.retained import Retained
from tieline.core.outbound.spills import Spills
from tieline.core.outbound.window import Window
from tieline.core.outbound.writer import Writer
from tieline.core.ports import Access, Aside, Store
from tieline.core.routing.content_match import ContentMatch
from tieline.core.routing.heat_source import HeatSource
from tieline.core.routing.priorities import Priorities
from tieline.core.routing.routes import Routes
from tieline.core.timers import Timers
from tieline.core.work import Work
from tieline.match.change import ChangeMemory
from tieline.match.events import Events
from tieline.match.index import AdaptiveIndex
from tieline.sched.queue import Pool


class Rooms:
    """Everything that one broker consists of."""

    def __init__(
        self,
        settings: Settings,
        access: Access,
        store: Store,
        aside: Aside,
        name_client: Callable[[], str] | None,
        now: float,
    ) -> None:
        self.settings = settings
        self._aside = aside
        self.account = Account()
        self.timers = Timers()
        self.work = Work(self.timers)
        self.allowances = Allowances(settings)
        #: What is kept because of clients, by kind and by whom.
        self.holdings = Holdings(self.allowances, Pool(bound(settings.limits.queue_bytes_total)))
        self._make_routing(settings)
        self._make_durable(settings, store, now)
        self._make_outbound(settings)
        self._make_inbound(settings, access, name_client)
        self._make_figures(settings, now)

    def _make_routing(self, settings: Settings) -> None:
        #: How urgent and how hot messages are.
        self.priorities = Priorities(settings)
        #: What messages say.
        self.events = Events(settings)
        #: What subscriptions with changed() or delta() were sent last.
        self.references = ChangeMemory(bound(settings.content.change_topics), bound(settings.content.change_total))
        #: All subscriptions, and where the messages of a topic go.
        self.routes = Routes(
            settings.limits.route_cache,
            self.priorities.classes,
            self.events,
            self.work,
            tend=self._tend,
            counts_deliveries=self.priorities.heat_deliveries > 0,
        )
        self.holdings.remembered = lambda: self.routes.remembered_bytes + self.references.bytes
        self.content = ContentMatch(self.routes, self.events, self.account)
        #: Whether topics are as hot as the broker finds them, or as somebody says.
        self.heat_source = HeatSource(self.routes, self.priorities, self.timers, self.account)

    def _make_durable(self, settings: Settings, store: Store, now: float) -> None:
        self.journal = Journal(store)
        self.arrivals = Arrivals()
        is_kept = not self.journal.is_volatile
        #: Writes down what happens; None where nothing is.
        self.chronicle: Chronicle | None = None
        if is_kept and settings.log.capture:
            self.arrivals.watch(Capture(settings.log.capture, self.journal, self.events, self.priorities))
        if is_kept and settings.log.events == "on":
            self.chronicle = Chronicle(settings.log, self.journal, self.timers, self.priorities, now)
            self.account.on_drop = self.chronicle.dropped

    def _make_outbound(self, settings: Settings) -> None:
        limits = settings.limits
        account, journal = self.account, self.journal
        self.order = Order(settings.priority.policy, self.priorities, account)
        #: What waits in the store alone, for sessions whose queues are full.
        self.spills = Spills(limits, journal, self.work)
        #: Puts messages into queues; knows what waits in all of them together.
        self.delivery = Delivery(
            self.holdings.pool,
            self.content,
            self.priorities,
            self.order,
            journal,
            account,
            self.work,
            self.spills,
            keeps_oldest=settings.mqtt.full != "oldest",
            absent=settings.mqtt.absent,
        )
        self.retained = Retained(
            bound(limits.retained_messages), bound(limits.retained_bytes), self.holdings, journal, account
        )
        changed = self.delivery.changed
        self.replays = Replays(
            self.retained, self.routes, self.content, changed, journal, account, self.timers, self.work
        )
        self.window = Window(journal)
        self.holds = Holds(changed, self.timers, self.work, account, settings.mqtt.pause_max_s)
        self.writer = Writer(
            self.delivery,
            self.order,
            self.window,
            self.replays,
            self.spills,
            journal,
            account,
            self.chronicle,
            self.holds.release_publishers,
        )

    def _make_inbound(self, settings: Settings, access: Access, name_client: Callable[[], str] | None) -> None:
        account, journal, timers = self.account, self.journal, self.timers
        routes, priorities, delivery, retained = self.routes, self.priorities, self.delivery, self.retained
        arrivals, chronicle, holds = self.arrivals, self.chronicle, self.holds
        promises = settings.mqtt.full != "oldest"
        #: Who publishes messages that may be sent again, and how far each has got.
        self.producers = Producers(journal, bound(settings.limits.producers))
        #: QoS 2 messages that are routed when they are permanent.
        self.taken_over = TakenOver(
            routes, self.content, retained, delivery, journal, timers, self.work, promises=promises
        )
        self.wills = Wills(
            routes, self.content, priorities, arrivals, retained, delivery, journal, timers, self.work, account
        )
        self.questions = Questions(access, routes, holds, self.work, settings.limits.topic_levels)
        #: What sessions that are over have left in the store.
        self.estates = Estates(self.content, delivery, self.spills, journal)
        #: What sessions that are over still have in memory.
        self.remains = Remains(routes, self.content, delivery, self.estates, self.window, self.holdings, self.work)
        self._sessions = Sessions(
            settings,
            routes,
            delivery,
            self.remains,
            self.replays,
            self.wills,
            holds,
            self.holdings,
            journal,
            timers,
            self.work,
            account,
        )
        self._connections = Connections(
            self._sessions,
            self.questions,
            holds,
            self.holdings,
            self.allowances,
            delivery.changed,
            timers,
            account,
            chronicle,
            priorities.default_level,
        )
        self._make_handlers(settings, name_client)
        delivery.on_overflow = lambda session: timers.soon(lambda due: self._sessions.end_overflown(session, due))
        holds.on_overdue = self._connections.give_up

    def _make_handlers(self, settings: Settings, name_client: Callable[[], str] | None) -> None:
        account, journal, holds = self.account, self.journal, self.holds
        routes, priorities, delivery, retained = self.routes, self.priorities, self.delivery, self.retained
        self._connecting = Connecting(
            settings,
            self._connections,
            self._sessions,
            self.wills,
            self.questions,
            holds,
            self.allowances,
            priorities,
            journal,
            delivery.changed,
            account,
            self.chronicle,
            name_client,
        )
        #: What can speak against a message; asked by those who take it, and by those who only want to know.
        self.objections = Objections(settings, priorities, self.producers, delivery, journal)
        self._publishing = Publishing(
            settings,
            self.objections,
            routes,
            self.content,
            priorities,
            self.questions,
            self.producers,
            self.taken_over,
            self.arrivals,
            retained,
            delivery,
            holds,
            self.holdings,
            journal,
            account,
        )
        self._subscribing = Subscribing(
            settings,
            routes,
            self.references,
            self.questions,
            retained,
            self.replays,
            self.order,
            holds,
            journal,
            account,
            self.work,
            self.chronicle,
        )
        self._make_doors()
        has_chronicle = self.chronicle is not None
        self._chunks = Chunks(
            FirstPacket(self._connecting, self._connections, holds, self.work, account),
            self._connecting,
            self._publishing,
            Acknowledging(self.window, journal),
            self._subscribing,
            routes,
            self.content,
            priorities,
            delivery,
            self.arrivals,
            holds,
            account,
            self.work,
            allows_qos_1=settings.mqtt.maximum_qos > 0,
            has_chronicle=has_chronicle,
        )
        self._passing = Passing(routes, priorities, self.arrivals, account, has_chronicle=has_chronicle)

    def _make_doors(self) -> None:
        """Where other brokers come in."""
        account, routes, delivery = self.account, self.routes, self.delivery
        #: What other brokers accepted comes in here.
        named = NamedDelivery(routes, self.content, account, self.work)
        self.from_brokers = FromBrokers(routes, self.content, self.priorities, self.replays, delivery, named, self.work)
        self.from_brokers.is_gateway = self.settings.overlay.region is not None
        #: Sessions that come from other brokers, or go there.
        self.handovers = Handovers(
            self._sessions,
            self._connections,
            self._subscribing,
            routes,
            self.references,
            delivery,
            self.window,
            self.wills,
            self.journal,
        )

    def _make_figures(self, settings: Settings, now: float) -> None:
        self.demand = Demand(self.arrivals, self._sessions, self.timers, self.account)
        self.system = System(
            settings,
            self._sessions,
            self._connections,
            self.routes,
            self.priorities,
            self.references,
            self.producers,
            self.delivery,
            self.spills,
            self.retained,
            self.heat_source,
            self.holdings,
            self.journal,
            self.account,
            self.timers,
            now,
        )

    def _tend(self, index: AdaptiveIndex) -> None:
        """Let an index that has grown, shrunk or worn be made anew, beside everything else."""
        job = index.begin_rebuild()

        def done(error: Exception | None) -> None:
            if error is None:
                index.adopt(job)
            else:
                index.give_up(job)
                self.account.tell(Event("index_rebuild_failed", "", "", repr(error), is_trouble=True))

        self._aside(job.run, done)
