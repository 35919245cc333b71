"""A broker that is killed as by a loss of power, and the page that was open: it says so, and recovers by itself."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kits.dial import dial
from tests.kits.patience import until
from tests.web.page.axe import axe_source, violations
from tests.web.page.conftest import DESK, PHONE, Open
from tieline.wire.packets import Publish


@contextmanager
def _serving(folder: Path, port: int, errors: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process of its own, and where its clients connect; it is killed at the end if it has not been before."""
    settings = folder / "broker.toml"
    settings.write_text(
        f"""name = "control"
data = "{folder / "data"}"

[[listener]]
url = "tcp://127.0.0.1:0"

[http]
url = "http://127.0.0.1:{port}"
"""
    )
    command = [sys.executable, "-m", "tieline", "serve", "--config", str(settings), "--log-level", "error"]
    with (folder / errors).open("w") as complaints:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints, text=True)
        with process:
            assert process.stdout is not None
            ready = process.stdout.readline()
            found = re.search(r"tcp://\S+", ready)
            assert found is not None, (ready, (folder / errors).read_text())
            try:
                yield process, found[0]
            finally:
                process.kill()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("size", [DESK, PHONE])
def test_a_process_that_gets_sigkill_is_missed_and_found_again(
    open_eye: Open, tmp_path: Path, size: tuple[int, int]
) -> None:
    port = _free_port()
    with _serving(tmp_path, port, "first.errors") as (process, url):
        with dial(url, "meter") as meter:
            meter.send(Publish(topic="plant/state", payload=b"running", qos=1, retain=True, packet_id=1))
            assert meter.receive() is not None, "it is acknowledged, so it is on the disk"
            eye = open_eye(f"http://127.0.0.1:{port}/page/", size=size)
            page = eye.look("overview")
            page.wait_for_selector(".fresh >> text=live")
            page.wait_for_selector(".tiles")
            # a page that is loaded anew would not know this any more
            page.evaluate("window.isTheSame = true")
            eye.check()
            process.kill()
            process.wait()
        page.wait_for_selector(".banner >> text=No connection to control since")
        page.wait_for_selector(".fresh >> text=/not connected|connecting/")
        assert page.locator("main.stale .tiles").count() == 1, "what was known stays, and is seen to be old"
        assert violations(page, axe_source()) == []
    with _serving(tmp_path, port, "second.errors") as (_process, url):
        # nobody presses anything: the page tries again by itself
        page.wait_for_selector(".banner", state="detached")
        page.wait_for_selector(".fresh >> text=live")
        until(lambda: page.locator("main.stale").count() == 0, "what is shown is of now")
        assert page.evaluate("window.isTheSame") is True
        with dial(url, "reader") as reader:
            reader.subscribe("plant/state")
            assert reader.expect(Publish).payload == b"running"
            page.keyboard.press("3")
            eye.await_view("clients")
            page.get_by_role("group", name="Which sessions").get_by_role("button", name=re.compile("^All ")).click()
            page.wait_for_selector(".sessions-card >> text=reader")
        wide, screen = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= screen
        # a browser has words of its own for a port where nobody listens
        assert not [said for said in eye.said if said.startswith(("asked for", "error: Error", "warning"))]
    assert (tmp_path / "first.errors").read_text() == (tmp_path / "second.errors").read_text() == ""
