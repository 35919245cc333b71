"""What may lie between a socket and MQTT: TLS and WebSocket, each a pair of buffers without a socket.

A layer never writes by itself: what it wants to send (a handshake, a pong, a close frame) waits in it until the link
asks.  So every byte that is not yet in the kernel is in our hands, and none hides in a transport.
"""

from __future__ import annotations

from typing import Protocol


class LayerError(Exception):
    """The peer does not speak this layer; ``name`` is what the counters call it.

    ``before`` holds what still made sense: how the bytes were cut into chunks must not decide what is lost.
    """

    def __init__(self, name: str, text: str, before: bytes = b"") -> None:
        super().__init__(text)
        self.name = name
        self.text = text
        self.before = before


class Layer(Protocol):
    """One transformation between raw bytes and MQTT bytes."""

    def received(self, data: bytes) -> bytes:
        """Raw bytes arrived: what they mean to the layer above.  Raises LayerError when they mean nothing."""

    def wrap(self, data: bytes) -> bytes:
        """Bytes of the layer above, as they go out."""

    def pending(self) -> bytes:
        """What the layer itself has to say; empties it."""

    @property
    def has_pending(self) -> bool:
        """Whether ``pending`` may have something; True when in doubt."""

    @property
    def held(self) -> int:
        """Bytes that it holds of what arrived and does not make sense yet."""

    def farewell(self) -> bytes:
        """The layer's own goodbye."""

    @property
    def is_ready(self) -> bool:
        """The handshake is done: ``wrap`` may be called."""

    @property
    def is_over(self) -> bool:
        """The peer has ended the layer."""

    @property
    def is_costly(self) -> bool:
        """What arrives next takes long, such as an exchange of keys: others come first."""

    @property
    def has_more(self) -> bool:
        """Not all of what arrived was looked at, because it was much; ``received(b"")`` goes on with it."""

    @property
    def waiting(self) -> int:
        """Bytes of the layer's own words that wait in it: a peer that asks for many is not read for a while."""

    def take_work(self) -> int:
        """What was done since the last call, in the units of :mod:`tieline.core.work`."""


class Stack:
    """Two layers as one: WebSocket over TLS."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, outer: Layer, inner: Layer) -> None:
        self._outer = outer
        self._inner = inner

    def received(self, data: bytes) -> bytes:
        """Take what has arrived through the outer layer, then through the inner one."""
        try:
            inside = self._outer.received(data)
        except LayerError as error:
            before = self._inner.received(error.before) if error.before else b""
            while self._inner.has_more:
                before += self._inner.received(b"")
            error.before = before
            raise
        return self._inner.received(inside) if inside or self._inner.has_more else b""

    def wrap(self, data: bytes) -> bytes:
        """Wrap in the inner layer first, because the outer one travels outside."""
        return self._outer.wrap(self._inner.wrap(data))

    def pending(self) -> bytes:
        """The outer layer's words first: a handshake comes before what it protects."""
        said = self._outer.pending()
        if self._outer.is_ready:
            inner = self._inner.pending()
            if inner:
                said += self._outer.wrap(inner)
        return said

    @property
    def has_pending(self) -> bool:
        return self._outer.has_pending or self._inner.has_pending

    @property
    def held(self) -> int:
        """What both of them hold."""
        return self._outer.held + self._inner.held

    def farewell(self) -> bytes:
        """Inner goodbye, wrapped, then the outer one."""
        inner = self._inner.farewell() if self._outer.is_ready else b""
        return (self._outer.wrap(inner) if inner else b"") + self._outer.farewell()

    @property
    def is_ready(self) -> bool:
        """Both handshakes are done."""
        return self._outer.is_ready and self._inner.is_ready

    @property
    def is_over(self) -> bool:
        return self._outer.is_over or self._inner.is_over

    @property
    def is_costly(self) -> bool:
        """The outer handshake comes first."""
        return self._outer.is_costly or self._inner.is_costly

    @property
    def has_more(self) -> bool:
        """Either of the two has bytes that nobody has looked at."""
        return self._outer.has_more or self._inner.has_more

    @property
    def waiting(self) -> int:
        """Both wait for something of their own, so their bytes add up."""
        return self._outer.waiting + self._inner.waiting

    def take_work(self) -> int:
        """The work of both since it was last asked for."""
        return self._outer.take_work() + self._inner.take_work()
