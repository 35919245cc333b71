"""Tieline itself, as ``python -m tieline serve`` from the environment that runs the benchmark."""

from __future__ import annotations

import sys
from typing import ClassVar

from tieline.bench.machine import own_version
from tieline.bench.peers.peer import Peer, Place


class Tieline(Peer):
    """The broker under test, with its default limits."""

    name: ClassVar[str] = "tieline"
    install: ClassVar[str] = "pip install tieline"
    has_tls: ClassVar[bool] = True
    has_store: ClassVar[bool] = True

    def version(self) -> str | None:
        """Version, whether it is compiled, and the Python it runs on: all three decide the speed."""
        return own_version()

    def command(self, place: Place) -> list[str]:
        """Default settings, a listener for each port."""
        # without a store as its peers are started here: nothing outlives the process
        lines = [] if place.store else ["[store]", 'engine = "memory"']
        lines += ["[[listener]]", f'url = "tcp://127.0.0.1:{place.port}"']
        if place.certificate is not None:
            lines += ["[[listener]]", f'url = "tls://127.0.0.1:{place.tls_port}"']
            lines += [f'certificate = "{place.certificate.certificate}"', f'key = "{place.certificate.key}"']
        config = place.directory / "tieline.toml"
        config.write_text("\n".join(lines) + "\n")
        data = str(place.store or place.directory)
        # nobody writes down who comes and goes: the peers do not either
        quiet = ["--log-level", "warning"]
        return [sys.executable, "-m", "tieline", "serve", "--config", str(config), "--data", data, *quiet]
