"""Brokers that run, as a user names them: ``NAME=ADDRESS``, and how to ask them what they have to carry."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self, TypeVar  # Any: values of JSON

import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from tieline.cli.management import Management, Visitor, ask_over_http
from tieline.cli.trouble import MISUSED, Trouble
from tieline.conf.paths import management_socket
from tieline.core.figures.demand import DemandRow, Subscribed

if TYPE_CHECKING:
    from tieline.plan.reading.running import Survey

#: The longest time for which one can watch.
MOST_S: Final = 3_000.0
#: Brokers keep what they counted for so long, in case that others are slow to answer.
_GRACE_S: Final = 120.0
_LOOK_S: Final = 0.1
#: Brokers that are asked at the same time.
_AT_ONCE: Final = 8

T = TypeVar("T")
R = TypeVar("R")


def at_once(what: Iterable[T], do: Callable[[T], R]) -> list[R]:
    """Do something about several brokers at the same time, because each answer has far to travel; in their order.

    The first trouble among them is raised when all have ended.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [*pool.map(do, what)]


class Channel(Protocol):
    """Answers questions for a broker."""

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        """The broker's answer to one question."""


class RunningBroker(NamedTuple):
    """A broker, as the instance and its links call it, and where it answers."""

    name: str
    #: A management socket, a data directory, or http://HOST:PORT; empty for a broker that has this name itself.
    address: str
    #: Where it is asked already; None if a channel is to be opened.
    channel: Channel | None = None

    @classmethod
    def read(cls, text: str) -> RunningBroker:
        """The broker that a user has written as ``NAME=ADDRESS``."""
        name, equals, address = text.partition("=")
        if not name or (equals and not address):
            raise Trouble(f"--broker {text}: write NAME=ADDRESS, or NAME for one on this machine.", code=MISUSED)
        return cls(name, address)


class _OverHttp:
    """Questions to a broker on another machine."""

    def __init__(self, url: str, visitor: Visitor) -> None:
        self._url = url.rstrip("/")
        self._visitor = visitor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close: every question has a connection of its own."""

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        """The broker's answer to one question."""
        if do == "net":
            return ask_over_http(self._url, "GET", "/v1/net", b"", self._visitor)
        question = msgspec.json.encode({"do": do, **more})
        return ask_over_http(self._url, "POST", f"/v1/{do}", question, self._visitor)


class _Portion(msgspec.Struct, frozen=True):
    """A part of what a broker has counted; fields that it may add are passed over."""

    seconds: float
    unnamed: int
    flows: list[DemandRow]
    subscriptions: list[Subscribed]
    more: bool


def survey(brokers: Sequence[RunningBroker], seconds: float, visitor: Visitor, *, is_told: bool = True) -> list[Survey]:
    """What all brokers have to carry, counted in the same seconds; a broker that does not answer ends it all."""
    with ExitStack() as opened:
        channels: list[tuple[RunningBroker, Channel]] = []
        for broker in brokers:
            with naming(broker):
                channels.append((broker, opened.enter_context(channel_to(broker, visitor))))
        begun = at_once(channels, lambda each: _begun(*each, seconds))
        if is_told:
            _wait(seconds, len(brokers))
        else:
            time.sleep(seconds)
        counts = [(broker, channel, number) for (broker, channel), number in zip(channels, begun, strict=True)]
        return at_once(counts, lambda each: _taken(*each))


def channel_to(broker: RunningBroker, visitor: Visitor) -> AbstractContextManager[Channel]:
    """Where a broker answers, opened."""
    if broker.channel is not None:
        return nullcontext(broker.channel)
    if broker.address.startswith(("http://", "https://")):
        return _OverHttp(broker.address, visitor)
    if not broker.address:
        return Management(management_socket(None, broker.name))
    path = Path(broker.address)
    return Management(management_socket(str(path), broker.name) if path.is_dir() else path)


@contextmanager
def naming(broker: RunningBroker) -> Iterator[None]:
    """Whatever goes wrong goes wrong with this one."""
    try:
        yield
    except Trouble as trouble:
        raise Trouble(f"{broker.name}: {trouble}", code=trouble.code) from None
    except (msgspec.ValidationError, KeyError) as problem:
        raise Trouble(f"{broker.name}: its answer cannot be read; is it of another version? ({problem})") from None


def _begun(broker: RunningBroker, channel: Channel, seconds: float) -> int:
    with naming(broker):
        return msgspec.convert(channel.ask("demand", act="begin", seconds=seconds + _GRACE_S)["number"], int)


def _taken(broker: RunningBroker, channel: Channel, number: int) -> Survey:
    from tieline.plan.reading.running import Survey

    flows: list[DemandRow] = []
    subscriptions: list[Subscribed] = []
    while True:
        with naming(broker):
            portion = msgspec.convert(channel.ask("demand", act="take", number=number), _Portion)
        flows += portion.flows
        subscriptions += portion.subscriptions
        if not portion.more:
            return Survey(
                broker=broker.name,
                seconds=portion.seconds,
                unnamed=portion.unnamed,
                flows=flows,
                subscriptions=subscriptions,
            )


def _wait(seconds: float, brokers: int) -> None:
    """Let the brokers count; standard output is for the result."""
    console = Console(stderr=True)
    said = f"watching {brokers:,} {'broker' if brokers == 1 else 'brokers'} for {seconds:g} s"
    if not console.is_terminal:
        console.print(said, highlight=False, markup=False, soft_wrap=True)
        time.sleep(seconds)
        return
    columns = (TextColumn("{task.description}", style="dim"), BarColumn(), TimeRemainingColumn())
    end = time.monotonic() + seconds
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(said, total=seconds)
        while (left := end - time.monotonic()) > 0:
            bar.update(task, completed=seconds - left)
            time.sleep(min(left, _LOOK_S))
