"""The broker under attack: ``tieline serve`` in a process of its own, with the doors and rules that are attacked."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kits.certificates import issue
from tests.kits.processes import stop
from tests.net.auth.users import write_users
from tests.robust.attack.peer import CLUSTER, KEY
from tieline.conf.paths import management_socket

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
#: Rules in front of those that let everybody do everything: each is looked at for each filter.
RULES: Final = 100
#: Others on this machine may run brokers too, and this one twice.
_NAME: Final = f"attack-{os.getpid()}"
#: The user with a password; everybody else is nobody.
USER: Final = ("operator", "right")


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """Where the broker listens."""

    tcp: str
    ws: str
    tls: str
    peer: str
    #: As sockets are opened: without the scheme of pages.
    #: Of the pages, with the scheme by which sockets are opened.
    http: str
    #: The path of the management socket.
    management: str


class Site:
    """A running broker."""

    def __init__(self, process: subprocess.Popen[str], doors: Doors, log: Path) -> None:
        self._process = process
        self._log = log
        self.doors = doors

    @property
    def resident_bytes(self) -> int:
        """What the process holds in memory now; 0 if it has ended."""
        try:
            return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * _PAGE
        except FileNotFoundError:
            return 0

    @property
    def trouble(self) -> str:
        """What the broker should never say of itself; empty if all is well."""
        if self._process.poll() is not None:
            return f"the broker ended with code {self._process.returncode}"
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if "internal error" in line]
        return lines[0] if lines else ""


def _configuration(folder: Path, http: str, *, is_ruled: bool, is_kept: bool) -> str:
    made = issue(folder)
    key = folder / "overlay.key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    users = write_users(folder / "users", **{USER[0]: USER[1]})
    lines = [
        f'name = "{_NAME}"',
        *([f'data = "{folder}/data"'] if is_kept else []),
        f'[overlay]\ncluster = "{CLUSTER}"\nkey_file = "{key}"',
        '[[listener]]\nurl = "peer://127.0.0.1:0"',
        f'[http]\nurl = "{http}"',
        '[auth]\nanonymous = "loopback"',
        f'password_file = "{users}"',
        '[[listener]]\nurl = "tcp://127.0.0.1:0"',
        '[[listener]]\nurl = "ws://127.0.0.1:0"',
        f'[[listener]]\nurl = "tls://127.0.0.1:0"\ncertificate = "{made.certificate}"\nkey = "{made.key}"',
    ]
    if is_ruled:
        lines += [f'[[rule]]\ndeny = ["read", "write"]\nfilter = "own/{n}/%c/+/secret/%u"' for n in range(RULES)]
        lines.append('[[rule]]\nallow = "all"\nfilter = "#"')
        lines.append('[[rule]]\nallow = "all"\nfilter = "$honest/#"')
        lines.append(f'[[rule]]\nallow = "all"\nfilter = "$SYS/#"\nusers = ["{USER[0]}"]')
    return "\n".join(lines)


@contextmanager
def serving(folder: Path, *, is_ruled: bool, is_kept: bool = False) -> Iterator[Site]:
    """A broker on free ports of this machine, with the default limits.

    With ``is_ruled`` there are rules for topics, with ``is_kept`` a data directory.
    """
    config, log = folder / "tieline.toml", folder / "log"
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        http = f"http://127.0.0.1:{free.getsockname()[1]}"
    config.write_text(_configuration(folder, http, is_ruled=is_ruled, is_kept=is_kept))
    management = management_socket(f"{folder}/data" if is_kept else None, _NAME)
    with log.open("w") as errors:
        command = [sys.executable, "-m", "tieline", "serve", "--config", str(config)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert " ready: " in ready, log.read_text()
        urls = {url.split(":", 1)[0]: url for url in ready.replace(",", " ").split() if "://" in url}
        yield Site(
            process,
            Doors(
                tcp=urls["tcp"],
                ws=urls["ws"],
                tls=urls["tls"],
                peer=urls["peer"],
                http=http.replace("http:", "tcp:"),
                management=str(management),
            ),
            log,
        )
    finally:
        stop(process)
