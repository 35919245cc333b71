"""The files of the live page: read once, served to everybody, and nothing but what is in the list.

Theory of operation
-------------------
All files are read when the server starts and their addresses are the keys of a table, so there is no path that could
lead anywhere else, and no disk to wait for.  They are the same for everybody and hold no secret; what they show comes
from elsewhere, behind rights.  Each has a tag by which a browser asks whether it has changed, and a policy that lets
the page load nothing that is not its own.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from tieline.net.http.pace import Pace

PAGE: Final = "/page/"
#: What is served, by the end of its name; anything else in the folder is not.
TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "ico": "image/x-icon",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "webmanifest": "application/manifest+json",
    "woff2": "font/woff2",
}
#: The page may load what is its own, and speak with where it came from.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: Folders below each other.
_DEEPEST: Final = 3
#: What one file, and all together, may have: more is a mistake in the wheel.
MOST_FILE: Final = 1_000_000
#: Files that are sent in a second, and at once after a pause: a browser loads some thirty.
FILES_PER_S: Final = 100.0
FILES_AT_ONCE: Final = 400.0
#: A file is packed where that makes it smaller than this part of itself.
_WORTH: Final = 0.9


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file, as it is sent."""

    content: bytes
    media_type: str
    tag: str
    #: The same for browsers that unpack it; None where that saves nothing.
    packed: bytes | None


class PageFiles:
    """All files of the page, by their addresses."""

    def __init__(self, folder: Traversable | None = None) -> None:
        self._pace = Pace(FILES_PER_S, burst=FILES_AT_ONCE)
        root = files("tieline.web").joinpath("page") if folder is None else folder
        found = sorted(_read(root, PAGE, _DEEPEST))
        self.by_path = dict(found)
        if index := self.by_path.get(f"{PAGE}index.html"):
            self.by_path[PAGE] = index
        whole = hashlib.sha256()
        for path, file in found:
            whole.update(f"{path} {file.tag}\n".encode())
        #: Another one after an upgrade: what is open in a browser does not fit any more.
        self.build = whole.hexdigest()[:12]

    async def answer(self, request: Request) -> Response:
        """The file of this address, or that the browser has it."""
        if not await self._pace.turn(request.scope):
            return Response(status_code=503)  # nobody waits for it
        file = self.by_path[request.scope["raw_path"].decode("latin-1")]
        content, headers = file.content, {**_HEADERS, "ETag": file.tag, "Vary": "Accept-Encoding"}
        if file.packed is not None and "gzip" in _listed(request.headers.get("accept-encoding", "")):
            content = file.packed
            # other bytes need another tag
            headers |= {"Content-Encoding": "gzip", "ETag": f'{file.tag[:-1]}-gzip"'}
        if headers["ETag"] in _listed(request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=file.media_type)


def _read(folder: Traversable, path: str, depth: int) -> Iterator[tuple[str, PageFile]]:
    for entry in folder.iterdir():
        if not _NAME.fullmatch(entry.name):
            continue
        if entry.is_dir():
            if depth:
                yield from _read(entry, f"{path}{entry.name}/", depth - 1)
        elif (media_type := TYPES.get(entry.name.rpartition(".")[2])) is not None:
            content = entry.read_bytes()
            if len(content) <= MOST_FILE:
                tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
                packed = gzip.compress(content, mtime=0)
                is_worth_it = len(packed) < _WORTH * len(content)
                yield f"{path}{entry.name}", PageFile(content, media_type, tag, packed if is_worth_it else None)


def _listed(header: str) -> set[str]:
    """What a header lists, without weights; a weak tag is as good as a strong one."""
    return {each.partition(";")[0].strip().removeprefix("W/") for each in header.split(",")}
