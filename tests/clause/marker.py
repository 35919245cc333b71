"""The marker that ties a test to the normative statements it checks."""

from __future__ import annotations

import pytest


def clause(*ids: str) -> pytest.MarkDecorator:
    """Name the statements that fail when the marked test (or ``pytest.param``) fails.

    ``MQTT-3.1.2-22`` is a statement of MQTT 5, ``MQTT311-3.1.2-24`` one of MQTT 3.1.1.  ``tests.clause.report`` reads
    these calls from the source, so the identifiers are written out as literals.
    """
    return pytest.mark.clause(*ids)
