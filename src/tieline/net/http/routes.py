"""Which request is answered by what, and by which right: one table is the router and the check.

Theory of operation
-------------------
A right is part of a route.  Nothing can be registered without one, and there is no second table that could disagree
about which request is meant: the entry that names the answer names the right, and the right is judged before the answer
is called.  What has no entry is judged by the right that takes the most knowledge for granted, and only then told that
there is nothing, so that a stranger does not learn which addresses there are.

A path is compared as it was sent, byte by byte.  No path of ours has a letter that must be escaped, so whatever is
written with a percent sign, a second slash or another case is another path, and no path at all.

A browser sends what the page of a stranger tells it to send, with the passwords that it remembers.  Whatever changes
something is therefore refused when a browser says that another site asks (:func:`tieline.net.http.headers.is_foreign`).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar  # Any: each handler takes its own exception

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tieline.net.http.headers import is_foreign

R = TypeVar("R")

Answer = Callable[[Request], Awaitable[Response]]
#: Methods that change nothing; a page of another site cannot read what they are answered.
_HARMLESS: Final = frozenset({"GET", "HEAD"})
#: What may stand in the last level of a path that ends in a name.
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Say(Protocol):
    """How a server words what is not an answer."""

    def __call__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
        """A short answer with a sentence."""


class _Entry(NamedTuple, Generic[R]):
    """What one method of one path takes and gives."""

    right: R
    answer: Answer


class Routes(Generic[R]):
    """The HTTP application: paths, their methods, the right that each takes, and what answers."""

    def __init__(
        self,
        admit: Callable[[Scope, R], Awaitable[Response | None]],
        say: Say,
        *,
        otherwise: R,
        faults: Mapping[type[Exception], Callable[[Any], Response]] | None = None,
    ) -> None:
        """``admit`` judges a right, and gives the refusal; ``otherwise`` is the right to hear that there is nothing.

        ``faults`` are the errors of answers that have an answer of their own.
        """
        self._admit = admit
        self._say = say
        self._faults = dict(faults or {})
        self._otherwise = otherwise
        self._paths: dict[str, dict[str, _Entry[R]]] = {}

    def add(self, method: str, path: str, answer: Answer, *, right: R) -> None:
        """Register an answer with its right; a path may end in ``/{name}``, and who answers GET answers HEAD."""
        if right is None:
            raise TypeError(f"{method} {path} has no right: a route without one cannot be registered")
        methods = self._paths.setdefault(path, {})
        for each in (method, "HEAD") if method == "GET" else (method,):
            if each in methods:
                raise ValueError(f"{each} {path} is answered already")
            methods[each] = _Entry(right, answer)

    def __iter__(self) -> Iterator[tuple[str, str, R]]:
        """Every method and path with its right, for whoever wants to see them all."""
        for path, methods in self._paths.items():
            for method, entry in methods.items():
                yield method, path, entry.right

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge one request, then answer it."""
        if scope["type"] == "http":  # no lifespan, no WebSocket
            await (await self._response(scope, receive))(scope, receive, send)

    async def _response(self, scope: Scope, receive: Receive) -> Response:
        method: str = scope["method"]
        if method not in _HARMLESS and is_foreign(scope):
            return self._say(403, "a page of another site asks, and it may not")
        methods, name = self._find(scope)
        scope["path_params"] = {"name": name}
        entry = methods.get(method)
        refusal = await self._admit(scope, self._otherwise if entry is None else entry.right)
        if refusal is not None:
            return refusal
        if not methods:
            return self._say(404, "there is no such page")
        if entry is None:
            *others, last = sorted(methods)
            known = f"{', '.join(others)} and {last} are" if others else f"{last} is"
            return self._say(405, f"only {known} answered", {"Allow": ", ".join(sorted(methods))})
        try:
            return await entry.answer(Request(scope, receive))
        except tuple(self._faults) as fault:
            return next(made(fault) for kind, made in self._faults.items() if isinstance(fault, kind))

    def _find(self, scope: Scope) -> tuple[dict[str, _Entry[R]], str]:
        """The methods of a path, none if there is no such path, and the name at its end."""
        path = scope["raw_path"].decode("latin-1")
        if "{" in path:
            return {}, ""
        found = self._paths.get(path)
        if found is not None:
            return found, ""
        above, _, name = path.rpartition("/")
        return (self._paths.get(f"{above}/{{name}}", {}), name) if _NAME.fullmatch(name) else ({}, "")
