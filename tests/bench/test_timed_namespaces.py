"""The thin link is made inside namespaces, carries TCP, and leaves nothing behind."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tieline.bench.load.job import Failure
from tieline.bench.timed import link
from tieline.bench.timed.link import Shape, Where, obstacle, thin_link


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
