"""One face for other people's clients, so that every behaviour is tested with all of them and written once.

An adapter translates calls and messages; it adds no behaviour.  Names of properties are those of ``tieline.wire``.
What a client cannot do is said in its class attributes, never worked around.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any, ClassVar

from tests.kits.patience import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """How to reach the broker; ``authority`` is the certificate to trust on encrypted listeners."""

    scheme: str
    host: str
    port: int
    authority: Path

    @property
    def is_tls(self) -> bool:
        return self.scheme in {"tls", "wss"}

    @property
    def is_websocket(self) -> bool:
        return self.scheme in {"ws", "wss"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWill:
    """What the broker publishes when the client is lost; the delay is for MQTT 5."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    delay_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a client connects."""

    client_id: str
    version: int = 5
    clean: bool = True
    expiry_s: int = 0
    keep_alive_s: int = 60
    will: LastWill | None = None
    topic_alias_maximum: int = 0
    username: str | None = None
    password: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A message as the client handed it over."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: dict[str, Any] = field(default_factory=dict)


class Client(ABC):
    """A connected client; the constructor returns when the broker has let it in."""

    name: ClassVar[str]
    #: The listeners it can talk to.
    schemes: ClassVar[tuple[str, ...]] = ("tcp", "tls", "ws", "wss")
    #: It shows user properties as a list, so their order and repetitions can be seen.
    lists_user_properties: ClassVar[bool] = True

    def __init__(self, where: Where, options: Options) -> None:
        self.where = where
        self.options = options
        self.inbox: Queue[Received] = Queue()
        #: Whether the broker remembered the session; None when the client does not tell.
        self.session_present: bool | None = None

    @abstractmethod
    def subscribe(
        self,
        filter_: str,
        qos: int = 0,
        *,
        no_local: bool = False,
        retain_as_published: bool = False,
        retain_handling: int = 0,
        identifier: int | None = None,
    ) -> int:
        """Subscribe and return the broker's code."""

    @abstractmethod
    def unsubscribe(self, filter_: str) -> None:
        """Returns when the broker has confirmed."""

    @abstractmethod
    def publish(
        self, topic: str, payload: bytes = b"", qos: int = 0, *, retain: bool = False, **properties: Any
    ) -> None:
        """Returns when the exchange that the QoS asks for is complete."""

    @abstractmethod
    def close(self) -> None:
        """Say goodbye; nothing happens when the connection is gone already."""

    @abstractmethod
    def drop(self) -> None:
        """Lose the connection without a word."""

    def receive(self) -> Received:
        """The next message."""
        try:
            return self.inbox.get(timeout=PATIENCE_S)
        except Empty:
            raise AssertionError(f"{self.name}: no message within {PATIENCE_S:g} s") from None

    def take(self, count: int) -> list[Received]:
        """The next messages."""
        return [self.receive() for _ in range(count)]

    def expect(self, topic: str, payload: bytes, **fields: object) -> Received:
        """The next message; it has these fields."""
        message = self.receive()
        assert (message.topic, message.payload) == (topic, payload), f"{self.name}: received {message}"
        for name, wanted in fields.items():
            assert getattr(message, name) == wanted, f"{self.name}: {name} is not {wanted!r} in {message}"
        return message
