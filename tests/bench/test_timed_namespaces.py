"""The thin link is made inside namespaces, carries TCP, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tieline.bench.load.job import Failure
from tieline.bench.timed import link
from tieline.bench.timed.delay import delaying
from tieline.bench.timed.link import Namespace, Shape, Where, join, namespaces, obstacle, one_way, thin_link


@pytest.fixture
def _root(need: Callable[[str], str]) -> None:
    need("ip")
    need("tc")
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root, so the thin link is not tried here")
    why = obstacle()
    if why:
        pytest.skip(why)


def here() -> Path:
    return Path("/proc/thread-self/ns/net").readlink()


def ours() -> list[str]:
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if name.startswith(f"tieline-{os.getpid():x}-")]


@pytest.mark.usefixtures("_root")
@pytest.mark.parametrize("where", ["broker", "router"])
def test_both_ends_of_the_link_meet_and_nothing_is_left(where: Where) -> None:
    with thin_link(where, Shape()) as link:
        assert ours()
        with link.broker.entered():
            listening = socket.create_server((link.address, 0))
        with listening:
            with link.subscriber.entered():
                there = socket.create_connection(listening.getsockname(), timeout=10)
            accepted, _ = listening.accept()
            with there, accepted:
                accepted.sendall(b"over the link")
                assert there.recv(100) == b"over the link"
    assert not ours()


@pytest.mark.usefixtures("_root")
def test_an_interruption_removes_the_link_too() -> None:
    with pytest.raises(KeyboardInterrupt), thin_link("router", Shape()):
        raise KeyboardInterrupt
    assert not ours()


@pytest.mark.usefixtures("_root")
def test_a_thread_comes_back_from_a_namespace_whatever_happens() -> None:
    before = here()
    with thin_link("broker", Shape()) as link:
        with pytest.raises(RuntimeError), link.broker.entered():
            assert here() != before
            raise RuntimeError
        assert here() == before


def _datagrams(space: Namespace, address: str) -> socket.socket:
    with space.entered():
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((address, 0))
    sock.settimeout(5.0)
    return sock


@pytest.mark.usefixtures("_root")
def test_a_relay_passes_tcp_on_both_ways_and_ends_with_its_link() -> None:
    """Its checksums are what the sending end leaves to others."""
    with namespaces(3) as (near, far, between):
        join(near, "link0", "10.199.73.1/30", between, "near", "")
        join(far, "link0", "10.199.73.2/30", between, "far", "")
        with far.entered():
            listening = socket.create_server(("10.199.73.2", 0))
        with listening, delaying(between, "near", "far", 0.01) as relay:
            with near.entered():
                there = socket.create_connection(listening.getsockname(), timeout=10)
            accepted, _ = listening.accept()
            with there, accepted:
                there.sendall(bytes(100_000))
                assert accepted.recv(100_000, socket.MSG_WAITALL) == bytes(100_000)
                accepted.sendall(b"and back")
                assert there.recv(100) == b"and back"
            assert relay.poll() is None
    assert relay.poll() is not None


@pytest.mark.usefixtures("_root")
def test_what_a_slow_relay_was_given_first_comes_after_what_a_fast_one_was_given() -> None:
    with namespaces(4) as (near, far, slow, fast), contextlib.ExitStack() as stack:
        for number, (between, delay_s) in enumerate(((slow, 3.0), (fast, 0.0))):
            join(near, f"link{number}", f"10.199.{75 + number}.1/30", between, "near", "")
            join(far, f"link{number}", f"10.199.{75 + number}.2/30", between, "far", "")
            # neighbours are known, so that nobody has to ask for them over the slow one first
            for one, other, at in ((near, far, 2), (far, near, 1)):
                address = f"10.199.{75 + number}.{at}"
                one.ip("neigh", "replace", address, "lladdr", _hardware(other, f"link{number}"), "dev", f"link{number}")
            stack.enter_context(delaying(between, "near", "far", delay_s))
        sender, receiver = _datagrams(near, "0.0.0.0"), _datagrams(far, "0.0.0.0")
        with sender, receiver:
            port = receiver.getsockname()[1]
            sender.sendto(b"slow", ("10.199.75.2", port))
            sender.sendto(b"fast", ("10.199.76.2", port))
            receiver.settimeout(30.0)
            assert [receiver.recv(100), receiver.recv(100)] == [b"fast", b"slow"]


def _hardware(space: Namespace, interface: str) -> str:
    with space.entered():
        found = subprocess.run(["ip", "-j", "link", "show", interface], capture_output=True, text=True, check=True)
    return str(json.loads(found.stdout)[0]["address"])


@pytest.mark.usefixtures("_root")
def test_a_route_that_leads_nowhere_cuts_one_way_only_and_only_meanwhile() -> None:
    with namespaces(2) as (one, other):
        join(one, "link0", "10.199.74.1/30", other, "link0", "10.199.74.2/30")
        here, there = _datagrams(one, "10.199.74.1"), _datagrams(other, "10.199.74.2")
        with here, there:
            with one_way(one, "10.199.74.2"):
                with contextlib.suppress(OSError):
                    here.sendto(b"lost", there.getsockname())
                there.sendto(b"heard", here.getsockname())
                assert here.recv(100) == b"heard"
            here.sendto(b"heard again", there.getsockname())
            assert there.recv(100) == b"heard again"


def test_without_root_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "executable", lambda program: f"/sbin/{program}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert obstacle() == "network namespaces need root: run it with sudo"
    monkeypatch.setattr(link, "executable", lambda program: None)
    assert "not installed" in str(obstacle())


def test_a_kernel_that_forbids_namespaces_is_a_sentence_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(program: str, *arguments: str) -> None:
        raise Failure("Operation not permitted")

    monkeypatch.setattr(link, "executable", lambda program: f"/sbin/{program}")
    monkeypatch.setattr(link, "_run", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert obstacle() == "network namespaces cannot be made here: Operation not permitted"
