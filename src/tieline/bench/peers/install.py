"""Installing the peers that need no administrator: each in an environment of its own below one directory."""

from __future__ import annotations

import subprocess
import venv
from collections.abc import Callable
from pathlib import Path

from tieline.bench.load.failure import Failure
from tieline.bench.peers import aedes, amqtt
from tieline.bench.peers.peer import executable

_INSTALL_S = 600


def install_amqtt() -> None:
    """A virtual environment with amqtt from PyPI."""
    home = amqtt.home()
    home.parent.mkdir(parents=True, exist_ok=True)
    venv.create(home, with_pip=True, symlinks=True)
    _run([str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "amqtt"], home)


def install_aedes() -> None:
    """A directory with aedes from npm."""
    npm = executable("npm")
    if npm is None:
        raise Failure("npm is missing (sudo apt-get install npm)")
    home = aedes.home()
    home.mkdir(parents=True, exist_ok=True)
    _run([npm, "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(home), "aedes"], home)


#: Peers that can be installed here, by name; the others are system packages.
INSTALLERS: dict[str, Callable[[], None]] = {"amqtt": install_amqtt, "aedes": install_aedes}


def _run(command: list[str], directory: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_INSTALL_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{command[0]} did not end within {_INSTALL_S} s") from error
    if done.returncode != 0:
        tail = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise Failure(f"{Path(command[0]).name} failed: {' / '.join(tail)}")
