"""The options of ``df.write`` and ``df.writeStream`` with ``format("tieline")`` or ``format("mqtt")``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tieline.pipeline.broker import NAMES as BROKER_NAMES
from tieline.pipeline.broker import Broker, read_broker
from tieline.pipeline.options import Given, OptionError
from tieline.pipeline.sink.publisher import WINDOW

NAMES: Final = (*BROKER_NAMES, "producer", "window", "patience")
_PRODUCER: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
#: How long a broker may be away, or acknowledge nothing.
_PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """What a writer is asked to do."""

    broker: Broker
    #: The name under which a batch write numbers its messages; None for one that was never used before.
    producer: str | None
    window: int
    patience_s: float


def read_options(format_name: str, options: Mapping[str, str]) -> SinkOptions:
    """Take options apart; raises :class:`OptionError`."""
    given = Given(format_name, NAMES, options)
    producer = given.text("producer")
    if producer is not None and not _PRODUCER.fullmatch(producer):
        raise OptionError(f'producer = "{producer}" is refused: it has 1 to 64 letters, digits, dots, dashes')
    return SinkOptions(
        broker=read_broker(given),
        producer=producer,
        window=min(given.count("window", WINDOW), 65_535),
        patience_s=given.seconds("patience", _PATIENCE_S),
    )
