"""Network namespaces joined by a thin link: made for one run, removed when it ends, however it ends.

Addresses and interfaces exist only inside the namespaces, so the machine's own network sees nothing of this.  Needs
root.  A socket belongs to the namespace in which its thread was when it made it; so one process can hold both ends.

How long an urgent message may take over such a link follows from the promise: it waits for one largest lower-class
packet that may have begun, one floor quantum (one packet of a lower class that is owed its share), and the bytes the
kernel already holds, which the broker bounds.  All of that leaves at the rate of the link; then the message itself
does, and travels.  Nothing of this is measured but the round trip.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import math
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tieline.bench.load.job import Failure
from tieline.bench.peer import executable

#: What every segment adds on the link: Ethernet 14, IPv4 20, TCP with timestamps 32.
SEGMENT_BYTES = 66
#: What TLS 1.3 adds to every record.
RECORD_BYTES = 22
#: Least bound on what the kernel holds of a slow receiver's bytes, unsent and in flight.
KERNEL_BYTES = 4_096
#: The bound is larger where the link itself holds more: delivery rate times round trip, with room for variation.
KERNEL_ROOM = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkBound:
    """The parts of the promise for one link; sizes are MQTT packets."""

    bytes_per_s: float
    rtt_s: float
    urgent: int
    #: Largest and smallest packet of the lower classes; the smallest decides how many segments the kernel's bytes take.
    largest: int
    smallest: int
    #: One packet of a class that is owed its floor.
    quantum: int
    is_tls: bool = False

    @property
    def kernel(self) -> int:
        """Bytes the kernel may hold."""
        return max(KERNEL_BYTES, math.ceil(KERNEL_ROOM * self.bytes_per_s * self.rtt_s))

    @property
    def seconds(self) -> float:
        """The longest that an urgent message may take."""
        segments = 3 + math.ceil(self.kernel / self.smallest)
        each = SEGMENT_BYTES + (RECORD_BYTES if self.is_tls else 0)
        ahead = self.largest + self.quantum + self.kernel + self.urgent + segments * each
        return ahead / self.bytes_per_s + self.rtt_s


Where = Literal["broker", "router"]

_CLONE_NEWNET = 0x4000_0000
_COMMAND_S = 10
_numbers = itertools.count(1)

#: First and second hop; a link on the broker's own interface has the first only.
_BROKER, _NEAR = "10.199.71.1", "10.199.71.2"
_ROUTER, _FAR = "10.199.72.1", "10.199.72.2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The token bucket of the thin link, as ``tc tbf`` is told."""

    bits_per_s: int = 128_000
    #: One full frame: more would let a burst pass that the rate does not cover.
    burst_bytes: int = 1_600
    #: What waits in the link's own queue before it drops: four seconds, as a home router may have.
    limit_bytes: int = 65_536

    @property
    def bytes_per_s(self) -> float:
        """Bytes of frames that pass in a second."""
        return self.bits_per_s / 8


