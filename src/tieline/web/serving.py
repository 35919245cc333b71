"""The HTTP server itself: loaded and started when the first connection comes, in a thread with a loop of its own.

A broker whose pages nobody opens pays for a socket and nothing else: neither the libraries of HTTP nor their memory.
"""

from __future__ import annotations

import socket
import ssl
from typing import Final

import uvicorn

from tieline.net.http.connections import Places
from tieline.web.doors import application
from tieline.web.inside import Inside
from tieline.web.upgrade import Upgrades

#: Connections at once, all of them and those of one address; beyond the first number only ``/health`` is answered.
MOST_CONNECTIONS: Final = 64
RESERVED_CONNECTIONS: Final = 16
CONNECTIONS_PER_ADDRESS: Final = 48
#: The longest request head, how long it may take to come, and how long a connection may last: a few questions and
#: answers, whoever dawdles.
MOST_HEAD: Final = 16_384
HEAD_S: Final = 10.0
LIFE_S: Final = 30.0


class HttpServer:
    """Serves one listening socket until it is told to end."""

    def __init__(
        self, inside: Inside, context: ssl.SSLContext | None, *, has_page: bool, origins: tuple[str, ...]
    ) -> None:
        self.places = Places(
            MOST_CONNECTIONS,
            reserve=RESERVED_CONNECTIONS,
            per_address=CONNECTIONS_PER_ADDRESS,
            head_s=HEAD_S,
            life_s=LIFE_S,
        )
        upgrades = Upgrades(inside.take_in) if has_page else None
        config = uvicorn.Config(
            application(inside, self.places, has_page=has_page, origins=origins),
            http=self.places.protocol(upgrades),
            ws="none",
            lifespan="off",
            interface="asgi3",
            loop="asyncio",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(HEAD_S),
            h11_max_incomplete_event_size=MOST_HEAD,
            timeout_graceful_shutdown=1,
        )
        config.load()
        # uvicorn's own would take ciphers that nothing authenticates, and ask for passwords on the terminal
        config.ssl = context
        self._uvicorn = uvicorn.Server(config)

    async def serve(self, listening: socket.socket) -> None:
        """Answer until :meth:`end` is called."""
        await self._uvicorn.serve([listening])

    def end(self) -> None:
        """Answer nobody any more; open answers have a second."""
        self._uvicorn.should_exit = True
