"""A right belongs to a route: whatever path or method somebody writes, nothing is answered without its right."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.kits.patience import PATIENCE_S
from tests.web.test_http import Checker, Serving, settings
from tieline.conf.schema import Auth, Http, Rule

pytest.importorskip("uvicorn")

from tieline.net.http.routes import Routes
from tieline.web import doors
from tieline.web.rights import PUBLIC, SEE, Right

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get", "Post")
#: Who may see the pages, and nothing more.
RULES = (Rule(filter="$SYS/#", allow=("subscribe", "read"), users=("reader",)),)
NOTHING = {400, 401, 403, 404, 405}


class Unserved:
    """An application that is only looked at needs neither a broker nor connections."""

    is_crowded = False

    def __getattr__(self, name: str) -> object:
        raise AssertionError(name)


ROUTES: Routes[Right] = doors.routes(Unserved(), Unserved(), has_page=True)  # type: ignore[arg-type]  # nobody calls it
#: What each path of ours takes to be answered at all, by method.
TAKES = {(method, path): right for method, path, right in ROUTES}
PATHS = sorted({path for _, path in TAKES})


def variations(path: str) -> Iterator[str]:
    """The same path, as somebody might write it who hopes that it means two things."""
    last = path[-1]
    escaped = f"%{ord(last):02X}"
    for behind in ("", "%0A", "%0a", "%0D%0A", "%20", "%00", "%09", "%23", "%3F", "%E2%80%A8", "?x", "?%0A", "#x", ";"):
        yield path + behind
    yield from (f"{path}/", f"/{path}", f"{path}//", f"/.{path}", f"/x/..{path}", f"{path}/.", f"{path}/..{path}")
    yield from (path.upper(), path.title(), path[:-1] + escaped, path[:-1] + escaped.lower(), path.replace("/", "%2F"))
    yield from (path.replace("/", "\\"), path.replace("/", "//"), f"http://localhost{path}")
    yield path[:-1] + "%25" + escaped[1:]


def ask(serving: Serving, method: str, path: str, user: str = "", **headers: str) -> int:
    return serving.get(path, method=method, user=user, password="right" if user else "", **headers)[0]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Serving]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doors, "PACE_PER_S", 1e6)
        serving = Serving(settings(rule=RULES, auth=Auth(failures="none")), authenticator=Checker())
        yield serving
        serving.close()


@pytest.fixture(scope="module")
def open_() -> Iterator[Serving]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doors, "PACE_PER_S", 1e6)
        serving = Serving(settings())
        yield serving
        serving.close()


def may_answer(method: str, written: str, has: set[Right]) -> bool:
    """Whether a request, as it is written, is one that these rights are enough for."""
    return TAKES.get((method, written.partition("?")[0].partition("#")[0])) in has


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("user", ["", "stranger", "reader"])
def test_nothing_is_answered_without_the_right_of_its_route(guarded: Serving, path: str, user: str) -> None:
    """Found by walking all routes: one that is added later is walked too."""
    has = {PUBLIC, SEE} if user == "reader" else {PUBLIC}
    for method in METHODS:
        for written in variations(path):
            status = ask(guarded, method, written, user)
            assert may_answer(method, written, has) or status in NOTHING, (method, written, user, status)


@pytest.mark.parametrize("path", PATHS)
def test_where_there_are_no_users_the_name_of_the_machine_decides(open_: Serving, path: str) -> None:
    for method in METHODS:
        for written in variations(path):
            status = ask(open_, method, written, Host="rebound.example")
            assert may_answer(method, written, {PUBLIC, SEE}) or status in NOTHING, (method, written, status)


@pytest.mark.parametrize(
    "said",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_another_site_has_nothing_done(open_: Serving, said: dict[str, str]) -> None:
    for method, path, right in ROUTES:
        if right.action == "publish":
            assert ask(open_, method, path, **{"Content-Type": "text/plain"}, **said) == 403


def test_a_page_of_our_own_and_programs_are_heard(open_: Serving) -> None:
    own = f"http://127.0.0.1:{open_.port}"
    asking = http.client.HTTPConnection("127.0.0.1", open_.port, timeout=PATIENCE_S)
    for headers in ({}, {"Origin": own}, {"Origin": own, "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
        asking.request("POST", "/v1/demand", body=json.dumps({"do": "demand", "act": "begin"}), headers=headers)
        answer = asking.getresponse()
        assert (answer.status, answer.read()) != (403, b"")
        assert answer.status == 200
        asking.close()


def test_a_route_without_a_right_cannot_be_registered() -> None:
    async def answer(_request: object) -> object:
        raise AssertionError("nobody asks")

    with pytest.raises(TypeError):
        ROUTES.add("GET", "/v1/new", answer)  # type: ignore[call-arg, arg-type]  # what must not be written
    with pytest.raises(TypeError, match="has no right"):
        ROUTES.add("GET", "/v1/new", answer, right=None)  # type: ignore[arg-type]  # nor this
    with pytest.raises(ValueError, match="already"):
        ROUTES.add("GET", "/metrics", answer, right=PUBLIC)  # type: ignore[arg-type]  # a second right for one route


def test_https_takes_authenticated_ciphers_only(tmp_path: Path) -> None:
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(str(chain))
    issued.private_key_pem.write_to_path(str(key))
    secure = Http(url="https://127.0.0.1:0", certificate=str(chain), key=str(key))
    serving = Serving(msgspec.structs.replace(settings(), http=secure))
    try:
        for ciphers, is_taken in (("ECDHE+AESGCM", True), ("ECDHE+AES:!AESGCM:!AESCCM", False), ("kRSA+AESGCM", False)):
            context = ssl.create_default_context()
            authority.configure_trust(context)
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(ciphers)
            asking = http.client.HTTPSConnection("127.0.0.1", serving.port, timeout=PATIENCE_S, context=context)
            if is_taken:
                asking.request("GET", "/health")
                assert asking.getresponse().status == 200
            else:
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    asking.request("GET", "/health")
            asking.close()
    finally:
        serving.close()