class Namespace:
    """A network namespace by name."""

    def __init__(self, name: str) -> None:
        self.name = name

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Sockets made and processes started by this thread meanwhile belong to the namespace."""
        with Path("/proc/thread-self/ns/net").open("rb") as home, Path("/run/netns", self.name).open("rb") as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(home.fileno())

    def ip(self, *arguments: str) -> None:
        """``ip`` inside the namespace."""
        _run("ip", "-n", self.name, *arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinLink:
    """A broker's place and a subscriber's place with a thin link between them."""

    broker: Namespace
    subscriber: Namespace
    #: Where the subscriber finds the broker.
    address: str
    shape: Shape
    where: Where


def obstacle() -> str | None:
    """Why no namespace can be made here, in a sentence; nothing if one can."""
    for program in ("ip", "tc"):
        if executable(program) is None:
            return f"{program} is not installed (apt-get install iproute2)"
    if os.geteuid() != 0:
        return "network namespaces need root: run it with sudo"
    try:
        with namespaces(1):
            return None
    except Failure as failure:
        return f"network namespaces cannot be made here: {failure}"


@contextlib.contextmanager
def thin_link(where: Where, shape: Shape) -> Iterator[ThinLink]:
    """A link shaped on the broker's interface, or on a router's interface between the two."""
    with namespaces(2 if where == "broker" else 3) as spaces:
        for space in spaces:
            space.ip("link", "set", "lo", "up")
        if where == "broker":
            broker, subscriber = spaces
            join(broker, "link0", f"{_BROKER}/30", subscriber, "link0", f"{_NEAR}/30")
            shape_interface(broker, "link0", shape)
        else:
            broker, router, subscriber = spaces
            join(broker, "link0", f"{_BROKER}/30", router, "link0", f"{_NEAR}/30")
            join(router, "link1", f"{_ROUTER}/30", subscriber, "link0", f"{_FAR}/30")
            with router.entered():
                Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
            broker.ip("route", "add", "default", "via", _NEAR)
            subscriber.ip("route", "add", "default", "via", _ROUTER)
            shape_interface(router, "link1", shape)
        yield ThinLink(broker=broker, subscriber=subscriber, address=_BROKER, shape=shape, where=where)


@contextlib.contextmanager
def namespaces(count: int) -> Iterator[list[Namespace]]:
    """New ones with nothing in them, which are gone in the end."""
    with contextlib.ExitStack() as stack:
        spaces = []
        for _ in range(count):
            name = f"tieline-{os.getpid():x}-{next(_numbers)}"
            _run("ip", "netns", "add", name)
            stack.callback(_remove, name)
            spaces.append(Namespace(name))
        yield spaces


def join(one: Namespace, one_name: str, one_at: str, other: Namespace, other_name: str, other_at: str) -> None:
    """Lay a cable between two namespaces, with an interface at each end, and an address unless it is empty."""
    _run("ip", "link", "add", one_name, "netns", one.name, "type", "veth",
         "peer", "name", other_name, "netns", other.name)  # fmt: skip
    for space, name, address in ((one, one_name, one_at), (other, other_name, other_at)):
        if address:
            space.ip("addr", "add", address, "dev", name)
        space.ip("link", "set", name, "up")


def shape_interface(space: Namespace, interface: str, shape: Shape) -> None:
    """Let an interface send no faster than a shape says."""
    _run("tc", "-n", space.name, "qdisc", "add", "dev", interface, "root", "tbf", "rate", f"{shape.bits_per_s}bit",
         "burst", str(shape.burst_bytes), "limit", str(shape.limit_bytes))  # fmt: skip


def silence_interface(space: Namespace, interface: str) -> None:
    """Let an interface drop whatever it is given, without a word to anybody."""
    _run("tc", "-n", space.name, "qdisc", "replace", "dev", interface, "root", "pfifo", "limit", "0")


@contextlib.contextmanager
def one_way(space: Namespace, address: str) -> Iterator[None]:
    """Let nothing leave a namespace for an address meanwhile, by a route that leads nowhere; what comes still comes."""
    with space.entered():
        # else what comes from where no route leads back is dropped as well, which would cut both ways
        for kept in Path("/proc/sys/net/ipv4/conf").iterdir():
            (kept / "rp_filter").write_text("0")
    space.ip("route", "add", "blackhole", f"{address}/32")
    try:
        yield
    finally:
        space.ip("route", "del", "blackhole", f"{address}/32")


def _remove(name: str) -> None:
    # Interfaces go with the namespace.  A failure here must not hide the one that brought us here.
    with contextlib.suppress(Failure):
        _run("ip", "netns", "del", name)


def _enter(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)  # os.setns came with Python 3.12
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise Failure(f"setns: {os.strerror(ctypes.get_errno())}")


def _run(program: str, *arguments: str) -> None:
    command = [executable(program) or program, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"{program}: {error}") from error
    if done.returncode != 0:
        raise Failure(f"{program} {' '.join(arguments)}: {done.stderr.strip() or done.returncode}")
