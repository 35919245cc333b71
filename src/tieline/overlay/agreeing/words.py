"""What brokers tell their neighbours in a round: who takes part, which topics there are, and what planning nodes say.

Each notice holds the epoch of its round and one word, as MessagePack.  Brokers are meant by their place in the list
with which the round began, and a topic by the place of its broker and a number there.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from tieline.overlay.agreeing.protocol import Accepted, Evicted, Join, Leave, Offers, Price, Refused
from tieline.overlay.frames.fields import BadFrame
from tieline.overlay.frames.hello import LONGEST_NAME

#: Brokers that agree with each other: as many as can be joined.
MOST_BROKERS: Final = 255
#: Topics that one broker names, those of the highest rates, and in how many at a time.
MOST_TOPICS: Final = 1_024
CHUNK: Final = 64
#: Bits of a topic's number at its broker.
TOPIC_BITS: Final = 16

_Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
_Place = Annotated[int, Meta(ge=0, lt=MOST_BROKERS)]
_Seconds = Annotated[float, Meta(gt=0, le=3_600)]
_Rate = Annotated[float, Meta(gt=0, le=1e15)]


class Begin(msgspec.Struct, frozen=True, tag="begin", array_like=True):
    """A round begins; said over each link by both ends."""

    brokers: Annotated[tuple[_Name, ...], Meta(min_length=2, max_length=MOST_BROKERS)]
    #: How long everybody counts traffic, and how long all agree after that.
    count_s: _Seconds
    agree_s: _Seconds
    #: The share of each capacity that is left free.
    headroom: Annotated[float, Meta(ge=0, lt=1)]
    #: What whoever says this gives to the link, in bytes in a second; None for no limit.
    capacity: _Rate | None


class NamedTopic(msgspec.Struct, frozen=True, array_like=True):
    """A topic that is published somewhere."""

    number: Annotated[int, Meta(ge=1, le=MOST_TOPICS)]
    name: Annotated[str, Meta(min_length=1, max_length=65_535)]
    rate: _Rate
    level: Annotated[int, Meta(ge=0, le=3)]


class Topics(msgspec.Struct, frozen=True, tag="topics", array_like=True):
    """Some topics of one broker, which everybody passes on once."""

    origin: _Place
    topics: Annotated[tuple[NamedTopic, ...], Meta(min_length=1, max_length=CHUNK)]


class Heard(msgspec.Struct, frozen=True, tag="heard", array_like=True):
    """The offers that were sent last have come: there may be more."""


class Abandon(msgspec.Struct, frozen=True, tag="abandon", array_like=True):
    """The round is over without a plan; everybody passes it on once."""

    why: Annotated[str, Meta(max_length=400)]


Word: TypeAlias = (
    Begin | Topics | Heard | Abandon | Offers | Price | Join | Accepted | Refused | Leave | Evicted
)  # fmt: skip

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[Annotated[int, Meta(ge=1, lt=1 << 53)], Word])


def put_word(epoch: int, word: Word) -> bytes:
    """The body of a notice."""
    return _encoder.encode((epoch, word))


def read_word(body: bytes) -> tuple[int, Word]:
    """The epoch of the round and what is said; raises BadFrame."""
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError as problem:
        raise BadFrame(f"no word about plans: {problem}") from None
