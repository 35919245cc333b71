"""Networks that were built before, in the user's cache: importing pandapower takes seconds, a file a millisecond.

The files hold numbers and names, never code.  One that cannot be read, or was made by another version of anything that
takes part, is as good as none: the network is built again.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from tieline.extras import remedy
from tieline.sim.microgrid.extra import Unbuildable
from tieline.sim.microgrid.network import Element, PowerNetwork

#: Whose versions decide whether a kept network still holds.
_MAKERS: Final = ("pandapower", "simbench", "numpy")


class _Kept(msgspec.Struct, array_like=True):
    """A network as it lies in a file: arrays as their bytes."""

    name: str
    nodes: tuple[str, ...]
    feeders: tuple[str, ...]
    buses: bytes
    kilovolts: bytes
    impedance: bytes
    idle: bytes
    source: tuple[float, float]
    base_kw: float
    elements: tuple[Element, ...]


def keep(name: str, build: Callable[[str], PowerNetwork]) -> PowerNetwork:
    """The network of this name: from the cache if it is there, else built, and kept for the next time."""
    try:
        versions = [version(each) for each in _MAKERS]
    except PackageNotFoundError as missing:
        raise Unbuildable(f"the microgrid needs {missing.name}: {remedy('sim')}") from None
    code = Path(__file__).with_name("network.py").read_bytes()
    mark = hashlib.sha256(repr((name, versions)).encode() + code).hexdigest()[:16]
    file = _folder() / f"network-{re.sub(r'[^A-Za-z0-9.-]+', '-', name)}-{mark}.bin"
    with suppress(OSError, ValueError):
        return _thaw(msgspec.msgpack.decode(file.read_bytes(), type=_Kept))
    network = build(name)
    with suppress(OSError):  # a cache that cannot be written costs time, and nothing else
        _put(file, msgspec.msgpack.encode(_freeze(network)))
    return network


def _folder() -> Path:
    stated = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if stated.is_absolute():
        return stated / "tieline"
    try:
        return Path.home() / ".cache" / "tieline"
    except RuntimeError:  # no home at all
        return Path(tempfile.gettempdir(), f"tieline-{os.getuid()}")


def _put(file: Path, content: bytes) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(dir=file.parent, prefix=".network-")
    try:
        with os.fdopen(handle, "wb") as written:
            written.write(content)
        Path(aside).replace(file)
    except OSError:
        Path(aside).unlink(missing_ok=True)
        raise


def _freeze(network: PowerNetwork) -> _Kept:
    return _Kept(
        network.name,
        network.nodes,
        network.feeders,
        network.buses.tobytes(),
        network.kilovolts.tobytes(),
        network.impedance.tobytes(),
        network.idle.tobytes(),
        (network.source.real, network.source.imag),
        network.base_kw,
        network.elements,
    )


def _thaw(kept: _Kept) -> PowerNetwork:
    idle = np.frombuffer(kept.idle, np.complex128)
    return PowerNetwork(
        name=kept.name,
        nodes=kept.nodes,
        feeders=kept.feeders,
        buses=np.frombuffer(kept.buses, np.int64),
        kilovolts=np.frombuffer(kept.kilovolts, np.float64),
        impedance=np.frombuffer(kept.impedance, np.complex128).reshape(len(idle), len(idle)),
        idle=idle,
        source=complex(*kept.source),
        base_kw=kept.base_kw,
        elements=kept.elements,
    )
