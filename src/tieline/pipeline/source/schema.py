"""The columns that ``format("tieline")`` gives: those of the log, and behind them which broker they came from.

There is one definition, in Arrow (:mod:`tieline.log.columns`); Spark's is derived from it.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tieline.log import columns as log_columns
from tieline.log.columns import SHARD

LOG_ARROW: Final[pa.Schema] = log_columns.LOG.append(SHARD)
EVENTS_ARROW: Final[pa.Schema] = log_columns.EVENTS.append(SHARD)

LOG: Final[StructType] = from_arrow_schema(LOG_ARROW)
EVENTS: Final[StructType] = from_arrow_schema(EVENTS_ARROW)

ARROW: Final = {"log": LOG_ARROW, "events": EVENTS_ARROW}
SPARK: Final = {"log": LOG, "events": EVENTS}
