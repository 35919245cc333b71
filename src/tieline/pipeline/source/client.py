"""A reader of one broker's log server: offsets, ranges as Arrow batches, the position of a named reader.

Theory of operation
-------------------
A range is asked for with one request and arrives as an Arrow stream.  Its last batch is empty and says how many rows
there were: without it, or with another count, the range is not whole, and that is an error however well the rows
looked.

A connection that breaks, or a server that is away for a moment or busy, is asked again, behind the last row that has
been handed on: rows come in the order of offsets, so nothing is given twice and nothing is left out.  When patience is
at its end, the last failure becomes a sentence.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar  # Any: values of JSON
from urllib.parse import quote, urlencode, urlsplit

import pyarrow as pa

from tieline.pipeline.source.patience import Away, LogError, Patience, breaks

__all__ = ["PATIENCE_S", "Gap", "LogClient", "LogError", "Offsets"]

#: How long a server may be away or say nothing.
PATIENCE_S: Final = 60.0
#: Key of the metadata that says what an answer holds.
_KEY: Final = b"tieline"
#: Answers that mean: not now.
_LATER: Final = frozenset({"busy", "no_log"})

T = TypeVar("T")


class Gap(LogError):
    """Records that were asked for are gone: offsets from ``first`` up to, and without, ``last``."""

    def __init__(self, text: str, first: int, last: int) -> None:
        super().__init__(text)
        self.first = first
        self.last = last

    def __reduce__(self) -> tuple[type[Gap], tuple[str, int, int]]:
        return Gap, (str(self), self.first, self.last)


@dataclass(frozen=True, slots=True)
class Offsets:
    """Where a stream of a broker begins and ends."""

    broker: str
    #: The first offset still kept, and the one that the next record will get.
    earliest: int
    latest: int
    #: When the store was made: offsets of a store made at another time mean other records.
    created: float


class LogClient:
    """Asks one log server; holds no connection between requests, so it can be pickled and used anywhere."""

    def __init__(
        self,
        url: str,
        user: str | None = None,
        password: str | None = None,
        *,
        ca: str | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """``ca`` is the text (PEM) of certificates to trust beside https; None for those of the system."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise LogError(f'"{url}" is not the address of a log server: http://HOST:PORT or https://HOST:PORT is')
        if parts.path.strip("/") or parts.query or parts.username is not None:
            raise LogError(f'"{url}" has more than a host and a port: user and password are options of their own')
        self.url = url.rstrip("/")
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._is_tls = parts.scheme == "https"
        self._ca = ca
        self._patience_s = patience_s
        self._headers = {"Connection": "close"}
        if user is not None:
            token = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"

    def __repr__(self) -> str:
        return f"<LogClient {self.url}>"

    def offsets(self, stream: str = "log") -> Offsets:
        """Where a stream begins and ends now."""
        said = self._patiently(lambda: self._json("GET", f"/v1/offsets?{urlencode({'stream': stream})}"))
        return Offsets(said["broker"], said["earliest"], said["latest"], said["created"])

    def move_reader(self, name: str, position: int) -> None:
        """Say that a named reader needs nothing below a position; one that is further already stays there."""
        path, body = f"/v1/readers/{quote(name, safe='')}", json.dumps({"position": position}).encode()
        try:
            self._patiently(lambda: self._json("PUT", path, body))
        except _Refused as problem:
            # a batch that is committed a second time, after a restart
            if problem.name != "backwards":
                raise

    def read(  # what a request to the log server may say
        self,
        stream: str,
        start: int,
        end: int,
        *,
        topics: Sequence[str] = (),
        where: str | None = None,
        columns: Sequence[str] | None = None,
        on_gap: Callable[[Gap], None] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The records of a range that topics and condition select, as batches; the range is whole or an error.

        With ``on_gap``, records that are gone are told to it, and reading goes on behind them.
        """
        asked = [("stream", stream), ("to", str(end)), *(("topics", each) for each in topics)]
        if where is not None:
            asked.append(("where", where))
        if columns is not None:
            # offsets tell where to go on after a break
            asked.append(("columns", ",".join(dict.fromkeys(("offset", *columns)))))
        place = _Place(start)
        patience = Patience(self._patience_s)
        while place.next < end:
            try:
                for batch in self._range(asked, place):
                    patience.renew()
                    yield batch if columns is None else batch.select(list(columns))
                return
            except Away as problem:
                patience.pause(problem, self.url)
            except Gap as gap:
                if on_gap is None:
                    raise
                if gap.first > place.next:
                    # the server collects rows before it sends them, and keeps none when it meets a gap
                    yield from self.read(
                        stream, place.next, gap.first, topics=topics, where=where, columns=columns, on_gap=on_gap
                    )
                on_gap(Gap(str(gap), gap.first, min(gap.last, end)))
                place.next = gap.last

    def _range(self, asked: Sequence[tuple[str, str]], place: _Place) -> Iterator[pa.RecordBatch]:
        """One attempt from a place on, which moves behind every row that is given."""
        path = f"/v1/read?{urlencode([('from', str(place.next)), *asked])}"
        rows, ended = 0, None
        with self._open("GET", path) as response:
            reader = pa.ipc.open_stream(response)
            while True:
                try:
                    batch, metadata = reader.read_next_batch_with_custom_metadata()
                except StopIteration:
                    break
                if metadata is not None and _KEY in metadata:
                    ended = json.loads(metadata[_KEY])
                    break
                if batch.num_rows:
                    rows += batch.num_rows
                    first, last = batch.column("offset")[0].as_py(), batch.column("offset")[-1].as_py()
                    if first < place.next:
                        raise LogError(f"{self.url} was asked for records from {place.next} on and sent {first}")
                    yield batch
                    place.next = last + 1
        if ended is None:
            raise Away("the answer ended before the range did")
        if "error" in ended:
            raise self._refusal(ended)
        if ended["rows"] != rows:
            raise LogError(f"{self.url} announced {ended['rows']} rows of a range and sent {rows}")

    def _json(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        with self._open(method, path, body) as response:
            said: dict[str, Any] = json.loads(response.read())
            return said

    @contextmanager
    def _open(self, method: str, path: str, body: bytes | None = None) -> Iterator[http.client.HTTPResponse]:
        """An answer that is not a refusal; what breaks while it is read becomes :class:`Away`."""
        connection = self._connection()
        try:
            with breaks():
                connection.request(method, path, body, self._headers)
                with connection.getresponse() as response:
                    if response.status != 200:
                        raise self._complaint(response.status, response.read())
                    yield response
        finally:
            connection.close()

    def _complaint(self, status: int, body: bytes) -> Exception:
        try:
            said = json.loads(body)
            name, sentence = said["error"], said["text"]
        except (ValueError, TypeError, KeyError):
            return LogError(f"{self.url} answered {status}, not as a log server does")
        return Away(sentence) if name in _LATER else self._refusal(said)

    def _connection(self) -> http.client.HTTPConnection:
        if not self._is_tls:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._patience_s)
        try:
            context = ssl.create_default_context(cadata=self._ca)
        except (ssl.SSLError, ValueError) as problem:
            raise LogError(f"the certificates of the option ca cannot be used: {problem}") from None
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._patience_s, context=context)

    def _refusal(self, said: dict[str, Any]) -> LogError:
        text = f"{self.url}: {said['text']}"
        if said["error"] == "gap":
            return Gap(text, said["from"], said["to"])
        return _Refused(text, said["error"])

    def _patiently(self, ask: Callable[[], T]) -> T:
        patience = Patience(self._patience_s)
        while True:
            try:
                return ask()
            except Away as problem:
                patience.pause(problem, self.url)


class _Refused(LogError):
    """The server understood and said no; ``name`` is its word for why."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text)
        self.name = name

    def __reduce__(self) -> tuple[type[_Refused], tuple[str, str]]:
        return _Refused, (str(self), self.name)


@dataclass(slots=True)
class _Place:
    """The offset behind the last row that was given."""

    next: int
