"""What happens between brokers, counted by name: nothing is dropped, repeated or given up without a number here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counts:
    """The counters of one broker since it began."""

    #: Messages that came for this broker, in order and once.
    taken: int = 0
    #: Messages that had come before.
    suppressed: int = 0
    #: Messages that had to wait here for an earlier number.
    resequenced: int = 0
    #: Messages too far ahead of what has come; their origin sends them again.
    beyond_window: int = 0
    #: Times at which a stream stood still because its receivers had no room.
    stalled: int = 0
    #: Holes of which the origin was told.
    holes_asked: int = 0
    #: Numbers with QoS 0 that were waited for in vain.
    skipped: int = 0
    #: Messages with QoS 0 given up because no link leads to a destination.
    no_route: int = 0
    #: Messages with QoS 0 given up because a link had too much to carry, as voids.
    voided: int = 0
    #: Copies of assured messages and notices that a full link did not take; origins send the former again.
    link_full: int = 0
    #: Copies of assured messages that were not taken because their stream waits for room on a link.
    turned_away: int = 0
    #: Times that a stream was told that it may come again.
    credits: int = 0
    #: Frames whose path ended blind, which wait for another view.
    parked: int = 0
    #: Copies whose path ended blind where others are on other ways.
    blind_copies: int = 0
    #: Parked frames that had to make room; their origin sends them again.
    parked_full: int = 0
    #: Frames that found no way for long; their origin sends them again if they are still owed.
    kept_in_vain: int = 0
    #: Copies that left the elected tree, or the way to a finger, because their hop and an earlier one know of different
    #: links.
    detours: int = 0
    #: Messages that left by the link that the plan has for them, counted at each broker and for each destination.
    planned: int = 0
    #: Messages that left by the shortest path although a plan is in force: it does not cover their topic or their
    #: destination, its epoch is not known here, its link is down, or it leads back to a broker that they came by.
    plan_uncovered: int = 0
    plan_unknown: int = 0
    plan_links_down: int = 0
    plan_loops: int = 0
    #: Copies that went another way because a link was lost.
    rerouted: int = 0
    #: Frames that were sent a second time on the same link, after a reconnection.
    resent_on_link: int = 0
    #: Messages that their origin sent again.
    resent_by_origin: int = 0
    #: Publications that were refused because too much is owed to a destination.
    refused: int = 0
    #: Messages that have expired while they waited for a way to their destination.
    expired: int = 0
    #: Messages that were refused because they are longer than a frame may be.
    too_long: int = 0
    #: Notices that found no way; what they said is said again.
    notices_lost: int = 0
    #: Frames that came to a broker of their own path: always 0.
    looped: int = 0
    #: Frames that a strategy had seen before.
    seen_before: int = 0
    #: Connections ended because of bytes that are no frames, of a gap in the link numbers, or of silence.
    bad_frames: int = 0
    gaps: int = 0
    silences: int = 0
    #: Connections ended because the peer does not read what it is told.
    stuck: int = 0
    #: Connections refused with a sentence, by us or by the peer.
    refused_peers: int = 0
    #: Times at which somebody knew of a later life of this broker than its own.
    outlived: int = 0
    #: Link states that were passed over, because brokers name more links than are looked at.
    links_refused: int = 0
    #: Messages that came from, or were meant for, an earlier incarnation of a broker.
    foreign: int = 0
    #: End acknowledgements of such.
    foreign_notices: int = 0
    #: Messages that were numbered anew because their destination had begun anew.
    renumbered: int = 0
    #: Connections that a newer one of the same peer replaced.
    replaced: int = 0
    #: Parcels that held no message that a client could have sent.
    bad_parcels: int = 0
    #: Subscriptions acknowledged although a reachable broker had not echoed in time.
    not_echoed: int = 0
    #: Times that the whole interest of a broker was asked for, because a step did not fit what is known.
    interests_requested: int = 0
    #: Messages on their way to a peer that may not read them, and messages of a peer that may not publish them.
    withheld: int = 0
    denied: int = 0
    #: Sessions that came here from another broker, and that went to one.
    sessions_in: int = 0
    sessions_out: int = 0
    #: Claims that were not answered in time, and claims that were declined.
    claims_late: int = 0
    claims_declined: int = 0
    #: Sessions here that ended because their client has a later one at another broker.
    sessions_outranked: int = 0
    #: Clients that were let in before all that they had published elsewhere was where it was to go.
    order_not_awaited: int = 0
    #: Times at which a session no longer waited for what was on its way from its old home: it comes later.
    tails_not_awaited: int = 0
    #: Moves of which something was missing for a day.
    moves_given_up: int = 0
    #: Errands that could not be understood, or that a peer may not run.
    bad_errands: int = 0
    #: Items that neighbours were told of retained topics, and those that they told and that were news, or known.
    retained_told: int = 0
    retained_taken: int = 0
    retained_known: int = 0
    #: Times at which neighbours were found to know different retained messages, and had to begin anew.
    retained_compared: int = 0
    retained_restarts: int = 0
    #: Retained messages that an echo did not wait for, since there were too many.
    retained_late: int = 0
    #: Retained messages that a peer may not publish, that are none, or that a clock far ahead has stamped.
    retained_denied: int = 0
    bad_retained: int = 0
    clocks_refused: int = 0
    #: Messages with QoS 0 that came when their topic had gone on by another way.
    overtaken: int = 0
    #: Cleared topics that were forgotten before their time, because there were too many.
    tombstones_forgotten: int = 0
    #: What a peer with rights sent in the name of another broker.
    not_its_own: int = 0
    #: Questions of other brokers, answered and refused; and answers that nobody here had asked for.
    questions_answered: int = 0
    questions_refused: int = 0
    answers_unasked: int = 0
    #: Parcels for this broker that were withheld on the way: it may not read them, or their origin not write them.
    missing: int = 0
    #: Entries of groups of another broker that were not looked at, because it has too many.
    groups_refused: int = 0
    #: Messages that are retained in another region and not in this one.
    retained_elsewhere: int = 0
    #: Messages of other regions that came to a gateway from its own, and went no further: they are there already.
    returned: int = 0
    #: Messages for groups whose broker is dead, and that were given to others.
    reassigned: int = 0
