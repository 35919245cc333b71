"""Eclipse mosquitto, the C broker that ratios are taken against."""

from __future__ import annotations

import os
from typing import ClassVar

from tieline.bench.peers.peer import Peer, Place, executable, first_line

# Nothing is logged or dropped, and small packets leave at once: its best case.
_COMMON = """\
allow_anonymous true
log_dest none
set_tcp_nodelay true
max_queued_messages 0
max_inflight_messages 256
"""


class Mosquitto(Peer):
    """mosquitto from the distribution."""

    name: ClassVar[str] = "mosquitto"
    install: ClassVar[str] = "sudo apt-get install mosquitto"
    has_tls: ClassVar[bool] = True
    has_store: ClassVar[bool] = True

    def version(self) -> str | None:
        """As the program says."""
        program = executable("mosquitto")
        line = first_line([program, "-h"]) if program else None
        return line.removeprefix("mosquitto version ") if line else None

    def command(self, place: Place) -> list[str]:
        """Plain and TLS listeners in one process; with a store, saved as often as it is by default."""
        lines = [_COMMON, f"persistence {'true' if place.store else 'false'}"]
        if place.store is not None:
            lines.append(f"persistence_location {place.store}/")
        if os.geteuid() == 0:
            lines.append("user root")  # it would otherwise become a user who cannot read the certificate
        lines.append(f"listener {place.port} 127.0.0.1")
        if place.certificate is not None:
            lines.append(f"listener {place.tls_port} 127.0.0.1")
            lines += [f"certfile {place.certificate.certificate}", f"keyfile {place.certificate.key}"]
        config = place.directory / "mosquitto.conf"
        config.write_text("\n".join(lines) + "\n")
        return [executable("mosquitto") or "mosquitto", "-c", str(config)]
