"""Messages that another broker has accepted: those for groups go to one member of each group that it has named.

The broker that accepts a message picks one broker for each group, so here a group that is not named gets nothing.
Where nobody of a named group can take the message, because its members have gone or ask for something else that only
this broker can tell, another broker with members is picked.  Who was picked before is not picked again, so a message
comes to an end; if that is with nobody, it is named and counted.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from tieline.core.account import Account, Drop
from tieline.core.message import Burst, Item
from tieline.core.receiver import Receiver, Share
from tieline.core.routing.content_match import ContentMatch
from tieline.core.routing.route import Route
from tieline.core.routing.routes import Routes
from tieline.core.work import Work


class Naming(NamedTuple):
    """For whom a message has come."""

    #: It is for everyone here who wants it outside groups.
    is_plain: bool = True
    #: The groups for which this broker was picked.
    shares: tuple[Share, ...] = ()
    #: The brokers that were picked before, and could not take it.
    tried: Container[Receiver] = ()
    #: Some of them had members, who did not ask for it.
    is_asked: bool = False


#: What concerns no group.
PLAIN = Naming()


class NamedDelivery:
    """Puts messages of other brokers into queues, or picks another broker."""

    __slots__ = ("_account", "_content", "_routes", "_work", "handed_on", "unwanted")

    def __init__(self, routes: Routes, content: ContentMatch, account: Account, work: Work) -> None:
        self._routes = routes
        self._content = content
        self._account = account
        self._work = work
        #: Messages for which another broker was picked, and those that no member of a group had asked for after all.
        self.handed_on = 0
        self.unwanted = 0

    def deliver(self, item: Item, route: Route, naming: Naming, now: float) -> int:
        """Queue a message for everyone here whom it is for; how many of its messages some client has asked for.

        ``route`` may still have conditions.
        """
        wanted = 0
        shares = naming.shares
        is_asked_together = route.is_conditional and not shares
        parts = self._content.parts(item, route) if is_asked_together else self._content.each(item, route)
        for part, narrowed in parts:
            is_wanted = False
            if naming.is_plain:
                for grant in narrowed.grants:
                    own = grant.for_item(part)
                    if own is not None:
                        own.receiver.offer(part, own, now)
                    is_wanted = is_wanted or not grant.receiver.is_broker
                self._work.did(len(narrowed.grants))
            for share in shares:
                is_wanted |= self._give(part, narrowed, share, naming, now)
            wanted += part.messages if is_wanted else 0
        return wanted

    def _give(self, item: Item, route: Route, share: Share, naming: Naming, now: float) -> bool:
        """Give an item to members of one group, whom a burst is dealt out to; whether there are some here."""
        group = route.group(share)
        is_asked = naming.is_asked or ((group is None or not group.members) and self.is_asked(share))
        hands = 1 if group is None else len(group.members)
        self._work.did(1 + hands)
        is_taken = False
        for part in item.deal(hands) if isinstance(item, Burst) else (item,):
            chosen = None if group is None else group.pick_here(part)
            is_taken = is_taken or chosen is not None
            if chosen is None and group is not None:
                chosen = group.pick_elsewhere(part, naming.tried)
                if chosen is not None:
                    self.handed_on += part.messages
            if chosen is not None:
                chosen.receiver.offer(part, chosen, now)
            elif is_asked:
                self.unwanted += part.messages
            else:
                level = part.level
                name = f"$share/{share.name}/{share.filter}"
                self._account.drop(now, Drop.NO_MEMBER, name, part.topic, part.messages, level=level, since=part.at)
        return is_taken

    def is_asked(self, share: Share) -> bool:
        """Whether a group has members here, whatever they ask for."""
        group = self._routes.group(share.name, share.filter)
        return group is not None and group.has_members_here
