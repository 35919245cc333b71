"""The files of the page: open to everybody, nothing beside them, and nothing that they may load from elsewhere."""

from __future__ import annotations

import gzip
import http.client
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from tests.kits.patience import PATIENCE_S
from tests.web.test_http import RULES, Checker, Serving, settings
from tieline.conf.schema import Auth, Http

pytest.importorskip("uvicorn")

from tieline.web.page_files import MOST_FILE, POLICY, PageFiles
from tieline.web.rights import PUBLIC, SEE


@pytest.fixture(scope="module")
def guarded() -> Iterator[Serving]:
    serving = Serving(settings(rule=RULES, auth=Auth(failures="none")), authenticator=Checker())
    yield serving
    serving.close()


def test_whoever_opens_the_address_gets_the_page_without_a_password(guarded: Serving) -> None:
    status, _, headers = guarded.get("/")
    assert (status, headers["location"]) == (307, "/page/")
    status, body, headers = guarded.get("/page/")
    assert status == 200 and body.startswith("<!doctype html>") and headers["content-type"].startswith("text/html")
    assert headers["content-security-policy"] == POLICY and headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-cache" and headers["referrer-policy"] == "no-referrer"
    assert guarded.get("/page/index.html")[1] == body
    assert guarded.get("/page/", method="HEAD")[:2] == (200, "")


def test_a_browser_that_has_it_is_told_so(guarded: Serving) -> None:
    tag = guarded.get("/page/")[2]["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        status, body, headers = guarded.get("/page/", **{"If-None-Match": known})
        assert (status, body, headers["etag"]) == (304, "", tag)
    assert guarded.get("/page/", **{"If-None-Match": '"other"'})[0] == 200


def test_who_unpacks_gets_less_under_a_tag_of_its_own(tmp_path: Path, guarded: Serving) -> None:
    (tmp_path / "big.js").write_text("let a = 1;\n" * 1_000)
    (tmp_path / "small.js").write_text("x")
    files = PageFiles(tmp_path)
    packed = files.by_path["/page/big.js"].packed
    assert packed is not None and gzip.decompress(packed) == files.by_path["/page/big.js"].content
    assert files.by_path["/page/small.js"].packed is None
    plain = guarded.get("/page/", **{"Accept-Encoding": "identity"})[2]
    assert "content-encoding" not in plain and plain["vary"] == "Accept-Encoding"
    asking = http.client.HTTPConnection("127.0.0.1", guarded.port, timeout=PATIENCE_S)
    try:
        asking.request("GET", "/page/", headers={"Accept-Encoding": "br, gzip;q=0.9"})
        answer = asking.getresponse()
        content, tag = answer.read(), answer.headers["etag"]
        assert answer.headers["content-encoding"] == "gzip" and tag != plain["etag"]
        assert gzip.decompress(content).startswith(b"<!doctype html>")
        asking.request("GET", "/page/", headers={"Accept-Encoding": "gzip", "If-None-Match": tag})
        assert asking.getresponse().status == 304
    finally:
        asking.close()


def test_what_has_to_be_known_before_anybody_has_logged_in(guarded: Serving) -> None:
    status, body, headers = guarded.get("/page/config.json")
    config = msgspec.json.decode(body)
    assert status == 200 and headers["content-type"] == "application/json"
    assert config["users"] and config["websocket"] == "/mqtt" and len(config["build"]) == 12
    assert config.keys() == {"contract", "name", "version", "build", "websocket", "users", "right"}


def test_files_leave_a_connection_open_and_nothing_else_does(guarded: Serving) -> None:
    asking = http.client.HTTPConnection("127.0.0.1", guarded.port, timeout=PATIENCE_S)
    try:
        asking.connect()
        sock = asking.sock
        for _ in range(3):
            asking.request("GET", "/page/")
            answer = asking.getresponse()
            assert answer.read() and asking.sock is sock
        asking.request("GET", "/health")
        assert asking.getresponse().headers["connection"] == "close"
    finally:
        asking.close()


@pytest.mark.parametrize(
    "path",
    [
        "/page", "/page//", "/page/../page/", "/page/%2e%2e/service.py", "/page/..%2fservice.py", "/page/....//x.py",
        "/page/index.html/", "/page/index.html%00", "/page/INDEX.HTML", "/page/.", "/page/service.py", "//page/",
        "/page/%69ndex.html", "/page/__init__.py", "/page/\\..\\service.py", "/page/index.html;x", "/page/?../x.py#",
    ],
)  # fmt: skip
def test_there_is_no_way_to_anything_else(guarded: Serving, path: str) -> None:
    """Without credentials, as for every path that is none."""
    status = guarded.get(path)[0]
    assert status == (200 if urlsplit(path).path == "/page/" and "?" in path else 401), path


def test_only_known_kinds_of_files_with_plain_names_are_read(tmp_path: Path) -> None:
    for name in (
        "index.html",
        "a.js",
        "vendor/b.js",
        "fonts/x/c.woff2",
        "w/x/y/z/deep.js",
        ".hidden.js",
        "a b.js",
        "s.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "huge.js").write_bytes(bytes(MOST_FILE + 1))
    files = PageFiles(tmp_path)
    assert sorted(files.by_path) == [
        "/page/", "/page/a.js", "/page/fonts/x/c.woff2", "/page/index.html", "/page/vendor/b.js",
    ]  # fmt: skip
    assert files.by_path["/page/fonts/x/c.woff2"].media_type == "font/woff2"
    before = files.build
    assert PageFiles(tmp_path).build == before
    (tmp_path / "a.js").write_bytes(b"other")
    assert PageFiles(tmp_path).build != before


def test_the_page_can_be_turned_off_and_elsewhere_must_be_turned_on() -> None:
    off = Serving(msgspec.structs.replace(settings(), http=Http(url="http://127.0.0.1:0", page="off")))
    try:
        assert off.get("/page/")[0] == 404 and off.get("/")[0] == 404 and off.get("/metrics")[0] == 200
        assert (
            off.raw(b"GET /mqtt HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")[9:12]
            != b"101"
        )
    finally:
        off.close()
    outside = msgspec.structs.replace(settings(), http=Http(url="http://0.0.0.0:0"))
    elsewhere = Serving(outside, authenticator=Checker())
    try:
        assert elsewhere.get("/page/")[0] == 401, "not served, and so a path like any other"
    finally:
        elsewhere.close()
    there = Serving(
        msgspec.structs.replace(outside, http=Http(url="http://0.0.0.0:0", page="on")), authenticator=Checker()
    )
    try:
        assert there.get("/page/")[0] == 200
    finally:
        there.close()


def test_no_file_of_the_page_takes_a_right_and_everything_else_does() -> None:
    from tests.web.test_rights import ROUTES

    for _method, path, right in ROUTES:
        is_open = path in {"/", "/health"} or path.startswith("/page/")
        assert (right == PUBLIC) == is_open, path
    assert ("GET", "/v1/history", SEE) in [*ROUTES]
