"""Sockets to other brokers: those that were accepted, those that are dialled for ever, and the node behind them all."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from tieline.conf.overlay import Peer
from tieline.conf.published import published
from tieline.core.account import Event
from tieline.net.dialler import Dialler
from tieline.net.peer_link import Carries, PeerLink
from tieline.net.peer_settings import Secrets, read_secrets
from tieline.net.tls import Tls
from tieline.overlay.links.greeting import Refusal, Self
from tieline.overlay.may import May

if TYPE_CHECKING:
    from tieline.conf.schema import Settings
    from tieline.core.broker import Broker
    from tieline.core.timers import Action, Timers
    from tieline.net.loop import Loop

#: What is said of a peer of which nothing is said.
ANYBODY: Final = Peer(name="")
#: How long a greeting may take, and how many connections may be in theirs.
_GREETING_S: Final = 5.0
_STRANGERS: Final = 64
#: What the node itself says of a connection that it ends, by the name under which that is counted.
_SENTENCES: Final = {
    "bad_frames": "it sent what is no frame of this protocol",
    "gap": "a frame of it was missing",
    "silent": "nothing was heard of it for too long",
    "stuck": "it does not read what it is told",
    "replaced": "a newer connection replaces it",
    "refused": "it was refused",
    "idle": "neither end has made use of it",
    "": "it was ended",
}
#: By the first words of a sentence, the name of a reason that the socket found.
_BY_WORDS: Final = {
    "the other end has closed": "closed",
    "the connection broke": "broken",
    "it cannot be reached": "unreachable",
    "TLS": "tls",
    "a newer connection": "replaced",
    "this broker stops": "stopped",
    "what it has proven": "revoked",
}


class Ends(Protocol):
    """What a node knows of its connections."""

    #: Of peers that could not be had: the connection, whether the peer said so, and a sentence.
    refusals: list[tuple[int, bool, str]]

    def is_up(self, handle: int) -> bool:
        """Whether both ends have said who they are."""

    def why(self, handle: int) -> str:
        """The name of the reason why a connection was ended here; empty if it was not."""


class Switch(Carries, Protocol):
    """What a node does with connections that come and go."""

    @property
    def doomed(self) -> set[int]:
        """Connections that are to be ended."""

    @property
    def connections(self) -> Ends: ...

    def opened(self, handle: int, now: float, cost: int, name: str) -> None:
        """Somebody has proven to have a name, on a connection."""

    def closed(self, handle: int, now: float) -> None:
        """A connection is no more."""

    def tune(self, handle: int, cost: int, now: float, *, is_packed: bool) -> None:
        """A link is treated as is said."""


class Paces(Protocol):
    """What is known of how much a link may be given."""

    def pace(self, peer: str) -> float | None:
        """The bytes in a second that a plan gives the link to a peer; None if it says nothing."""


class Side(Protocol):
    """What sockets need of what lies behind them."""

    @property
    def node(self) -> Switch: ...

    @property
    def plans(self) -> Paces: ...

    @property
    def name(self) -> str: ...

    def receive(self, handle: int, data: bytes, now: float) -> bool: ...

    def go_on(self, handle: int, now: float) -> bool: ...

    def limit(self, rights: Mapping[str, May]) -> None: ...

    def use(
        self, strategy: str, now: float, *, covering: str = "optimal", publishes: Iterable[str] | None = None
    ) -> None: ...

    def lost(self, name: str, why: str, text: str) -> None: ...


S = TypeVar("S", bound=Side)


def _of_cluster(name: str, settings: Settings, known: Secrets) -> Self:
    """What a broker says of itself to those of its group."""
    return Self(name, settings.overlay.cluster, known.keys, known.own_keys)


class Peers(Generic[S]):
    """Everything of one broker that touches other brokers, on one side."""

    def __init__(
        self,
        joined: S,
        *,
        settings: Settings,
        core: Broker,
        loop: Loop,
        deliver: Callable[[Action], None],
        identify: Callable[[str, Settings, Secrets], Self] = _of_cluster,
    ) -> None:
        """``identify`` is what is said to whoever is there."""
        self.core = core
        self.loop = loop
        #: Has something done in the broker's next turn; for other threads.
        self.deliver = deliver
        known = read_secrets(settings)
        self._identify = identify
        self.me = identify(joined.name, settings, known)
        self.joined = joined
        self._by_name = {peer.name: peer for peer in settings.peer if peer.name}
        self.joined.limit({name: May(peer.may) for name, peer in self._by_name.items() if peer.may is not None})
        #: Connections whose greeting is over, by the name of the peer.
        self.up: dict[str, PeerLink] = {}
        #: Of the same names, those that came later: the node lets the old one go, or refuses the new one.
        self._newer: dict[str, PeerLink] = {}
        #: Those of which the node has not said yet that they are links.
        self._unsaid: list[PeerLink] = []
        self._links: dict[int, PeerLink] = {}
        self.is_stopped = False
        self.diallers = [Dialler(self, peer) for peer in settings.peer if peer.url is not None]
        self._context = known.context

    @property
    def timers(self) -> Timers:
        """Those of the broker, so that there is one heap of deadlines."""
        return self.core.timers

    def begin_all(self) -> None:
        """Dial everything once; from then on each dialler looks after itself."""
        for dialler in self.diallers:
            dialler.dial(monotonic())

    @property
    def is_settled(self) -> bool:
        """Whether something has come of the first attempt at each address."""
        return all(dialler.is_tried for dialler in self.diallers)

    def is_up(self, name: str) -> bool:
        """Whether a broker is connected, whoever has dialled."""
        return name in self.up

    def begin(self, sock: socket.socket, dialler: Dialler, now: float) -> None:
        """A socket is being connected."""
        tls = None
        if dialler.url.is_tls:
            assert self._context is not None
            tls = Tls(self._context, dialler.url.host)
        self._add(PeerLink(self, sock, str(dialler.url), dialler, tls), now).await_connection()

    def accepted(self, sock: socket.socket, address: str, tls: Tls | None, now: float) -> None:
        """Somebody has connected; of too many who have not said who they are, one has to go."""
        strangers = [link for link in self._links.values() if link.greeting is not None and link.dialler is None]
        if len(strangers) >= _STRANGERS:
            # the oldest of the machine that has most of them: nobody keeps others out from somewhere else
            hosts = Counter(link.host for link in strangers)
            most = max(hosts.values())
            oldest = next(link for link in strangers if hosts[link.host] == most)
            self.core.account.closed["peer_strangers"] += 1
            oldest.close(now, "")
        self._add(PeerLink(self, sock, address, None, tls), now).write(now)

    def _add(self, link: PeerLink, now: float) -> PeerLink:
        self._links[link.fd] = link
        self.loop.watch(link)
        self.core.timers.at(now + _GREETING_S, partial(self._give_up, link))
        return link

    def _give_up(self, link: PeerLink, now: float) -> None:
        if link.fd >= 0 and link.greeting is not None:
            self.core.account.closed["peer_silent"] += 1
            link.close(now, "its greeting took too long")

    def admit(self, link: PeerLink, now: float) -> None:
        """Somebody has proven who it is; raises Refusal where it cannot be had."""
        name = link.peer
        old = self.up.get(name)
        if old is not None:
            was_ours, is_ours = old.dialler is not None, link.dialler is not None
            # of two connections that were dialled from both sides, that of the lesser name stays
            if was_ours != is_ours and was_ours == (self.me.name < name):
                if link.dialler is not None:
                    link.dialler.peer = name
                raise Refusal(f"broker {name} and broker {self.me.name} are connected already")
            if name in self._newer:
                self._newer[name].close(now, "a newer connection replaces it")
            self._newer[name] = link
        else:
            self.up[name] = link
        self._unsaid.append(link)
        conf = self._conf_of(link)
        self.joined.node.opened(link.handle_number, now, conf.cost, name)
        self._tune(link, conf, now)

    def _conf_of(self, link: PeerLink) -> Peer:
        """What is said of a peer: by its name, or else by the address where it was dialled."""
        return self._by_name.get(link.peer) or (ANYBODY if link.dialler is None else link.dialler.conf)

    def tune_all(self, now: float) -> None:
        """Have all links treated as is said now."""
        for link in self.up.values():
            self._tune(link, self._conf_of(link), now)

    def capacity(self, link: PeerLink) -> float | None:
        """The bits in a second that a link carries, as is said of it; None if nothing is said."""
        capacity = self._conf_of(link).capacity
        return None if capacity == "none" else capacity

    def capacity_of(self, name: str) -> float | None:
        """The bytes in a second that the link to a peer carries, as is said of it; None if nothing is said."""
        link = self.up.get(name)
        bits = None if link is None else self.capacity(link)
        return None if bits is None else bits / 8

    def _tune(self, link: PeerLink, conf: Peer, now: float) -> None:
        """Have a link treated as is said, and given no more than the plan in force has for it."""
        limits = [] if conf.capacity == "none" else [float(conf.capacity)]
        planned = self.joined.plans.pace(link.peer)
        if planned is not None:
            limits.append(8 * planned)
        link.pace(min(limits) if limits else None)
        self.joined.node.tune(link.handle_number, conf.cost, now, is_packed=conf.compress)

    def refused(self, link: PeerLink, refusal: Refusal, now: float) -> None:
        """A greeting ended with a refusal: it is counted, and told in the words of whoever refused."""
        self.core.account.closed["peer_refused"] += 1
        text = str(refusal)
        if "connected already" not in text:
            self._tell_refused(link, text)

    def _tell_refused(self, link: PeerLink, text: str) -> None:
        if link.dialler is not None:
            if link.dialler.trouble == text:
                return
            # what is dialled for ever is refused for ever: it is said once
            link.dialler.trouble = text
        self.tell("peer_refused", link.peer, link.address, text, is_trouble=True)

    def closed(self, link: PeerLink, why: str, now: float) -> None:
        """A socket is gone."""
        del self._links[link.handle_number]
        was_said = link not in self._unsaid
        if not was_said:
            self._unsaid.remove(link)
        if self._newer.get(link.peer) is link:
            del self._newer[link.peer]
        elif self.up.get(link.peer) is link:
            del self.up[link.peer]
            if link.peer in self._newer:
                self.up[link.peer] = self._newer.pop(link.peer)
            if was_said:
                ended = self.joined.node.connections.why(link.handle_number) or _name_of(why)
                self.joined.lost(link.peer, ended, why)
                self._came_or_went("peer_down", link, why, now, ended)
                why = ""
        self.joined.node.closed(link.handle_number, now)
        if link.dialler is not None and not self.is_stopped:
            link.dialler.failed(why, now)

    def _came_or_went(self, kind: str, link: PeerLink, text: str, now: float, why: str = "") -> None:
        """Say in the log and among the events that a link is up or down."""
        core = self.core
        core.account.tell(Event(kind, f"broker {link.peer}", link.address, text, why=why))
        if core.chronicle is not None:
            core.chronicle.happened(now, kind, "", "", broker=link.peer, address=link.address, why=why, text=text)

    def tell(self, kind: str, name: str, address: str, text: str, *, is_trouble: bool = False) -> None:
        """Add to the broker's story."""
        self.core.account.tell(Event(kind, f"broker {name}" if name else "", address, text, is_trouble=is_trouble))

    def write_all(self, now: float) -> None:
        """A turn is over: what it caused for other brokers leaves."""
        node = self.joined.node
        for handle, _is_theirs, text in node.connections.refusals:
            link = self._links.get(handle)
            if link is not None:
                self.core.account.closed["peer_refused"] += 1
                self._tell_refused(link, text)
        node.connections.refusals.clear()
        for handle in list(node.doomed):
            link = self._links.get(handle)
            if link is not None:
                why = node.connections.why(handle)
                link.close(now, "" if why == "refused" and link in self._unsaid else _SENTENCES[why])
            node.doomed.discard(handle)
        for link in [link for link in self._unsaid if node.connections.is_up(link.handle_number)]:
            self._unsaid.remove(link)
            if link.dialler is not None:
                link.dialler.succeeded(link.peer)
            self._came_or_went("peer_up", link, "dialled" if link.dialler is not None else "accepted", now)
        for handle in list(node.dirty):
            link = self._links.get(handle)
            if link is not None:
                link.write(now)

    def renew(self, settings: Settings, known: Secrets, now: float) -> None:
        """Act by other settings: who is new is dialled, who is gone let go, and links that stay are tuned.

        Whoever has proven itself by a key or a certificate that is not believed any more, and whoever has rights where
        it had none, has to greet again.
        """
        before = self._by_name
        self.me = self._identify(self.joined.name, settings, known)
        self._context = known.context
        self._by_name = {peer.name: peer for peer in settings.peer if peer.name}
        addresses = {peer.url: peer for peer in settings.peer if peer.url is not None}
        for dialler in [*self.diallers]:
            conf = addresses.get(dialler.conf.url or "")
            if conf is None or conf.name != dialler.conf.name:
                self._let_go(dialler, now)
            else:
                dialler.conf = conf
                del addresses[conf.url or ""]
        for name in [name for name in self.up if self._is_another(name, before)]:
            self.up[name].close(now, "the settings say something else of it")
        for link in [link for link in self._links.values() if not link.is_believed(self.me, known.trust)]:
            link.close(now, "what it has proven is not believed any more")
        self.joined.limit({name: May(peer.may) for name, peer in self._by_name.items() if peer.may is not None})
        overlay = settings.overlay
        self.joined.use(overlay.strategy, now, covering=overlay.covering, publishes=published(settings))
        self.tune_all(now)
        for conf in addresses.values():
            self.diallers.append(Dialler(self, conf))
            self.diallers[-1].dial(now)

    def _is_another(self, name: str, before: Mapping[str, Peer]) -> bool:
        """Whether what was said of a peer holds no longer."""
        old, new = before.get(name), self._by_name.get(name)
        was_fenced, is_fenced = old is not None and old.may is not None, new is not None and new.may is not None
        return (old is not None and new is None) or was_fenced != is_fenced

    def _let_go(self, dialler: Dialler, now: float) -> None:
        """An address is dialled no longer, and the connection to it ends."""
        dialler.stop()
        self.diallers.remove(dialler)
        for link in [link for link in self._links.values() if link.dialler is dialler]:
            link.close(now, "it is not among the peers any more")

    def stop_dialling(self) -> None:
        """Nothing is dialled any more."""
        self.is_stopped = True
        for dialler in self.diallers:
            dialler.stop()

    def close_all(self, now: float) -> None:
        """Close the sockets to all peers, with the reason that this broker stops."""
        for link in list(self._links.values()):
            link.close(now, "this broker stops")


def _name_of(sentence: str) -> str:
    """The name under which the end of a connection is counted that was told in these words."""
    for words, name in _BY_WORDS.items():
        if sentence.startswith(words):
            return name
    return "other"
