"""Where a reader stands in the logs of several brokers, as Spark keeps it in its checkpoint, and where these end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from tieline.pipeline.options import OptionError, SparkOffset
from tieline.pipeline.source.client import Gap, LogError, Offsets
from tieline.pipeline.source.options import SourceOptions, Where

CREATED: Final = "$created"


class LogPlace(NamedTuple):
    """An offset of one broker's log."""

    offset: int
    created: float


#: A place for each broker, by its name.
Places = dict[str, LogPlace]


def encode(places: Mapping[str, LogPlace]) -> SparkOffset:
    """As Spark keeps it."""
    names = sorted(places)
    return {**{name: places[name].offset for name in names}, CREATED: {name: places[name].created for name in names}}


def decode(kept: SparkOffset) -> Places:
    """The places that :func:`encode` wrote into a checkpoint."""
    return {name: LogPlace(offset, kept[CREATED][name]) for name, offset in kept.items() if name != CREATED}


def shards(kept: SparkOffset | str | None) -> dict[str, int]:
    """Offsets by broker from what a query's progress reports as ``startOffset``, ``endOffset`` or ``latestOffset``."""
    said = json.loads(kept) if isinstance(kept, str) else kept
    return {name: offset for name, offset in (said or {}).items() if name != CREATED}


def spread(waiting: Mapping[str, int], limit: int) -> dict[str, int]:
    """Share a limit among brokers, evenly; what one cannot use goes to the others.

    No broker gets more than waits there, and none gets less than another unless it has less.  What does not divide goes
    to those with the longest queues, so that a limit below the number of brokers starves nobody.
    """
    shares = dict.fromkeys(waiting, 0)
    hungry = sorted((name for name, count in waiting.items() if count > 0), key=lambda name: (-waiting[name], name))
    while limit > 0 and hungry:
        # less than one for each: the first ones get it
        each, takers = (limit // len(hungry), hungry) if limit >= len(hungry) else (1, hungry[:limit])
        for name in takers:
            more = min(each, waiting[name] - shares[name])
            shares[name] += more
            limit -= more
        hungry = [name for name in hungry if shares[name] < waiting[name]]
    return shares


@dataclass(frozen=True, slots=True)
class Shard:
    """One broker's log, now."""

    url: str
    offsets: Offsets


#: What was found, by the brokers' names.
Survey = dict[str, Shard]


def survey(options: SourceOptions) -> Survey:
    """Ask every server; two brokers of one name are refused, because nobody could tell their offsets apart."""
    found: Survey = {}
    for url in options.urls:
        offsets = options.client(url).offsets(options.stream)
        name = offsets.broker
        if name == CREATED:
            raise LogError(f'{url}: a broker must not be called "{CREATED}", which checkpoints use')
        if name in found:
            raise LogError(
                f'{found[name].url} and {url} both say that they serve the broker "{name}": '
                "give each broker a name of its own (name in its configuration)"
            )
        found[name] = Shard(url, offsets)
    return found


def chosen(what: str, where: Where, found: Mapping[str, Shard]) -> Places:
    """The places that ``startingOffsets`` or ``endingOffsets`` (``what``) mean."""
    if isinstance(where, dict) and where.keys() != found.keys():
        raise OptionError(
            f"{what} names {_names(where)}, and the brokers are {_names(found)}: each needs an offset, and no other"
        )
    places: Places = {}
    for name, shard in found.items():
        known = shard.offsets
        offset = where[name] if isinstance(where, dict) else known.earliest if where == "earliest" else known.latest
        if offset > known.latest:
            raise OptionError(
                f"{what} = {offset} lies beyond the end of {name}: its next record will get {known.latest}"
            )
        places[name] = LogPlace(offset, known.created)
    return places


def check(places: Mapping[str, LogPlace], found: Mapping[str, Shard], *, fail_on_data_loss: bool) -> Places:
    """The places of a checkpoint that the servers still have; raises :class:`LogError` for another store's."""
    kept: Places = {}
    for name, place in places.items():
        if name not in found:
            if fail_on_data_loss:
                raise LogError(
                    f'the broker "{name}" was read before, and none of the urls serves it; they serve '
                    f'{_names(found)}. Add its url, or leave it with .option("failOnDataLoss", "false").'
                )
            continue
        known = found[name].offsets
        if known.created != place.created:
            raise LogError(
                f'the store of the broker "{name}" is not the one that was read before: its offsets mean other '
                "records. Begin with a new checkpoint (and, if nothing may be there twice, a new target)."
            )
        if place.offset > known.latest:
            raise LogError(
                f'reading stands at offset {place.offset} of the broker "{name}", whose log ends at {known.latest}: an '
                "older copy of its store was put in place. Begin with a new checkpoint."
            )
        kept[name] = place
    return kept


def missing(name: str, place: LogPlace, shard: Shard) -> Gap | None:
    """What retention has removed behind a place, before anybody read it."""
    earliest = shard.offsets.earliest
    if place.offset >= earliest:
        return None
    text = (
        f"{shard.url}: offsets {place.offset} to {earliest - 1} of the broker {name} are not there any more; the next "
        f"record that is kept has offset {earliest}; {earliest - place.offset} records are missing"
    )
    return Gap(text, place.offset, earliest)


def _names(mapping: Mapping[str, object]) -> str:
    return ", ".join(sorted(mapping)) or "none"
