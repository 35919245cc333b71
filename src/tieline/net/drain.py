"""The management verb ``drain``: a joined broker is emptied, goes on as before, or says how far that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any  # Any: values of JSON

from tieline.core.ports import ALONE

if TYPE_CHECKING:
    from tieline.core.broker import Broker


def answer(core: Broker, request: dict[str, Any], now: float) -> dict[str, Any]:
    """Begin (``begin``), stop (``stop``) or only look; what is left either way."""
    neighbours = core.routes.neighbours
    if neighbours is ALONE:
        return {"error": "this broker is not joined with others that could take its sessions"}
    from tieline.overlay.joined import Joined

    assert isinstance(neighbours, Joined)
    draining = neighbours.moves.draining
    if request.get("begin") is True:
        draining.begin(now)
    elif request.get("stop") is True:
        draining.stop()
    progress = draining.progress()
    return {**progress._asdict(), "is_done": progress.is_done}
