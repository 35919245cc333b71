"""The part of the schema about other brokers: who they are, and what is told and kept for them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tieline.conf.quantities import Duration, Limit, NoLimit, Seconds


class Peer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another broker that this one is joined with: where it is dialled, until it is there and when it is gone."""

    url: Annotated[
        str | None,
        Meta(
            description="peer:// or peer+tls:// followed by host:port, or peer+unix:// and the path of a socket. "
            "Without one it is not dialled, and what is said here holds when it comes itself."
        ),
    ] = None
    name: Annotated[
        str | None, Meta(description="The broker that is meant; where another one answers, it is refused.")
    ] = None
    key_file: Annotated[
        str | None,
        Meta(description="File with a secret that only this peer and this broker have, instead of overlay.key_file."),
    ] = None
    may: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^(read|write|all) ")], ...] | None,
        Meta(
            description="What may cross the link to it, in words such as read grid/# (what it may get), write cmd/+ "
            "(what it may publish) and all site/7/# (both). A peer of which this is said is an end: nothing is carried "
            "through it. Everything, if the key is left out."
        ),
    ] = None
    gateway: Annotated[
        bool,
        Meta(
            description="Whether it is a gateway of another region, and not a broker of this one. Needs "
            "overlay.region; its name is then NAME@REGION."
        ),
    ] = False
    cost: Annotated[
        Annotated[int, Meta(ge=1, le=65_535)],
        Meta(description="What the link counts for in the length of a way; the shortest way is taken."),
    ] = 1
    capacity: Annotated[
        Annotated[float, Meta(ge=1_000)] | NoLimit,
        Meta(
            description="Bits that the link carries in a second. No more is given to it, so that nothing waits in a "
            "modem or router on the way, where urgent messages could not overtake. Measured, if it is not said."
        ),
    ] = "none"
    compress: Annotated[
        bool,
        Meta(
            description="Whether what is sent to it is compressed while the link is short of room. Each end says it "
            "for its own direction; both can always read it. With peer+tls:// the length of what is encrypted then "
            "depends on what it says."
        ),
    ] = False


#: The names of `tieline.overlay.strategies.STRATEGIES`, for files and command lines; a test holds them equal.
StrategyName = Literal["path", "tree", "ring", "flood"]


#: The names in `tieline.overlay.ring.dispatch.DISPATCHES` of those that keep promises; a test holds them equal.
DispatchName = Literal["arcs", "partitioned"]


class Ring(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a broker goes around a ring whose brokers know only a few others."""

    address: Annotated[
        str | None,
        Meta(
            description="Where other brokers dial this one, as peer:// or peer+tls:// with host:port. By default that "
            "is its first listener for brokers, as long as it listens at one address."
        ),
    ] = None
    dispatch: Annotated[
        DispatchName,
        Meta(
            description="arcs hands messages to those parts of the ring that hold somebody who wants them; partitioned "
            "to every broker, wanted or not. All brokers of a ring have the same."
        ),
    ] = "arcs"
    stabilise_s: Annotated[
        Annotated[float, Meta(ge=0.1, le=60)],
        Meta(
            description="How often a broker looks whether those that it knows are there; one that is silent for two "
            "and a half times as long is taken for dead. All brokers of a ring have the same."
        ),
    ] = 2.0
    owed_bytes: Annotated[
        Annotated[int, Meta(ge=65_536)],
        Meta(
            description="Bytes of QoS 1 and 2 messages that may be on their way from this broker; beyond that, "
            "publishers wait or are refused as at a full queue."
        ),
    ] = 16_777_216


class Overlay(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How joined brokers know each other, and by which links messages travel."""

    cluster: Annotated[
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")],
        Meta(description="Brokers of other clusters are refused."),
    ] = "tieline"
    mode: Annotated[
        Literal["group", "ring"],
        Meta(
            description="In a group every broker knows every other one, of at most 255. On a ring each knows a few, "
            "whatever their number, and [overlay.ring] says how it goes around that; its peers are brokers by which it "
            "finds the ring, and without any it founds one."
        ),
    ] = "group"
    ring: Annotated[Ring, Meta(description="How a broker of a ring goes around that.")] = Ring()
    region: Annotated[
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] | None,
        Meta(
            description="Makes this broker a gateway: it is joined with the brokers of its region, which is called so, "
            "and by listeners and peers with gateway = true with the gateways of other regions. It has no clients, and "
            "keeps what crosses in its data directory."
        ),
    ] = None
    key_file: Annotated[
        str | None,
        Meta(
            description="File with a secret of at least 16 bytes, which every broker proves to have; while it is being "
            "replaced with several, each on a line, of which the first is proven and all are accepted. Without one, "
            "peer:// is on this machine only."
        ),
    ] = None
    certificate: Annotated[
        str | None,
        Meta(
            description="PEM file with the certificate chain that this broker shows other brokers (peer+tls), whether "
            "it dials or listens. It has the broker's name, and that of the host where it listens."
        ),
    ] = None
    key: Annotated[str | None, Meta(description="PEM file with the private key of that.")] = None
    ca: Annotated[
        str | None, Meta(description="PEM file with the authorities that certificates of other brokers come from.")
    ] = None
    strategy: Annotated[
        StrategyName,
        Meta(
            description="path takes the shortest way to each broker; tree the one on a tree that all brokers elect; "
            "ring goes from finger to finger around a ring of them; flood sends a copy over every link."
        ),
    ] = "path"
    reference: Annotated[
        str,
        Meta(
            max_length=255,
            description="Where MQTT 5 clients reach this broker, such as `b.example.org:1883`: other brokers send "
            "theirs here (0x9C with this Server Reference) when they are drained, or keep as many sessions as they "
            "may. Empty: they do not.",
        ),
    ] = ""
    covering: Annotated[
        Literal["optimal", "suboptimal"],
        Meta(
            description="What this broker tells others of the filters of its clients: with optimal the fewest that "
            "cover all; with suboptimal none is taken back while a client has it, so that a wide subscription which "
            "comes and goes is told alone."
        ),
    ] = "optimal"
    publishes: Annotated[
        Literal["anything", "events"] | tuple[str, ...],
        Meta(
            description="What may be published at this broker: anything, or topics that these filters match, or with "
            "events those of declared event types. Everything else is refused. Other brokers are told, and need not "
            "say here what they want of topics that nobody publishes."
        ),
    ] = "anything"
    groups: Annotated[
        Literal["local", "balanced"],
        Meta(
            description="Which member of a shared subscription gets a message: local prefers clients of the broker "
            "that accepts it; with balanced, brokers are picked by the number of their members."
        ),
    ] = "local"
    dead_s: Annotated[
        Seconds,
        Meta(
            description="When a broker out of reach is given up for dead: QoS 1 messages for shared subscriptions that "
            "wait for it are given to members elsewhere."
        ),
    ] = 10.0
    tombstones: Annotated[
        Duration,
        Meta(
            description="How long brokers remember that a retained message was cleared or has expired. One that was "
            "away for longer may bring it back."
        ),
    ] = "24h"
    tombstone_bytes: Annotated[
        Limit, Meta(description="Bytes of what is remembered of those; the oldest is forgotten.")
    ] = 16_777_216
