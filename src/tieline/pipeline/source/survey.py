"""Asks all log servers where they stand, and holds what a reader wants against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tieline.pipeline.options import OptionError
from tieline.pipeline.source.client import Gap, LogError, Offsets
from tieline.pipeline.source.offsets import CREATED, Place, Places
from tieline.pipeline.source.options import SourceOptions, Where


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
        places[name] = Place(offset, known.created)
    return places


def check(places: Mapping[str, Place], found: Mapping[str, Shard], *, fail_on_data_loss: bool) -> Places:
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


def missing(name: str, place: Place, shard: Shard) -> Gap | None:
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
