"""Every kind of attack by its name; ``make attack`` runs them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.robust.attack.bout import Bout
from tests.robust.attack.kinds import (
    amplifiers,
    arrivals,
    conditions,
    doors,
    endings,
    fanout,
    floods,
    packets,
    peers,
    subscriptions,
    websocket,
)
from tests.robust.attack.site import Doors

#: Attacks the broker at these doors with so many connections until its bout is over.
Kind = Callable[[Doors, int, Bout], None]

KINDS: Final[dict[str, Kind]] = {
    kind.__name__.replace("_", "-"): kind
    for kind in (
        subscriptions.conditions_times_filters,
        subscriptions.long_conditions_times_filters,
        subscriptions.filters_times_rules,
        subscriptions.sleepers_and_new_topics,
        subscriptions.conditions_before_the_first_message,
        endings.sessions_with_many_filters_end,
        endings.full_queues_are_given_up,
        packets.wordy_messages,
        packets.wordy_strangers,
        packets.shortest_filters,
        fanout.one_topic_for_very_many_filters,
        conditions.wills_for_conditions,
        conditions.kept_messages_for_conditions,
        endings.delayed_wills,
        floods.pubacks,
        floods.answers_with_a_reason,
        floods.pings,
        floods.new_topics,
        floods.subscribe_and_leave,
        floods.retained_flood,
        floods.never_acknowledged,
        websocket.empty_frames,
        websocket.unread_pongs,
        websocket.tiny_fragments,
        arrivals.tls_hellos,
        arrivals.wrong_passwords,
        arrivals.come_and_go,
        arrivals.unfinished_connects,
        amplifiers.groups_without_number,
        amplifiers.words_for_many,
        amplifiers.aliases,
        amplifiers.changes,
        amplifiers.everything_again,
        doors.pages,
        doors.pages_that_nobody_waits_for,
        doors.questions_and_the_past,
        doors.management_questions,
        doors.drop_by_drop,
        peers.strangers_at_the_door,
        peers.silent_strangers,
        peers.a_broker_with_the_key,
    )
}
