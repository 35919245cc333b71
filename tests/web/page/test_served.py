"""The page of ``tieline serve``, whose loop is another one than that of an embedded broker."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.kits.dial import dial
from tests.kits.patience import PATIENCE_S, until
from tieline.wire.packets import Publish


def test_brokers_that_are_processes_hear_of_each_other_for_the_page(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first = _serve(stack, tmp_path, "a", "--listen", "peer://127.0.0.1:0")
        peer = next(word for word in first if word.startswith("peer://"))
        _serve(stack, tmp_path, "b", "--join", peer)
        tcp = next(word for word in first if word.startswith("tcp://"))
        with dial(tcp, "looker") as looker:
            looker.subscribe("$SYS/broker/tieline/page")
            looker.sock.settimeout(PATIENCE_S)

            def knows_the_other() -> bool:
                brokers = json.loads(looker.expect(Publish).payload)["brokers"]
                return {each["name"]: each["state"] != "silent" for each in brokers} == {"a": True, "b": True}

            until(knows_the_other, "each has said how it is")
    assert [(tmp_path / f"{name}.errors").read_text() for name in "ab"] == ["", ""]


def _serve(stack: ExitStack, folder: Path, name: str, *words: str) -> list[str]:
    """The words of a broker's ready line; what it complains of goes into a file."""
    command = [sys.executable, "-m", "tieline", "serve", "--name", name, "--log-level", "error"]
    command += ["--listen", "tcp://127.0.0.1:0", *words]
    errors = stack.enter_context((folder / f"{name}.errors").open("w"))
    process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True))
    stack.callback(process.terminate)
    assert process.stdout is not None
    return process.stdout.readline().split()
